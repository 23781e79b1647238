"""``blosc``: Blosc 1 frames (C-50, A-57)."""

from dataclasses import dataclass, replace
from functools import cache
from struct import Struct, pack, unpack_from
from typing import Any, ClassVar, Self

from zarrdask.errors import CodecError, MetadataError, TruncatedError, one_of
from zarrdask.formats.codecs.bytes_to_bytes.blosc_snappy import decode_frame
from zarrdask.formats.codecs.codec import Buffer, ChunkSpec, Configured, Json, Kind, failed, integer
from zarrdask.formats.codecs.streams import too_long
from zarrdask.runtime.packages import load_module

_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_COMPRESSORS = ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib")
#: version, version of the inner format, flags, typesize, decoded size, block size, encoded size
_HEADER = Struct("<BBBBIII")
_SIZES = Struct("<4xI4xI")
_BLOCK_SIZE = Struct("<8xI")
#: The flag of a frame whose bytes are not compressed.
_COPIED = 2
#: The inner format of frames that numcodecs can't decode.
_SNAPPY = 2
#: The flag of a frame whose blocks are not split into a stream for each byte of an element.
_WHOLE = 16
#: The maximum number of decoded bytes of a frame.
_MAX_BYTES = 2**31 - 1 - _HEADER.size


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
        _check_header(data)
        size, stored = _SIZES.unpack_from(data)
        if stored != len(data):
            kind = TruncatedError if stored > len(data) else CodecError
            raise kind(
                "the length of the value is not that of its Blosc frame",
                found=f"{len(data)} bytes",
                expected=f"{stored} bytes",
            )
        if size > min(limit, _MAX_BYTES):
            raise too_long(size, limit)
        if data[2] >> 5 == _SNAPPY and not data[2] & _COPIED:
            return decode_frame(data)
        try:
            if out is not None and size == limit:
                _library().decompress(data, out)
                return out  # type: ignore[no-any-return]
            return _library().decompress(data)  # type: ignore[no-any-return]
        except (RuntimeError, ValueError) as error:
            raise failed("decode", error) from error

    def block_bytes(self, data: Buffer) -> int:
        """Return the decoded size of a block of a frame: the least that can be decoded of it."""
        _check_header(data)
        size: int = _BLOCK_SIZE.unpack_from(data)[0]
        return size

    def decode_part(self, data: Buffer, whole: int, start: int, stop: int) -> tuple[int, Buffer]:
        """Decode only those blocks of a frame that contain a range of bytes.

        Parameters
        ----------
        data : bytes-like
            The stored value.
        whole : int
            The required size of all decoded bytes.
        start, stop : int
            The range of the requested bytes, among all decoded bytes.

        Returns
        -------
        (int, bytes-like)
            An offset that is at most `start`, and the decoded bytes from there up to `stop` or
            beyond.
        """
        _check_header(data)
        *kind, size, block, stored = _HEADER.unpack_from(data)
        first, last = start // max(block, 1), (stop - 1) // max(block, 1)
        count = -(-size // max(block, 1))
        table = _HEADER.size + 4 * count
        if size != whole:
            raise CodecError(
                "the size of the decoded Blosc frame is not that of the chunk",
                found=size,
                expected=str(whole),
            )
        if stored != len(data) or kind[2] & _COPIED or table > stored:
            return 0, self.decode(data, whole)
        starts = [*unpack_from(f"<{count}i", data, _HEADER.size), stored]
        begin, end = starts[first], starts[last + 1]
        if not table <= begin < end <= stored or starts != sorted(starts):
            return 0, self.decode(data, whole)
        # Build a frame that consists of these blocks only.
        shift = _HEADER.size + 4 * (last + 1 - first) - begin
        size_here = min((last + 1) * block, size) - first * block
        if size_here < block:
            # The last block is shorter and never split, but here it is the only one.
            kind[2] |= _WHOLE
        frame = b"".join(
            (
                _HEADER.pack(*kind, size_here, min(block, size_here), end + shift),
                pack(f"<{last + 1 - first}i", *(s + shift for s in starts[first : last + 1])),
                memoryview(data)[begin:end],
            )
        )
        return first * block, self.decode(frame, size_here)

    def encoded_size(self, size: int) -> int | None:
        return None


def _check_header(data: Buffer) -> None:
    if len(data) < _HEADER.size:
        raise TruncatedError(
            "the value is shorter than the header of a Blosc frame", found=f"{len(data)} bytes"
        )


@cache
def _library() -> Any:
    # Imported here, as only reading and writing chunks needs it.
    return load_module("numcodecs.blosc")
