"""``zstd``: Zstandard frames (C-53)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from zarrdask.codecs.base import Buffer, Json, Kind, integer, one_of, parse_configuration
from zarrdask.errors import CodecError, TruncatedError

_MAGIC = 0xFD2FB528
_SKIPPED = 0x184D2A50
_LOWEST, _HIGHEST = -131072, 22
# The kinds of a block, and the most that one holds.
_REPEATED, _COMPRESSED, _BLOCK = 1, 2, 2**17
# Up to this limit it is tried whether a frame of unknown size holds exactly as much.
_ROOM = 2**28
# A frame of unknown size may always take this much.
_FREE = 2**23


@dataclass(frozen=True)
class ZstdCodec:
    """Bytes -> bytes.

    Parameters
    ----------
    level : int
        -131072 (fastest) to 22 (smallest); 0 means the library's default, 3.
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

    def to_json(self) -> Json:
        members: Json = {"level": self.level}
        if self.checksum:
            members["checksum"] = True
        return {"name": self.name, "configuration": members}

    def encode(self, data: Buffer) -> Buffer:
        return _library().compress(data, self.level, self.checksum)  # type: ignore[no-any-return]

    def decode(self, data: Buffer, limit: int, out: Any = None) -> Buffer:
        try:
            all_frames = list(frames(data))
            if len(all_frames) == 1:
                return _decode_frame(data, all_frames[0], limit, out)
            view = memoryview(data)
            whole = bytearray()
            for frame in all_frames:
                part = view[frame.start : frame.stop]
                whole += _decode_frame(part, frame, limit - len(whole), None)
        except (RuntimeError, ValueError) as error:
            if isinstance(error, CodecError):
                raise
            raise CodecError(f"can't decompress: {error}", key="codec zstd") from error
        return whole

    def encoded_size(self, size: int) -> int | None:
        return None


def limited(level: Any) -> Any:
    """Return a level beyond the limits of Zstandard as the limit, as numcodecs understands it."""
    return min(max(level, _LOWEST), _HIGHEST) if type(level) is int else level


class Frame(NamedTuple):
    """One frame of a value (RFC 8878, 3.1).

    Attributes
    ----------
    start, stop : int
        Where it stands.
    size : int or None
        How many bytes it holds, if it says so.
    most : int
        The most that its blocks can hold.
    """

    start: int
    stop: int
    size: int | None
    most: int


def frames(data: Buffer) -> Iterator[Frame]:
    """Yield the frames of a value, without those that are to be skipped.

    Raises
    ------
    CodecError
        If it is cut off, or something else.
    """
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
            begun = _MAGIC.to_bytes(4, "little").startswith(view[at : at + 4])
            raise (TruncatedError if begun else CodecError)(
                "not a Zstandard frame", key="codec zstd", found=bytes(view[at : at + 4])
            )


def _frame(view: memoryview, start: int) -> Frame:
    if len(view) < start + 6:
        raise TruncatedError("the frame is cut off", key="codec zstd", found=f"{len(view)} bytes")
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
        most += length if kind < _COMPRESSED else _BLOCK
        at += 3 + (1 if kind == _REPEATED else length)
    at += 4 if descriptor & 4 else 0
    if not last or at > len(view):
        raise TruncatedError("the frame is cut off", key="codec zstd", found=f"{len(view)} bytes")
    return Frame(start, at, size, most)


def _decode_frame(data: Buffer, frame: Frame, limit: int, out: Any) -> Buffer:
    """Decode one frame; into `out` if it is given and the frame fills it."""
    size = frame.size
    if size is not None and size > min(limit, frame.most):
        raise _too_long(size, min(limit, frame.most))
    if size == 0:
        return b""  # numcodecs takes a frame that says it is empty for a damaged one
    if out is not None and size in (limit, None):
        _library().decompress(data, out)
        return out  # type: ignore[no-any-return]
    if size is not None:
        return _library().decompress(data)  # type: ignore[no-any-return]
    # The library takes what memory a frame needs that doesn't say how much that is; so first
    # try whether it is just what may come, if its blocks can hold as much: of many small frames
    # each would ask for that memory otherwise.
    if limit <= min(_ROOM, frame.most):
        target = np.empty(limit, np.uint8)
        with suppress(RuntimeError):
            _library().decompress(data, target)
            return target.data
    if frame.most > max(4 * limit, _FREE):
        raise _too_long(frame.most, limit)
    decoded: bytes = _library().decompress(data)
    if len(decoded) > limit:
        raise _too_long(len(decoded), limit)
    return decoded


def _too_long(size: int, limit: int) -> CodecError:
    return CodecError(
        "the frame holds too many bytes", key="codec zstd", found=size, expected=f"at most {limit}"
    )


@cache
def _library() -> Any:
    # Loaded when there is a chunk to decode: to look at an array must not cost it.
    return import_module("numcodecs.zstd")
