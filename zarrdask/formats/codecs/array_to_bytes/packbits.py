"""``packbits``: the bits of the elements one after another, without gaps (C-62, X-C8)."""

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np

from zarrdask.errors import CodecError, MetadataError, one_of
from zarrdask.formats.codecs.codec import (
    Buffer,
    ChunkSpec,
    Configured,
    Json,
    Kind,
    Serializer,
    integer,
    refused,
)
from zarrdask.formats.codecs.numeric import part_of
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.ml import BITS, kind_of, name_of

Padding = Literal["none", "first_byte", "last_byte"]
#: Names of members, and values of ``padding_encoding``, that only the schema uses (X-C8).
_SCHEMA_MEMBERS = {"start_bit": "first_bit", "end_bit": "last_bit"}
_SCHEMA_PADDINGS = {"start_byte": "first_byte", "end_byte": "last_byte"}


@dataclass(frozen=True)
class PackbitsCodec(Configured):
    """Array -> bytes.

    Parameters
    ----------
    padding_encoding : {"none", "first_byte", "last_byte"}
        The position of the byte with the number of bits that were added to fill the last byte.
    first_bit, last_bit : int, optional
        The bits of each element (or of each part of a complex number) that are stored, counted
        from the least significant bit; by default all.
    """

    padding_encoding: Padding = "none"
    first_bit: int | None = None
    last_bit: int | None = None

    name: ClassVar[str] = "packbits"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    def __post_init__(self) -> None:
        one_of(self.padding_encoding, "packbits.padding_encoding", get_args(Padding))
        for member in ("first_bit", "last_bit"):
            if getattr(self, member) is not None:
                integer(getattr(self, member), f"packbits.{member}", 0, 127)

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return super().from_configuration(_renamed(configuration or {}))

    def bind(self, spec: ChunkSpec) -> "PackedBits":
        part = part_of(spec.dtype)
        if kind_of(part) not in "biufmM":
            expected = "booleans, integers, floats, complex numbers or times"
            raise refused(spec.dtype, expected)
        width = _width(part)
        first = 0 if self.first_bit is None else self.first_bit
        last = width - 1 if self.last_bit is None else self.last_bit
        if not first <= last < width:
            raise MetadataError(
                "the elements do not have these bits",
                key="packbits.last_bit",
                found=(first, last),
                expected=f"first_bit <= last_bit < {width} for {spec.dtype}",
            )
        return PackedBits(self.padding_encoding, spec, first, last)


def _renamed(configuration: Json) -> Json:
    """Return the configuration with the names of the specification instead of the schema."""
    members = {
        _SCHEMA_MEMBERS.get(member, member): value for member, value in configuration.items()
    }
    padding = members.get("padding_encoding")
    if isinstance(padding, str) and padding in _SCHEMA_PADDINGS:
        members["padding_encoding"] = _SCHEMA_PADDINGS[padding]
    if len(members) != len(configuration):
        raise MetadataError(
            "a member of the configuration occurs under two names",
            key="packbits",
            found=dict(configuration),
        )
    if members != configuration:
        report_deviation(
            "X-C8",
            "names of the schema only",
            key="packbits",
            found=dict(configuration),
            expected=members,
        )
    return members


def _width(part: np.dtype[Any]) -> int:
    """Return the number of significant bits of an element."""
    if part.kind == "b":
        return 1
    return BITS.get(name_of(part) or "", part.itemsize * 8)


class PackedBits(Serializer):
    """The packbits codec, bound to chunks."""

    def __init__(self, padding: Padding, spec: ChunkSpec, first: int, last: int) -> None:
        self.padding = padding
        self.spec = spec
        self.first = first
        self.last = last
        parts = spec.dtype.itemsize // part_of(spec.dtype).itemsize
        bits = prod(spec.shape) * parts * (last - first + 1)
        self.unused = -bits % 8
        self.most = self.encoded_size = (bits + 7) // 8 + (padding != "none")

    def encode(self, chunk: np.ndarray) -> Buffer:
        part = part_of(self.spec.dtype)
        little = np.ascontiguousarray(chunk, self.spec.dtype.newbyteorder("<"))
        rows = little.reshape(-1).view(np.uint8).reshape(-1, part.itemsize)
        bits = np.unpackbits(rows, axis=1, bitorder="little")[:, self.first : self.last + 1]
        packed = np.packbits(bits, bitorder="little").tobytes()
        count = bytes([self.unused])
        if self.padding == "none":
            return packed
        return count + packed if self.padding == "first_byte" else packed + count

    def decode(self, data: Buffer) -> np.ndarray:
        packed = self._payload(data)
        part = part_of(self.spec.dtype)
        size, width = self.last - self.first + 1, part.itemsize * 8
        count = prod(self.spec.shape) * (self.spec.dtype.itemsize // part.itemsize)
        flat_bits = np.unpackbits(packed, count=count * size, bitorder="little")
        bits = np.zeros((count, width), np.uint8)
        bits[:, self.first : self.last + 1] = flat_bits.reshape(count, size)
        if kind_of(part) in "imM":
            bits[:, self.last + 1 : _width(part)] = bits[:, self.last : self.last + 1]
        rows = np.packbits(bits, axis=1, bitorder="little")
        little = rows.reshape(-1).view(self.spec.dtype.newbyteorder("<"))
        return little.reshape(self.spec.shape)

    def _payload(self, data: Buffer) -> np.ndarray:
        stored = np.frombuffer(data, np.uint8)
        if len(stored) != self.encoded_size:
            raise CodecError(
                "the chunk has the wrong size",
                found=f"{len(stored)} bytes",
                expected=f"{self.encoded_size} bytes",
            )
        if self.padding == "none":
            return stored
        first = self.padding == "first_byte"
        count, packed = (stored[0], stored[1:]) if first else (stored[-1], stored[:-1])
        if count != self.unused:
            raise CodecError(
                "the number of padding bits is wrong", found=int(count), expected=self.unused
            )
        return cast(np.ndarray, packed)
