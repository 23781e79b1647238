"""``bytes``: the elements one after another, in C order and a given byte order (C-47)."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from zarrdask.errors import CodecError, MetadataError, UnsupportedError, one_of
from zarrdask.formats.codecs.codec import (
    Buffer,
    ChunkSpec,
    Codec,
    Json,
    Kind,
    Serializer,
    parse_configuration,
)
from zarrdask.formats.dtypes.ml import BITS, kind_of, name_of
from zarrdask.formats.dtypes.numpy_type import is_unitless
from zarrdask.runtime import buffers

#: "own" leaves each field of a structured type in its own byte order, which only v2 supports.
Endian = Literal["little", "big", "own"]

NATIVE = cast(Endian, sys.byteorder)

#: NumPy's letters for the kinds of types that are numbers or times and nothing else.
_NUMBERS = "biufcmM"
#: The last character of Unicode.
_LAST_CHARACTER = 0x10FFFF


@dataclass(frozen=True)
class BytesCodec:
    """Array -> bytes.

    Parameters
    ----------
    endian : {"little", "big", "own"}, optional
        The byte order, which is required if elements have more than one byte. "own" is the byte
        order of the data type.
    """

    endian: Endian | None = "little"

    name: ClassVar[str] = "bytes"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        members = parse_configuration(configuration, cls.name, {"endian": None})
        return cls(one_of(members["endian"], "bytes.endian", (None, "little", "big")))

    def to_json(self) -> Json:
        if self.endian is None:
            return {"name": self.name}
        if self.endian == "own":
            raise UnsupportedError(
                "Zarr v3 can't store fields of different byte orders",
                key="bytes.endian",
                expected="one byte order for all fields",
            )
        return {"name": self.name, "configuration": {"endian": self.endian}}

    def complete(self, spec: ChunkSpec) -> Self:
        needed = self.endian is None and has_byte_order(spec.dtype)
        return replace(self, endian="little") if needed else self

    def bind(self, spec: ChunkSpec) -> Serializer:
        if spec.dtype.hasobject:
            raise UnsupportedError(
                "the bytes codec stores elements of a fixed size only",
                found=str(spec.dtype),
                expected="vlen-utf8 or vlen-bytes for elements of any length",
            )
        ordered = has_byte_order(spec.dtype)
        if self.endian is None and ordered:
            raise MetadataError(
                "elements of several bytes need a byte order",
                key="bytes.endian",
                found=str(spec.dtype),
                expected="'little' or 'big'",
            )
        raw = spec.dtype
        if ordered and self.endian != "own":
            raw = raw.newbyteorder(cast(Any, self.endian))
        if is_unitless(raw) and not raw.isnative:
            return Swapped(spec, raw)
        if raw.kind in _NUMBERS:
            return Elements(spec, raw)
        padding = find_padding(raw)
        elements = Padded(Elements(spec, raw), padding) if padding else Elements(spec, raw)
        return Text(elements) if has_text(raw) else elements


class Elements(Serializer):
    """The bytes codec, bound to chunks.

    Parameters
    ----------
    spec : ChunkSpec
        The properties of the chunks.
    raw : numpy.dtype
        Their dtype with the stored byte order.
    """

    def __init__(self, spec: ChunkSpec, raw: np.dtype[Any]) -> None:
        self.spec = spec
        self.raw = raw
        self.encoded_size = spec.nbytes
        self.most = spec.nbytes

    def encode(self, chunk: np.ndarray) -> Buffer:
        """Return the bytes of a chunk: a view of it, or of memory that the next call overwrites."""
        raw = cast(np.dtype[Any], self.raw)
        if not chunk.flags.c_contiguous or chunk.dtype != raw:
            stored = buffers.of_thread(chunk.size * raw.itemsize).view(raw).reshape(chunk.shape)
            stored[...] = chunk
            chunk = stored
        return chunk.reshape(-1).view(np.uint8).data

    def decode(self, data: Buffer) -> np.ndarray:
        size = memoryview(data).nbytes
        if size != self.encoded_size:
            raise CodecError(
                "the decoded chunk has the wrong size",
                found=f"{size} bytes",
                expected=f"{self.encoded_size} bytes for {self.spec.shape} of {self.spec.dtype}",
            )
        return np.ndarray(self.spec.shape, self.raw, data)


class Swapped(Serializer):
    """The bytes codec, bound to chunks of times without a unit, which it swaps as integers.

    NumPy does not swap the bytes of these types.
    """

    def __init__(self, spec: ChunkSpec, raw: np.dtype[Any]) -> None:
        self.dtype = spec.dtype
        self.integers = Elements(replace(spec, dtype=np.dtype("i8")), np.dtype(f"{raw.str[0]}i8"))
        self.encoded_size = self.integers.encoded_size
        self.most = self.integers.most

    def encode(self, chunk: np.ndarray) -> Buffer:
        return self.integers.encode(np.ascontiguousarray(chunk).view("i8"))

    def decode(self, data: Buffer) -> np.ndarray:
        return self.integers.decode(data).astype("i8").view(self.dtype)


@dataclass(frozen=True)
class Padding:
    """A byte of an element whose upper bits are not significant.

    Attributes
    ----------
    at : int
        The offset of the byte in the element.
    bits : int
        The number of significant bits.
    signed : bool
        Whether they are a signed integer.
    """

    at: int
    bits: int
    signed: bool


def find_padding(dtype: np.dtype[Any], at: int = 0) -> list[Padding]:
    """Return the padded bytes of an element, also within its fields (conformance C-68).

    >>> find_padding(np.dtype("i4"))
    []
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        within = find_padding(base, at)
        if not within:
            return []  # without a list of the elements of the field, which may be many
        offsets = range(0, prod(shape) * base.itemsize, base.itemsize)
        return [replace(pad, at=pad.at + offset) for offset in offsets for pad in within]
    if dtype.names is not None:
        fields = [dtype.fields[name] for name in dtype.names]  # type: ignore[index]
        return [pad for field in fields for pad in find_padding(field[0], at + field[1])]
    bits = BITS.get(name_of(dtype) or "", 8)
    return [Padding(at, bits, kind_of(dtype) == "i")] if bits < 8 else []


class Padded(Serializer):
    """The bytes codec, bound to chunks of elements with insignificant bits.

    Other software may have written any values of these bits. In memory they are zero. They are
    written as in a wider type: as copies of the sign, or zero.
    """

    def __init__(self, elements: Elements, padding: list[Padding]) -> None:
        self.elements = elements
        self.padding = padding
        self.encoded_size = elements.encoded_size
        self.most = elements.most

    def encode(self, chunk: np.ndarray) -> Buffer:
        rows = self._rows(self.elements.encode(chunk))
        for pad in self.padding:
            if pad.signed:
                sign = np.uint8(1 << (pad.bits - 1))
                rows[:, pad.at] = (rows[:, pad.at] ^ sign) - sign
        return rows.reshape(-1).data

    def decode(self, data: Buffer) -> np.ndarray:
        chunk = self.elements.decode(data)
        return self._rows(data).view(chunk.dtype).reshape(chunk.shape)

    def _rows(self, data: Buffer) -> np.ndarray:
        """Return a copy of the bytes of the elements, a row for each, with zeros as padding."""
        itemsize = self.elements.spec.dtype.itemsize
        rows = np.array(np.frombuffer(data, np.uint8)).reshape(-1, itemsize)
        for pad in self.padding:
            rows[:, pad.at] &= np.uint8((1 << pad.bits) - 1)
        return rows


def has_text(dtype: np.dtype[Any]) -> bool:
    """Whether elements are text, or have fields that are."""
    if dtype.subdtype is not None:
        return has_text(dtype.subdtype[0])
    if dtype.names is not None:
        return any(has_text(dtype[name]) for name in dtype.names)
    return dtype.kind == "U"


class Text(Serializer):
    """The bytes codec, bound to chunks of elements with text, which it checks when it decodes.

    NumPy raises an error for invalid characters only when they are used.
    """

    def __init__(self, elements: Serializer) -> None:
        self.elements = elements
        self.encoded_size = elements.encoded_size
        self.most = elements.most

    def encode(self, chunk: np.ndarray) -> Buffer:
        return self.elements.encode(chunk)

    def decode(self, data: Buffer) -> np.ndarray:
        chunk = self.elements.decode(data)
        _check_text(chunk)
        return chunk


def _check_text(values: np.ndarray) -> None:
    """Check the characters of an array, and of its fields."""
    for name in values.dtype.names or ():
        _check_text(values[name])
    if values.dtype.kind != "U" or not values.nbytes:
        return
    codes = np.ascontiguousarray(values).reshape(-1).view(f"{values.dtype.str[0]}u4")
    if codes.max() > _LAST_CHARACTER:
        raise CodecError(
            "the text has an invalid character",
            found=hex(codes.max()),
            expected=f"a code point of Unicode, at most {_LAST_CHARACTER:#x}",
        )


def has_byte_order(dtype: np.dtype[Any]) -> bool:
    """Whether elements of a dtype, or of one of its fields, have a byte order."""
    if dtype.subdtype is not None:
        return has_byte_order(dtype.subdtype[0])
    if dtype.names is not None:
        return any(has_byte_order(dtype[name]) for name in dtype.names)
    return dtype.itemsize > 1 and dtype.byteorder != "|"


def endian_of(stored: np.dtype[Any]) -> Endian | None:
    """Return the byte order of a stored type; "own" if its fields have different ones."""
    if not has_byte_order(stored):
        return None
    if stored == stored.newbyteorder("<"):
        return "little"
    return "big" if stored == stored.newbyteorder(">") else "own"


def stored_type(dtype: np.dtype[Any], codecs: Sequence[Codec]) -> np.dtype[Any]:
    """Return a data type with the byte order in which codecs store it."""
    endian = next((codec.endian for codec in codecs if isinstance(codec, BytesCodec)), "little")
    if dtype.hasobject or endian == "own":
        return dtype
    return dtype.newbyteorder(">" if endian == "big" else "<")
