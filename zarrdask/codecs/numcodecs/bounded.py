"""Decompress what numcodecs would decompress without a bound: damaged data may claim any size."""

import bz2
import lzma
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_bytes import zfp_header
from zarrdask.codecs.base import Buffer
from zarrdask.errors import CodecError, TruncatedError

# What a decompressor of LZMA may take beside what it gives: more than any preset asks for.
_DICTIONARY = 2**28
# The bytes that the decompressor of a second or later stream is handed at first.
_STEP = 2**12


def _bz2(data: Buffer, codec: Any, limit: int) -> Buffer:
    return _streams(bz2.BZ2Decompressor, data, limit)


def _lzma(data: Buffer, codec: Any, limit: int) -> Buffer:
    memory = None if codec.format == lzma.FORMAT_RAW else _DICTIONARY + limit
    return _streams(lambda: lzma.LZMADecompressor(codec.format, memory, codec.filters), data, limit)


def _lz4(data: Buffer, codec: Any, limit: int) -> Any:
    # The size stands before the block (conformance A-58); as much memory would be taken at once.
    size = int.from_bytes(data[:4], "little")
    if size > limit:
        raise too_long(size, limit)
    return codec.decode(data)


def _zfpy(data: Buffer, codec: Any, limit: int) -> Any:
    # The library trusts the shape in the header, and reads as far as the stream tells it. What
    # has no header it refuses itself.
    if bytes(data[:3]) != b"zfp":
        return codec.decode(data)
    shape, kind = zfp_header.read_header(data)
    stored = np.dtype(kind)
    if prod(shape) * stored.itemsize > limit:
        raise too_long(prod(shape) * stored.itemsize, limit)
    most = zfp_header.bound(shape, stored, 2**16)
    return codec.decode(zfp_header.padded(data, most, shape))


#: By numcodecs id: (data, numcodecs codec, limit) -> decoded bytes.
BOUNDED: dict[str, Callable[[Buffer, Any, int], Any]] = {
    "bz2": _bz2,
    "lz4": _lz4,
    "lzma": _lzma,
    "zfpy": _zfpy,
}


def _streams(make: Callable[[], Any], data: Buffer, limit: int) -> Buffer:
    """Decompress one stream, or several after each other."""
    view = memoryview(data).cast("B")
    decoded: bytes | bytearray = b""
    at, step = 0, len(view)
    while True:
        stream = make()
        while not stream.eof and at < len(view):
            # One byte more than may come, so that a value that is too long is seen.
            decoded += stream.decompress(view[at : at + step], limit + 1 - len(decoded))
            if len(decoded) > limit:
                raise too_long(len(decoded), limit)
            at, step = at + step, 2 * step
        if not stream.eof:
            raise TruncatedError("the value ends early", found=f"{len(decoded)} bytes")
        at = min(at, len(view)) - len(stream.unused_data)
        if at == len(view):
            return decoded
        # Nearly all values are one stream. A decompressor copies what follows its stream in the
        # bytes that it is handed, so the others are handed a few at a time: many small streams must
        # not take quadratic time.
        decoded, step = bytearray(decoded), _STEP


def too_long(size: int, limit: int) -> CodecError:
    """Return the error for a value that decodes to more than the metadata allows."""
    return CodecError(
        "the value decodes to too many bytes", found=size, expected=f"at most {limit}"
    )
