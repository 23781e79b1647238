"""``zstd``: Zstandard frames (C-53)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from zarrdask.errors import CodecError, TruncatedError, one_of
from zarrdask.formats.codecs.codec import (
    Buffer,
    Configured,
    Kind,
    failed,
    integer,
    parse_configuration,
)
from zarrdask.formats.codecs.streams import too_long
from zarrdask.runtime.packages import load_module

_MAGIC = 0xFD2FB528
_MAGIC_BYTES = _MAGIC.to_bytes(4, "little")
_SKIPPED = 0x184D2A50
_LOWEST, _HIGHEST = -131072, 22
# Two types of blocks, and the maximum decoded size of a block.
_REPEATED, _COMPRESSED, _MAX_BLOCK_BYTES = 1, 2, 2**17
# Bytes. Up to this size, a frame of unknown size is first decoded as if it had the full size.
_MAX_GUESSED_BYTES = 2**28
# Bytes that a frame of unknown size may always need.
_ALWAYS_PERMITTED_BYTES = 2**23


@dataclass(frozen=True)
class ZstdCodec(Configured):
    """Bytes -> bytes.

    Parameters
    ----------
    level : int
        The level of compression, from -131072 (fastest) to 22 (smallest); 0 stands for 3, which is
        the default of the library.
    checksum : bool
        Whether each frame ends with a checksum of its contents.
    """

    level: int = 3
    checksum: bool = False

    name: ClassVar[str] = "zstd"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    def __post_init__(self) -> None:
        integer(self.level, "zstd.level", _LOWEST, _HIGHEST)
        one_of(self.checksum, "zstd.checksum", (False, True))

    @classmethod
    def from_configuration(cls, configuration: Any) -> Self:
        return cls(**parse_configuration(configuration, cls.name, {"level": 0, "checksum": False}))

    def encode(self, data: Buffer) -> Buffer:
        return _library().compress(data, self.level, self.checksum)  # type: ignore[no-any-return]

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        try:
            view = memoryview(data)
            # Nearly all values are one frame.
            if view[:4] == _MAGIC_BYTES and (only := _frame(view, 0)).stop == len(view):
                return _decode_frame(data, only, limit, out)
            all_frames = list(frames(data))
            if len(all_frames) == 1:
                return _decode_frame(data, all_frames[0], limit, out)
            whole = bytearray()
            for frame in all_frames:
                part = view[frame.start : frame.stop]
                whole += _decode_frame(part, frame, limit - len(whole), None)
        except CodecError:
            raise
        except (RuntimeError, ValueError) as error:
            raise failed("decode", error) from error
        return whole

    def encoded_size(self, size: int) -> int | None:
        return None


def limited(level: Any) -> Any:
    """Return a level within the limits of Zstandard, which numcodecs applies without an error."""
    return min(max(level, _LOWEST), _HIGHEST) if type(level) is int else level


class Frame(NamedTuple):
    """One frame of a value (RFC 8878, 3.1).

    Attributes
    ----------
    start, stop : int
        The range of the frame in the value.
    size : int or None
        The decoded size, if the frame contains it.
    most : int
        The maximum decoded size of its blocks.
    """

    start: int
    stop: int
    size: int | None
    most: int


def frames(data: Buffer) -> Iterator[Frame]:
    """Yield the frames of a value, without skippable frames."""
    view = memoryview(data)
    at = 0
    while at < len(view) or not at:
        magic = int.from_bytes(view[at : at + 4], "little")
        if magic == _MAGIC:
            frame = _frame(view, at)
            yield frame
            at = frame.stop
        elif magic & ~15 == _SKIPPED:
            at += 8 + int.from_bytes(view[at + 4 : at + 8], "little")
        else:
            begun = _MAGIC_BYTES.startswith(view[at : at + 4])
            raise (TruncatedError if begun else CodecError)(
                "the value is not a Zstandard frame", found=bytes(view[at : at + 4])
            )


def _frame(view: memoryview, start: int) -> Frame:
    if len(view) < start + 6:
        raise TruncatedError("the frame is truncated", found=f"{len(view)} bytes")
    descriptor = view[start + 4]
    flag, single = descriptor >> 6, descriptor >> 5 & 1
    at = start + 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    width = (single, 2, 4, 8)[flag]
    size = int.from_bytes(view[at : at + width], "little") if width else None
    if flag == 1 and size is not None:
        size += 256
    at += width
    most, last = 0, 0
    while not last and at < len(view):
        header = int.from_bytes(view[at : at + 3], "little")
        last, kind, length = header & 1, header >> 1 & 3, header >> 3
        most += length if kind < _COMPRESSED else _MAX_BLOCK_BYTES
        at += 3 + (1 if kind == _REPEATED else length)
    at += 4 if descriptor & 4 else 0
    if not last or at > len(view):
        raise TruncatedError("the frame is truncated", found=f"{len(view)} bytes")
    return Frame(start, at, size, most)


def _decode_frame(data: Buffer, frame: Frame, limit: int, out: Any) -> Buffer:
    """Decode one frame; into `out` if the frame has the size of `out`."""
    size = frame.size
    if size is not None and size > min(limit, frame.most):
        raise too_long(size, min(limit, frame.most))
    if size == 0:
        return b""  # for numcodecs, an empty frame is damaged
    if out is not None and size in (limit, None):
        _library().decompress(data, out)
        return out  # type: ignore[no-any-return]
    if size is not None:
        return _library().decompress(data)  # type: ignore[no-any-return]
    # The library allocates any memory that a frame without its size needs. So first try to decode
    # exactly the permitted size, but only if the blocks can be that large: otherwise each of many
    # small frames would allocate so much.
    if limit <= min(_MAX_GUESSED_BYTES, frame.most):
        target = np.empty(limit, np.uint8)
        with suppress(RuntimeError):
            _library().decompress(data, target)
            return target.data
    if frame.most > max(4 * limit, _ALWAYS_PERMITTED_BYTES):
        raise too_long(frame.most, limit)
    decoded: bytes = _library().decompress(data)
    if len(decoded) > limit:
        raise too_long(len(decoded), limit)
    return decoded


@cache
def _library() -> Any:
    # Imported here, as only reading and writing chunks needs it.
    return load_module("numcodecs.zstd")
