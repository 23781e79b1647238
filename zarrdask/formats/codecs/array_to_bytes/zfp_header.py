"""The data types, parameters, headers and sizes of zfp streams (C-63)."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrdask.errors import CodecError, MetadataError, TruncatedError
from zarrdask.formats.codecs.codec import load_package, refused
from zarrdask.formats.codecs.numeric import native
from zarrdask.formats.dtypes.ml import BITS, kind_of, limits, name_of
from zarrdask.formats.grids.chunk_grid import Shape

#: The numbers of the data types of zfp.
_TYPES = {"i4": 1, "i8": 2, "f4": 3, "f8": 4}
#: The number of bits of each length in a header, by the number of axes.
_WIDTHS = {1: 48, 2: 24, 3: 16, 4: 12}
_MAGIC = b"zfp\x05"
_MOST_BITS, _MOST_PRECISION, _LEAST_EXPONENT = 16658, 64, -1074
#: The modes in a short header that are fixed rates, each one bit less than a block has.
_FIXED_RATES = 2048
_SHORT_HEADER_BITS = 96
#: The number of bits of a header with all four parameters.
_HEADER_BITS = 148


class Parameters(NamedTuple):
    """The parameters of a stream.

    Attributes
    ----------
    minbits, maxbits : int
        The minimum and maximum number of bits of a block.
    maxprec : int
        The maximum number of bit planes.
    minexp : int
        The exponent of the lowest bit plane.
    """

    minbits: int
    maxbits: int
    maxprec: int
    minexp: int


def load() -> Any:
    """Return the package zfpy."""
    return load_package("zfpy", "zfp")


def zfp_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the data type of zfp, one of four, in which elements are stored."""
    kind = kind_of(dtype)
    if kind == "f":
        return np.dtype("f8" if dtype.itemsize == 8 else "f4")
    if kind in "iu":
        return np.dtype("i8" if dtype.itemsize == 8 else "i4")
    raise refused(dtype, "integers or floating-point numbers")


def field_shape(shape: Shape) -> Shape:
    """Return the shape of chunks in zfp, which has at least one axis and at most four."""
    if len(shape) > 4:
        raise MetadataError(
            "zfp supports at most four axes; put the codec reshape before it", found=shape
        )
    return shape or (1,)


def promote(chunk: np.ndarray, stored: np.dtype[Any]) -> np.ndarray:
    """Return a chunk in a data type of zfp, in the same way as other writers."""
    chunk = native(chunk)
    kind, bits = kind_of(chunk.dtype), _bits(chunk.dtype)
    if kind == "f" or (kind == "i" and bits >= 32):
        return chunk.astype(stored, copy=False)
    if bits >= 32:
        most = limits(stored)[1]
        if (chunk > most).any():
            raise CodecError(
                "zfp can't store so large an unsigned integer",
                found=int(chunk.max()),
                expected=f"at most {most}",
            )
        return chunk.astype(stored)
    middle = 1 << (bits - 1) if kind == "u" else 0
    values = chunk.astype(f"{kind}{chunk.itemsize}").astype("i4")
    return (values - np.int32(middle)) << np.int32(31 - bits)


def demote(stored: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Undo `promote`."""
    kind, bits = kind_of(dtype), _bits(dtype)
    if kind == "f" or (kind == "i" and bits >= 32):
        return stored.astype(dtype, copy=False)
    values: np.ndarray
    if bits >= 32:
        values = np.maximum(stored, 0)
        return values.astype(dtype)
    middle = 1 << (bits - 1) if kind == "u" else 0
    values = np.clip((stored >> np.int32(31 - bits)) + np.int32(middle), *limits(dtype))
    return values.astype(f"{kind}{dtype.itemsize}").astype(dtype)


def _bits(dtype: np.dtype[Any]) -> int:
    return BITS.get(name_of(dtype) or "", dtype.itemsize * 8)


def bound(shape: Shape, stored: np.dtype[Any], minbits: int = 0) -> int:
    """Return the maximum size, in bytes, of the stream of a chunk."""
    values: int = 4 ** len(shape)
    bits = max(32 + values * (stored.itemsize * 8 + 1), minbits)
    return _block_count(shape) * bits // 8 + 64


def check_rate(rate: Any, ndim: int, stored: np.dtype[Any]) -> None:
    """Check that the number of bits of a block is within the limits of zfp.

    The library does not check it, and would write outside its memory.
    """
    # A block begins with a sign and an exponent.
    least = {"f4": 9, "f8": 12}.get(stored.str[1:], 1) / 4**ndim
    if not least <= rate <= _MOST_BITS:
        raise MetadataError(
            "this rate is not permitted",
            key="zfp.rate",
            found=rate,
            expected=f"{least} to {_MOST_BITS} bits for {stored} along {ndim} axes",
        )


def decode_whole(
    data: Any, size: int, least: int | None, decode: Callable[[Any], np.ndarray]
) -> np.ndarray:
    """Decode a stream, and check that it is not truncated.

    zfpy reads beyond the end of a truncated stream, and does not report how much it has read. If
    the size of a stream depends on its values, it is decoded with zeros behind it and with ones:
    the values differ if any of these bits were read.

    Parameters
    ----------
    data : bytes-like
        The stream.
    size : int
        The maximum size of the stream in bytes.
    least : int or None
        The minimum size in bytes, if it does not depend on the values.
    decode : callable
        The function that decodes a stream.
    """
    stream = np.frombuffer(data, np.uint8)
    if len(stream) < (least or 1):
        raise _truncated(len(stream))
    memory = np.zeros(max(size, len(stream)), np.uint8)
    memory[: len(stream)] = stream
    values = decode(memory)
    if least is None:
        memory[len(stream) :] = 0xFF
        if values.tobytes() != decode(memory).tobytes():
            raise _truncated(len(stream))
    return values


def _truncated(size: int) -> TruncatedError:
    return TruncatedError("the zfp stream is truncated", found=f"{size} bytes")


def fixed_size(shape: Shape, rate: float, header_bits: int = 0) -> int:
    """Return the size, in bytes, of a stream whose elements all have `rate` bits."""
    bits = int(rate * 4 ** len(shape) + 0.5)
    return -(-(header_bits + _block_count(shape) * bits) // 8)


def _block_count(shape: Shape) -> int:
    return prod(-(-n // 4) for n in shape)


def with_header(data: np.ndarray, shape: Shape, stored: np.dtype[Any], rules: Parameters) -> bytes:
    """Return a stream with a header that contains its shape, data type and parameters."""
    width = _WIDTHS[len(shape)]
    if max(shape) > 1 << width:
        raise MetadataError(
            "the chunk is too long for the mode 'expert' of zfp",
            found=shape,
            expected=f"at most {1 << width} elements along each axis",
        )
    field = 0
    for length in shape:
        field = field << width | (length - 1)
    field = field << 4 | (len(shape) - 1) << 2 | (_TYPES[stored.str[1:]] - 1)
    mode = min(max(rules.minexp + 16495, 0), 0x7FFF)
    mode = mode << 7 | min(max(rules.maxprec, 1), 0x80) - 1
    mode = mode << 15 | min(max(rules.maxbits, 1), 0x8000) - 1
    mode = mode << 15 | min(max(rules.minbits, 1), 0x8000) - 1
    head = int.from_bytes(_MAGIC, "little") | field << 32 | (mode << 12 | 0xFFF) << 84
    # The stream begins in the middle of a byte, whose lower half is the end of the header.
    shifted = np.zeros(len(data) + 1, np.uint8)
    shifted[:-1] = data << np.uint8(4)
    shifted[1:] |= data >> np.uint8(4)
    start = head.to_bytes(_HEADER_BITS // 8 + 1, "little")
    shifted[0] |= start[-1]
    return start[:-1] + shifted.tobytes()


def read_header(data: Any) -> tuple[Shape, str]:
    """Return the shape and the data type in the header of a stream."""
    start = bytes(data[:12])
    if len(start) < 12 or start[:3] != _MAGIC[:3]:
        raise CodecError("the value is not a zfp stream", found=start[:4])
    field = int.from_bytes(start[4:11], "little")
    types = {number: name for name, number in _TYPES.items()}
    ndim = (field >> 2 & 3) + 1
    width = _WIDTHS[ndim]
    lengths = [(field >> (4 + width * n) & ((1 << width) - 1)) + 1 for n in range(ndim)]
    return tuple(reversed(lengths)), types[(field & 3) + 1]


def size_in_header(data: Any, shape: Shape) -> int | None:
    """Return the size of a stream, in bytes, if its header has a fixed rate."""
    mode = int.from_bytes(data[10:12], "little") >> 4
    if mode >= _FIXED_RATES:
        return None
    return fixed_size(shape, (mode + 1) / 4 ** len(shape), _SHORT_HEADER_BITS)


def simple(rules: Parameters, ndim: int) -> dict[str, Any] | None:
    """Return the option of zfpy that is equivalent to four parameters, or None."""
    free = (1, _MOST_BITS, _MOST_PRECISION, _LEAST_EXPONENT)
    minbits, maxbits = max(rules.minbits, 1), min(rules.maxbits, _MOST_BITS)
    maxprec, minexp = min(rules.maxprec, _MOST_PRECISION), max(rules.minexp, _LEAST_EXPONENT)
    if minbits == maxbits and (maxprec, minexp) == free[2:]:
        return {"rate": maxbits / 4**ndim}
    if (minbits, maxbits, minexp) == (*free[:2], free[3]):
        return {"precision": maxprec}
    if (minbits, maxbits, maxprec) == free[:3]:
        return {"tolerance": 2.0**minexp}
    return None
