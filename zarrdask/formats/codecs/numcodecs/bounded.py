"""Decompress with a limit, which numcodecs does not set: damaged data may contain any size."""

import bz2
import lzma
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from zarrdask.formats.codecs.array_to_bytes import zfp_header
from zarrdask.formats.codecs.codec import Buffer
from zarrdask.formats.codecs.streams import decompress_streams, too_long

# Bytes that a decompressor of LZMA may need in addition to its output: more than for any preset.
_MAX_DICTIONARY_BYTES = 2**28


def _bz2(data: Buffer, codec: Any, limit: int) -> Buffer:
    return decompress_streams(bz2.BZ2Decompressor, data, limit)


def _lzma(data: Buffer, codec: Any, limit: int) -> Buffer:
    memory = None if codec.format == lzma.FORMAT_RAW else _MAX_DICTIONARY_BYTES + limit

    def start() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(codec.format, memory, codec.filters)

    return decompress_streams(start, data, limit)


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
    least = zfp_header.size_in_header(data, shape)
    return zfp_header.decode_whole(data, most, least, codec.decode)


#: By the id in numcodecs: a function (data, numcodecs codec, limit) -> decoded bytes.
BOUNDED: dict[str, Callable[[Buffer, Any, int], Any]] = {
    "bz2": _bz2,
    "lz4": _lz4,
    "lzma": _lzma,
    "zfpy": _zfpy,
}
