"""``blosc``: Blosc 1 frames (C-50, A-57)."""

from dataclasses import dataclass, replace
from functools import cache
from struct import Struct
from typing import Any, ClassVar, Self

from zarrdask.errors import CodecError, MetadataError, TruncatedError, one_of
from zarrdask.formats.byte_ranges import Value
from zarrdask.formats.codecs.byte_source import StoredParts
from zarrdask.formats.codecs.bytes_to_bytes.blosc_frame import COPIED, HEADER, read_blocks
from zarrdask.formats.codecs.bytes_to_bytes.blosc_snappy import decode_frame
from zarrdask.formats.codecs.codec import Buffer, ChunkSpec, Configured, Json, Kind, failed, integer
from zarrdask.formats.codecs.streams import too_long
from zarrdask.runtime.packages import load_module

_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_COMPRESSORS = ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib")
_SIZES = Struct("<4xI4xI")
#: The inner format of frames that numcodecs can't decode.
_SNAPPY = 2
#: The maximum number of decoded bytes of a frame.
_MAX_BYTES = 2**31 - 1 - HEADER.size


@dataclass(frozen=True)
class BloscCodec(Configured):
    """Bytes -> bytes.

    Parameters
    ----------
    cname : {"lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"}
        The compressor; "lz4" by default.
    clevel : int
        The level of compression, from 0 (none) to 9 (smallest); 5 by default.
    shuffle : {-1, 0, 1, 2}
        The shuffle: 0 for none, 1 for bytes (the default), 2 for bits; -1 for bits if elements have
        one byte, else for bytes.
    blocksize : int
        The size of a block in bytes; with 0, the default, Blosc chooses it.
    typesize : int, optional
        The size of an element in bytes; by default the size of the array's data type.
    """

    cname: str = "lz4"
    clevel: int = 5
    shuffle: int = 1
    blocksize: int = 0
    typesize: int | None = None

    name: ClassVar[str] = "blosc"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES
    max_bytes: ClassVar[int] = _MAX_BYTES

    def __post_init__(self) -> None:
        one_of(self.cname, "blosc.cname", _COMPRESSORS)
        integer(self.clevel, "blosc.clevel", 0, 9)
        integer(self.shuffle, "blosc.shuffle", -1, 2)
        integer(self.blocksize, "blosc.blocksize", 0, 2**31 - 1)
        if self.typesize is not None:
            integer(self.typesize, "blosc.typesize", 1, 2**31 - 1)

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        members = dict(configuration or {})
        shuffle = one_of(members.get("shuffle", "shuffle"), "blosc.shuffle", _SHUFFLES)
        codec = super().from_configuration({**members, "shuffle": _SHUFFLES.index(shuffle)})
        if codec.typesize is None and "shuffle" in members and shuffle != "noshuffle":
            raise MetadataError(
                "a shuffle requires the type size",
                key="blosc.typesize",
                expected="the size of an element in bytes",
            )
        return codec

    def bind(self, itemsize: int) -> "BloscCodec":
        """Return the codec with the parameters filled in that follow from the data type."""
        typesize = self.typesize or itemsize
        shuffle = (2 if typesize == 1 else 1) if self.shuffle == -1 else self.shuffle
        return replace(self, shuffle=shuffle, typesize=typesize)

    def complete(self, spec: ChunkSpec) -> "BloscCodec":
        return self.bind(1 if spec.dtype.hasobject else spec.dtype.itemsize)

    def to_json(self) -> Json:
        members = super().to_json()["configuration"]
        return {"name": self.name, "configuration": members | {"shuffle": _SHUFFLES[self.shuffle]}}

    def encode(self, data: Buffer) -> Buffer:
        # Blosc stores the type size in one byte, and uses 1 for larger sizes.
        typesize = self.typesize if self.typesize and self.typesize < 256 else 1
        try:
            return _library().compress(  # type: ignore[no-any-return]
                data, self.cname.encode(), self.clevel, self.shuffle, self.blocksize, typesize
            )
        except (RuntimeError, ValueError) as error:
            if (size := memoryview(data).nbytes) > _MAX_BYTES:
                raise CodecError(
                    "the chunk is too large for Blosc; rewrite the array with smaller chunks",
                    found=f"{size} bytes",
                    expected=f"at most {_MAX_BYTES} bytes",
                ) from error
            raise failed("encode", error) from error

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        if len(data) < HEADER.size:
            raise TruncatedError(
                "the value is shorter than the header of a Blosc frame", found=f"{len(data)} bytes"
            )
        size, stored = _SIZES.unpack_from(data)
        if stored != len(data):
            kind = TruncatedError if stored > len(data) else CodecError
            raise kind(
                "the value is not as long as its Blosc frame",
                found=f"{len(data)} bytes",
                expected=f"{stored} bytes",
            )
        if size > min(limit, _MAX_BYTES):
            raise too_long(size, limit)
        if data[2] >> 5 == _SNAPPY and not data[2] & COPIED:
            return decode_frame(data)
        try:
            if out is not None and size == limit:
                _library().decompress(data, out)
                return out  # type: ignore[no-any-return]
            return _library().decompress(data)  # type: ignore[no-any-return]
        except (RuntimeError, ValueError) as error:
            raise failed("decode", error) from error

    def read_parts(self, value: Value, whole: int) -> StoredParts | None:
        """Return the locations of the blocks of a frame, if blocks can be decoded one by one.

        `whole` is the size of all decoded bytes.
        """
        return read_blocks(value, whole, self.decode)

    def encoded_size(self, size: int) -> int | None:
        return None


@cache
def _library() -> Any:
    # Imported here, as only reading and writing chunks needs it.
    return load_module("numcodecs.blosc")
