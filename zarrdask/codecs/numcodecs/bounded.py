"""Decompress with a limit, which numcodecs does not set: damaged data may contain any size."""

import bz2
import lzma
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_bytes import zfp_header
from zarrdask.codecs.base import Buffer
from zarrdask.errors import CodecError, TruncatedError

# Bytes that a decompressor of LZMA may need in addition to its output: more than for any preset.
_MAX_DICTIONARY_BYTES = 2**28
# The number of bytes that are first passed to the decompressor of a second or later stream.
_FIRST_STEP = 2**12


def _bz2(data: Buffer, codec: Any, limit: int) -> Buffer:
    return _streams(bz2.BZ2Decompressor, data, limit)


def _lzma(data: Buffer, codec: Any, limit: int) -> Buffer:
    memory = None if codec.format == lzma.FORMAT_RAW else _MAX_DICTIONARY_BYTES + limit
    return _streams(lambda: lzma.LZMADecompressor(codec.format, memory, codec.filters), data, limit)


def _lz4(data: Buffer, codec: Any, limit: int) -> Any:
    # The library would allocate the size that precedes the block (conformance A-58).
    size = int.from_bytes(data[:4], "little")
    if size > limit:
        raise too_long(size, limit)
    return codec.decode(data)


def _zfpy(data: Buffer, codec: Any, limit: int) -> Any:
    # The library uses the shape in the header, and reads beyond the end of damaged streams. It
    # checks itself that there is a header.
    if bytes(data[:3]) != b"zfp":
        return codec.decode(data)
    shape, kind = zfp_header.read_header(data)
    stored = np.dtype(kind)
    if prod(shape) * stored.itemsize > limit:
        raise too_long(prod(shape) * stored.itemsize, limit)
    most = zfp_header.bound(shape, stored, 2**16)
    return codec.decode(zfp_header.padded(data, most, shape))


#: By the id in numcodecs: a function (data, numcodecs codec, limit) -> decoded bytes.
BOUNDED: dict[str, Callable[[Buffer, Any, int], Any]] = {
    "bz2": _bz2,
    "lz4": _lz4,
    "lzma": _lzma,
    "zfpy": _zfpy,
}


def _streams(make: Callable[[], Any], data: Buffer, limit: int) -> Buffer:
    """Decompress one stream, or several that follow one another."""
    view = memoryview(data).cast("B")
    decoded: bytes | bytearray = b""
    at, step = 0, len(view)
    while True:
        stream = make()
        while not stream.eof and at < len(view):
            # One byte more than is permitted, to detect a value that is too long.
            decoded += stream.decompress(view[at : at + step], limit + 1 - len(decoded))
            if len(decoded) > limit:
                raise too_long(len(decoded), limit)
            at, step = at + step, 2 * step
        if not stream.eof:
            raise TruncatedError("the value ends early", found=f"{len(decoded)} bytes")
        at = min(at, len(view)) - len(stream.unused_data)
        if at == len(view):
            return decoded
        # Nearly all values are one stream. A decompressor copies the bytes that follow its stream,
        # so that the decompressors of others get few at a time. Otherwise the time would be
        # quadratic in the number of streams.
        decoded, step = bytearray(decoded), _FIRST_STEP


def too_long(size: int, limit: int) -> CodecError:
    """Return the error for a decoded value that is larger than the metadata permit."""
    return CodecError(
        "the decoded value has too many bytes", found=size, expected=f"at most {limit}"
    )
