"""What zfp streams are made of, beside what the package zfpy does (C-63)."""

from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrdask.codecs.numeric import native
from zarrdask.dtypes.ml import BITS, kind_of, limits, name_of
from zarrdask.errors import CodecError, MetadataError, UnsupportedError

Shape = tuple[int, ...]

#: zfp's numbers for the types that it has.
_TYPES = {"i4": 1, "i8": 2, "f4": 3, "f8": 4}
#: How many bits a length takes in a header, by the number of axes.
_WIDTHS = {1: 48, 2: 24, 3: 16, 4: 12}
_MAGIC = b"zfp\x05"
_MOST_BITS, _MOST_PRECISION, _LEAST_EXPONENT = 16658, 64, -1074
#: Of a header with all four parameters.
_HEADER_BITS = 148


class Parameters(NamedTuple):
    """What rules a stream: bits of a block, bit planes, and the lowest of them."""

    minbits: int
    maxbits: int
    maxprec: int
    minexp: int


def load(codec: str) -> Any:
    """Return the package zfpy.

    Raises
    ------
    UnsupportedError
        If it is not installed.
    """
    try:
        return import_module("zfpy")
    except ImportError as error:
        raise UnsupportedError(
            "this codec needs the package zfpy",
            key="codecs",
            found=codec,
            expected="pip install 'zarrdask[zfp]'",
        ) from error


def stored_type(dtype: np.dtype[Any], codec: str) -> np.dtype[Any]:
    """Return the one of zfp's four types that elements are stored as.

    Raises
    ------
    MetadataError
        If there is none.
    """
    kind = kind_of(dtype)
    if kind == "f":
        return np.dtype("f8" if dtype.itemsize == 8 else "f4")
    if kind in "iu":
        return np.dtype("i8" if dtype.itemsize == 8 else "i4")
    raise MetadataError(
        "this codec takes integers and floating-point numbers only",
        key=f"codec {codec}",
        found=str(dtype),
    )


def field_shape(shape: Shape, codec: str) -> Shape:
    """Return the shape of chunks as zfp sees it.

    Raises
    ------
    MetadataError
        If they have more than four axes.
    """
    if len(shape) > 4:
        raise MetadataError(
            "zfp has four axes at most", key=f"codec {codec}", found=shape, expected="reshape"
        )
    return shape or (1,)


def promote(chunk: np.ndarray, stored: np.dtype[Any]) -> np.ndarray:
    """Return a chunk as one of zfp's types, as other writers do.

    Raises
    ------
    CodecError
        If it has unsigned integers that they would cut off.
    """
    chunk = native(chunk)
    kind, bits = kind_of(chunk.dtype), _bits(chunk.dtype)
    if kind == "f" or (kind == "i" and bits >= 32):
        return chunk.astype(stored, copy=False)
    if bits >= 32:
        most = limits(stored)[1]
        if (chunk > most).any():
            raise CodecError(
                "zfp has no such integers",
                key="codec zfp",
                found=int(chunk.max()),
                expected=f"at most {most}",
            )
        return chunk.astype(stored)
    middle = 1 << (bits - 1) if kind == "u" else 0
    values = chunk.astype(f"{kind}{chunk.itemsize}").astype("i4")
    return (values - np.int32(middle)) << np.int32(31 - bits)


def demote(found: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Undo `promote`."""
    kind, bits = kind_of(dtype), _bits(dtype)
    if kind == "f" or (kind == "i" and bits >= 32):
        return found.astype(dtype, copy=False)
    values: np.ndarray
    if bits >= 32:
        values = np.maximum(found, 0)
        return values.astype(dtype)
    middle = 1 << (bits - 1) if kind == "u" else 0
    values = np.clip((found >> np.int32(31 - bits)) + np.int32(middle), *limits(dtype))
    return values.astype(f"{kind}{dtype.itemsize}").astype(dtype)


def _bits(dtype: np.dtype[Any]) -> int:
    return BITS.get(name_of(dtype) or "", dtype.itemsize * 8)


def bound(shape: Shape, stored: np.dtype[Any], minbits: int = 0) -> int:
    """Return the most bytes that a stream for such chunks can have."""
    blocks = prod(-(-n // 4) for n in shape)
    values: int = 4 ** len(shape)
    bits = max(32 + values * (stored.itemsize * 8 + 1), minbits)
    return blocks * bits // 8 + 64


def check_rate(rate: Any, ndim: int, stored: np.dtype[Any]) -> None:
    """Check that blocks get as many bits as zfp needs, and no more than it can count.

    The library takes any number, and then writes outside its memory.

    Raises
    ------
    MetadataError
        If not.
    """
    # A sign and an exponent come first.
    least = {"f4": 9, "f8": 12}.get(stored.str[1:], 1) / 4**ndim
    if not least <= rate <= _MOST_BITS:
        raise MetadataError(
            "not a permitted value",
            key="zfp.rate",
            found=rate,
            expected=f"{least} to {_MOST_BITS} bits for {stored} along {ndim} axes",
        )


def padded(data: Any, size: int, shape: Shape) -> np.ndarray:
    """Return a stream with zeros after it: the library reads as far as the stream tells it.

    Raises
    ------
    CodecError
        If it can't hold such chunks: each block takes a bit at least.
    """
    found = np.frombuffer(data, np.uint8)
    if 8 * len(found) < prod(-(-n // 4) for n in shape):
        raise CodecError("the stream is too short", key="codec zfp", found=f"{len(found)} bytes")
    room = np.zeros(max(size, len(found)), np.uint8)
    room[: len(found)] = found
    return room


def with_header(data: np.ndarray, shape: Shape, stored: np.dtype[Any], rules: Parameters) -> bytes:
    """Return a stream behind a header that says all of how to read it.

    Raises
    ------
    MetadataError
        If a header has no room for the shape.
    """
    width = _WIDTHS[len(shape)]
    if max(shape) > 1 << width:
        raise MetadataError(
            "too long for this mode of zfp", key="codec zfp", found=shape, expected=1 << width
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
    # The stream goes on in the middle of a byte: its lower half is the header's end.
    shifted = np.zeros(len(data) + 1, np.uint8)
    shifted[:-1] = data << np.uint8(4)
    shifted[1:] |= data >> np.uint8(4)
    start = head.to_bytes(_HEADER_BITS // 8 + 1, "little")
    shifted[0] |= start[-1]
    return start[:-1] + shifted.tobytes()


def read_header(data: Any) -> tuple[Shape, str]:
    """Return the shape and the type that the header of a stream tells.

    Raises
    ------
    CodecError
        If it is none.
    """
    start = bytes(data[:12])
    if len(start) < 12 or start[:3] != _MAGIC[:3]:
        raise CodecError("not a zfp stream", key="codec zfpy", found=start[:4])
    field = int.from_bytes(start[4:11], "little")
    types = {number: name for name, number in _TYPES.items()}
    ndim = (field >> 2 & 3) + 1
    width = _WIDTHS[ndim]
    lengths = [(field >> (4 + width * n) & ((1 << width) - 1)) + 1 for n in range(ndim)]
    return tuple(reversed(lengths)), types[(field & 3) + 1]


def simple(rules: Parameters, ndim: int) -> dict[str, Any] | None:
    """Return the one option of zfpy that means the same as all four, or None."""
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
