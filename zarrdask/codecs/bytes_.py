"""``bytes``: the elements one after another, in C order and a given byte order (C-47)."""

import sys
import threading
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from zarrdask.codecs.base import Buffer, ChunkSpec, Json, Kind, configuration, one_of
from zarrdask.errors import CodecError, MetadataError, UnsupportedError

#: "own": each field of a structured type in its own byte order, which only v2 can say.
Endian = Literal["little", "big", "own"]
NATIVE = cast(Endian, sys.byteorder)
# More than this a thread does not hold on to.
_KEPT = 2**25


@dataclass(frozen=True)
class BytesCodec:
    """Array -> bytes.

    Parameters
    ----------
    endian : {"little", "big", "own"}, optional
        Required where an element has more than one byte; "own" leaves it to the data type.
    """

    endian: Endian | None = "little"

    name: ClassVar[str] = "bytes"
    kind: ClassVar[Kind] = Kind.ARRAY_BYTES

    @classmethod
    def from_configuration(cls, found: Any) -> Self:  # noqa: D102
        members = configuration(found, cls.name, {"endian": None})
        return cls(one_of(members["endian"], "bytes.endian", (None, "little", "big")))

    def to_json(self) -> Json:  # noqa: D102
        if self.endian is None:
            return {"name": self.name}
        if self.endian == "own":
            raise UnsupportedError("v3 has one byte order for all fields", key="bytes.endian")
        return {"name": self.name, "configuration": {"endian": self.endian}}

    def bind(self, spec: ChunkSpec) -> "Elements":  # noqa: D102
        if spec.dtype.hasobject:
            raise UnsupportedError(
                "the bytes codec stores elements of a fixed size only",
                key="codec bytes",
                found=str(spec.dtype),
            )
        ordered = has_byte_order(spec.dtype)
        if self.endian is None and ordered:
            raise MetadataError(
                "elements of several bytes need a byte order",
                key="bytes.endian",
                found=str(spec.dtype),
                expected="'little' or 'big'",
            )
        if not ordered or self.endian == "own":
            return Elements(spec, spec.dtype)
        return Elements(spec, spec.dtype.newbyteorder(cast(Any, self.endian)))


class Elements:
    """The bytes codec, bound to chunks.

    Parameters
    ----------
    spec : ChunkSpec
        The chunks.
    raw : numpy.dtype
        Their dtype with the byte order that is stored.
    """

    __slots__ = ("encoded_size", "most", "raw", "spec")

    def __init__(self, spec: ChunkSpec, raw: np.dtype[Any]) -> None:
        self.spec = spec
        self.raw: np.dtype[Any] | None = raw
        self.encoded_size: int | None = spec.nbytes
        self.most = spec.nbytes

    def encode(self, chunk: np.ndarray) -> Buffer:
        """Return the chunk as bytes: a view of it, or of memory that the next call overwrites."""
        raw = cast(np.dtype[Any], self.raw)
        if not chunk.flags.c_contiguous or chunk.dtype != raw:
            stored = _room(chunk.size * raw.itemsize).view(raw).reshape(chunk.shape)
            stored[...] = chunk
            chunk = stored
        return chunk.reshape(-1).view(np.uint8).data

    def decode(self, data: Buffer) -> np.ndarray:  # noqa: D102
        size = memoryview(data).nbytes
        if size != self.encoded_size:
            raise CodecError(
                "the decoded chunk has the wrong size",
                key="codec bytes",
                found=f"{size} bytes",
                expected=f"{self.encoded_size} bytes for {self.spec.shape} of {self.spec.dtype}",
            )
        if not size:
            return np.empty(self.spec.shape, self.raw)
        return np.frombuffer(data, self.raw).reshape(self.spec.shape)


_LOCAL = threading.local()


def _room(size: int) -> np.ndarray:
    """Return memory of this thread: a chunk's worth that is used again stays in the cache."""
    if size > _KEPT:
        return np.empty(size, np.uint8)
    found: np.ndarray | None = getattr(_LOCAL, "room", None)
    if found is None or len(found) < size:
        found = _LOCAL.room = np.empty(size, np.uint8)
    return found[:size]


def has_byte_order(dtype: np.dtype[Any]) -> bool:
    """Whether the byte order matters for elements of this dtype (also within its fields)."""
    if dtype.subdtype is not None:
        return has_byte_order(dtype.subdtype[0])
    if dtype.names is not None:
        return any(has_byte_order(dtype[name]) for name in dtype.names)
    return dtype.kind not in "bSV" and dtype.itemsize > 1
