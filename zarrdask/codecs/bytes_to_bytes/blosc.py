"""``blosc``: Blosc 1 frames (C-50, A-57)."""

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from struct import Struct, pack, unpack_from
from typing import Any, ClassVar, Self

from zarrdask.codecs.base import Buffer, ChunkSpec, Json, Kind, integer, one_of, parse_configuration
from zarrdask.codecs.bytes_to_bytes.blosc_snappy import decode_frame
from zarrdask.errors import CodecError, MetadataError, TruncatedError

_NAMES = ("noshuffle", "shuffle", "bitshuffle")
_COMPRESSORS = ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib")
#: version, version of the inner format, flags, typesize, decoded size, block size, encoded size
_HEADER = Struct("<BBBBIII")
_SIZES = Struct("<4xI4xI")
#: The flag of a frame whose bytes are not compressed.
_COPIED = 2
#: The inner format of frames that numcodecs can't decode.
_SNAPPY = 2
#: The flag of a frame whose blocks are not split into a stream for each byte of an element.
_WHOLE = 16
#: What Blosc can hold at all.
_MOST = 2**31 - 1 - _HEADER.size


@dataclass(frozen=True)
class BloscCodec:
    """Bytes -> bytes.

    Parameters
    ----------
    cname : {"lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"}
        The compressor inside.
    clevel : int
        0 (none) to 9 (smallest).
    shuffle : {-1, 0, 1, 2}
        None, of bytes, of bits; -1 takes bits for elements of one byte, else bytes.
    blocksize : int
        In bytes; 0 lets Blosc choose.
    typesize : int, optional
        Bytes of one element; filled in from the array's data type if absent.
    """

    cname: str = "lz4"
    clevel: int = 5
    shuffle: int = 1
    blocksize: int = 0
    typesize: int | None = None

    name: ClassVar[str] = "blosc"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    def __post_init__(self) -> None:
        one_of(self.cname, "blosc.cname", _COMPRESSORS)
        integer(self.clevel, "blosc.clevel", 0, 9)
        integer(self.shuffle, "blosc.shuffle", -1, 2)
        integer(self.blocksize, "blosc.blocksize", 0, 2**31 - 1)
        if self.typesize is not None:
            integer(self.typesize, "blosc.typesize", 1, 2**31 - 1)

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        defaults = {
            "cname": "lz4",
            "clevel": 5,
            "shuffle": "shuffle",
            "blocksize": 0,
            "typesize": None,
        }
        members = parse_configuration(configuration, cls.name, defaults)
        shuffle = members["shuffle"]
        if shuffle not in _NAMES:
            raise MetadataError(
                "not a permitted value",
                key="blosc.shuffle",
                found=shuffle,
                expected=", ".join(_NAMES),
            )
        if (
            members["typesize"] is None
            and configuration
            and "shuffle" in configuration
            and shuffle != "noshuffle"
        ):
            raise MetadataError("typesize is required with a shuffle", key="blosc.typesize")
        members["shuffle"] = _NAMES.index(shuffle)
        return cls(**members)

    def bind(self, itemsize: int) -> "BloscCodec":
        """Return the codec with what it leaves to the data type filled in."""
        typesize = self.typesize or itemsize
        shuffle = (2 if typesize == 1 else 1) if self.shuffle == -1 else self.shuffle
        return replace(self, shuffle=shuffle, typesize=typesize)

    def complete(self, spec: ChunkSpec) -> "BloscCodec":
        """Return the codec with what it leaves to the data type filled in."""
        return self.bind(1 if spec.dtype.hasobject else spec.dtype.itemsize)

    def to_json(self) -> Json:
        members: Json = {
            "cname": self.cname,
            "clevel": self.clevel,
            "shuffle": _NAMES[self.shuffle],
            "blocksize": self.blocksize,
        }
        if self.typesize is not None:
            members["typesize"] = self.typesize
        return {"name": self.name, "configuration": members}

    def encode(self, data: Buffer) -> Buffer:
        # Blosc keeps the type size in one byte and takes 1 for what does not fit.
        typesize = self.typesize if self.typesize and self.typesize < 256 else 1
        try:
            return _library().compress(  # type: ignore[no-any-return]
                data, self.cname.encode(), self.clevel, self.shuffle, self.blocksize, typesize
            )
        except (RuntimeError, ValueError) as error:
            raise CodecError(f"can't compress: {error}", key="codec blosc") from error

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        if len(data) < _HEADER.size:
            raise TruncatedError("too short for a Blosc frame", key="codec blosc", found=len(data))
        size, stored = _SIZES.unpack_from(data)
        if stored != len(data):
            kind = TruncatedError if stored > len(data) else CodecError
            raise kind(
                "the frame is cut off or has something after it",
                key="codec blosc",
                found=f"{len(data)} bytes",
                expected=f"{stored} bytes",
            )
        if size > min(limit, _MOST):
            raise CodecError(
                "the frame holds too many bytes",
                key="codec blosc",
                found=size,
                expected=f"at most {limit}",
            )
        if data[2] >> 5 == _SNAPPY and not data[2] & _COPIED:
            return decode_frame(data)
        try:
            if out is not None and size == limit:
                _library().decompress(data, out)
                return out  # type: ignore[no-any-return]
            return _library().decompress(data)  # type: ignore[no-any-return]
        except (RuntimeError, ValueError) as error:
            raise CodecError(f"can't decompress: {error}", key="codec blosc") from error

    def decode_part(self, data: Buffer, whole: int, start: int, stop: int) -> tuple[int, Buffer]:
        """Decode only the blocks of a frame that hold some of its bytes.

        Parameters
        ----------
        data : bytes-like
            What was stored.
        whole : int
            How many bytes the frame must hold.
        start, stop : int
            The decoded bytes that are wanted.

        Returns
        -------
        (int, bytes-like)
            Where what follows begins among all decoded bytes, and bytes up to `stop` or beyond.
        """
        if len(data) < _HEADER.size:
            raise CodecError("too short for a Blosc frame", key="codec blosc", found=len(data))
        *kind, size, block, stored = _HEADER.unpack_from(data)
        first, last = start // max(block, 1), (stop - 1) // max(block, 1)
        count = -(-size // max(block, 1))
        table = _HEADER.size + 4 * count
        if size != whole:
            raise CodecError(
                "the frame holds another number of bytes than the chunk",
                key="codec blosc",
                found=size,
                expected=str(whole),
            )
        if stored != len(data) or kind[2] & _COPIED or table > stored:
            return 0, self.decode(data, whole)
        starts = [*unpack_from(f"<{count}i", data, _HEADER.size), stored]
        begin, end = starts[first], starts[last + 1]
        if not table <= begin < end <= stored or starts != sorted(starts):
            return 0, self.decode(data, whole)
        # A frame of its own, with just these blocks.
        shift = _HEADER.size + 4 * (last + 1 - first) - begin
        size_here = min((last + 1) * block, size) - first * block
        if size_here < block:
            # The last block, which is shorter and never split, as the only one.
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


@cache
def _library() -> Any:
    # Loaded when there is a chunk to decode: to look at an array must not cost it.
    return import_module("numcodecs.blosc")
