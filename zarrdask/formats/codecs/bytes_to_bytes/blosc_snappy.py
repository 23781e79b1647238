"""Decode Blosc frames with Snappy, the only compressor that numcodecs' Blosc does not include."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import unpack_from
from typing import Any

import numpy as np

from zarrdask.errors import CodecError, TruncatedError
from zarrdask.formats.codecs.codec import Buffer

_HEADER = 16
_BYTES, _BITS, _WHOLE = 1, 4, 16
#: Blosc splits a block into streams if the elements have at most this number of bytes, and the
#: block at least this number of elements.
_MAX_SPLIT_BYTES, _MIN_SPLIT_ELEMENTS = 16, 128

#: (stored stream, decoded size) -> decoded bytes
Decompress = Callable[[memoryview, int], Buffer]


@dataclass(frozen=True)
class _Blocks:
    """The properties of the blocks in the header of a frame."""

    flags: int
    typesize: int
    size: int


def snappy(data: memoryview, size: int) -> bytearray:
    """Decode a Snappy stream, whose decoded size must be `size`.

    It consists of the decoded size, then literals, and copies of earlier bytes.

    >>> bytes(snappy(memoryview(bytes([5, 1 << 2, 97, 98, 3 - 1 << 2 | 2, 2, 0])), 5))
    b'ababa'
    """
    stated_size, at = _varint(data)
    out = bytearray()
    while stated_size == size and len(out) < size and at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            count, at = _literal_size(data, tag, at)
            out += data[at : at + count]
            at += count
        else:
            count, back, at = _copy(data, tag, at)
            if not 0 < back <= len(out):
                raise _damaged("it copies bytes from before its beginning")
            piece = out[len(out) - back : len(out) - back + count]
            # A copy that overlaps its own result repeats the bytes.
            out += (piece * -(-count // back))[:count]
    if len(out) != size or at != len(data):
        raise _damaged("its decoded size is wrong")
    return out


def _damaged(reason: str) -> CodecError:
    return CodecError(f"the Snappy stream is damaged: {reason}")


def _varint(data: memoryview) -> tuple[int, int]:
    value = 0
    for at in range(min(len(data), 5)):
        value |= (data[at] & 127) << 7 * at
        if data[at] < 128:
            return value, at + 1
    raise _damaged("it has no size")


def _literal_size(data: memoryview, tag: int, at: int) -> tuple[int, int]:
    count = tag >> 2
    if count < 60:
        return count + 1, at
    more = count - 59
    return int.from_bytes(data[at : at + more], "little") + 1, at + more


def _copy(data: memoryview, tag: int, at: int) -> tuple[int, int, int]:
    if tag & 3 == 1:
        return (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at], at + 1
    width = 2 if tag & 3 == 2 else 4
    return (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little"), at + width


def decode_frame(frame: Buffer, decompress: Decompress = snappy) -> bytes:
    """Decode a Blosc 1 frame whose bytes are compressed (conformance A-57).

    Its length must be that in its header; `decompress` decodes its streams.
    """
    view = memoryview(frame)
    flags, typesize, size, block = unpack_from("<2xBBII", view)
    blocks = _Blocks(flags, typesize, block)
    try:
        starts = unpack_from(f"<{-(-size // block)}I", view, _HEADER)
        return b"".join(
            _block(view[start:], blocks, min(block, size - i * block), decompress)
            for i, start in enumerate(starts)
        )
    except (IndexError, struct.error, ZeroDivisionError) as error:
        raise CodecError(f"the Blosc frame is damaged: {error}") from error


def _block(data: memoryview, blocks: _Blocks, size: int, decompress: Decompress) -> Any:
    wide = blocks.typesize
    split = (
        wide <= _MAX_SPLIT_BYTES
        and blocks.size // wide >= _MIN_SPLIT_ELEMENTS
        and size == blocks.size
    )
    count = wide if split and not blocks.flags & _WHOLE else 1
    shuffled = b"".join(_streams(data, count, size // count, decompress))
    elements = np.frombuffer(shuffled, np.uint8, size // wide * wide)
    if blocks.flags & _BYTES and wide > 1:
        return elements.reshape(wide, -1).T.tobytes() + shuffled[len(elements) :]
    if blocks.flags & _BITS and len(elements) and not size // wide % 8:
        bits = np.unpackbits(elements.reshape(wide * 8, -1), axis=1, bitorder="little")
        whole = np.packbits(bits.T, axis=1, bitorder="little").tobytes()
        return whole + shuffled[len(elements) :]
    return shuffled


def _streams(data: memoryview, count: int, size: int, decompress: Decompress) -> Iterator[Buffer]:
    at = 0
    for _ in range(count):
        (stored,) = unpack_from("<I", data, at)
        stream = data[at + 4 : at + 4 + stored]
        if len(stream) != stored:
            raise TruncatedError("a stream of the Blosc frame is truncated")
        # A stream that compression does not make smaller is stored without compression.
        yield stream if stored == size else decompress(stream, size)
        at += 4 + stored
