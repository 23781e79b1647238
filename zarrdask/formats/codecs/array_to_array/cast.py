"""Convert numbers to another data type with exact rounding, for the codec `cast_value` (C-57)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from math import frexp, inf
from typing import Any, Literal, get_args

import numpy as np

from zarrdask.errors import CodecError
from zarrdask.formats.dtypes.ml import kind_of, limits, name_of

Rounding = Literal[
    "nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"
]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
OutOfRange = Literal["clamp", "wrap"] | None


@dataclass(frozen=True)
class Floats:
    """The properties of a floating-point type.

    Attributes
    ----------
    digits : int
        The number of bits of the significand.
    quantum : int
        All numbers of the type are multiples of 2 to the power of this.
    least, most : float
        The lowest and the highest finite number.
    infinite, nan : bool
        Whether the type has infinities, and NaN.
    """

    digits: int
    quantum: int
    least: float
    most: float
    infinite: bool
    nan: bool


@lru_cache
def floats(dtype: np.dtype[Any]) -> Floats:
    """Return the properties of a floating-point dtype."""
    info = (import_module("ml_dtypes") if name_of(dtype) else np).finfo(dtype)
    special = np.array([np.inf, np.nan]).astype(dtype).astype("f8")
    return Floats(
        digits=int(info.nmant) + 1,
        quantum=frexp(float(info.smallest_subnormal))[1] - 1,
        least=float(info.min),
        most=float(info.max),
        infinite=bool(np.isinf(special[0])),
        nan=bool(np.isnan(special[1])),
    )


# NumPy would warn of signalling NaNs and of infinities, which this module checks itself.
@np.errstate(invalid="ignore", over="ignore", under="ignore")
def cast(
    values: np.ndarray, dtype: np.dtype[Any], rounding: Rounding, out_of_range: OutOfRange
) -> np.ndarray:
    """Convert integers or floats to another data type.

    Each number is first rounded, as if the range of the type had no end, and then brought into the
    range.

    Parameters
    ----------
    values : ndarray
        Integers or floats.
    dtype : numpy.dtype
        An integer or floating-point type. A NaN raises an error if the type has none.
    rounding : str
        How numbers are rounded that the type can't represent.
    out_of_range : {"clamp", "wrap"} or None
        How numbers outside the range of the type are converted: to the nearest number of the type,
        or to infinity if it has one; or modulo 2**bits, for integers only. None makes them errors.
    """
    # NumPy would convert arrays without axes to scalars.
    wide = _wide(values).reshape(-1)
    if kind_of(dtype) == "f":
        result = _to_floats(wide, dtype, rounding, out_of_range)
    elif wide.dtype.kind == "f":
        result = _to_integers(wide, dtype, rounding, out_of_range)
    else:
        result = _between_integers(wide, dtype, out_of_range)
    return result.reshape(values.shape)


def _wide(values: np.ndarray) -> np.ndarray:
    """Return the same numbers in a type of native byte order that NumPy can compute with."""
    kind = kind_of(values.dtype)
    if kind == "f" and (values.dtype.itemsize < 4 or name_of(values.dtype)):
        return values.astype("f4")
    if name_of(values.dtype):
        return values.astype("i1" if kind == "i" else "u1")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _out_of_range(values: np.ndarray, outside: np.ndarray, dtype: np.dtype[Any]) -> CodecError:
    return CodecError(
        f"a value is out of the range of {name_of(dtype) or dtype}",
        found=values[outside].flat[0].item(),
    )


# --------------------------------------------------------------------------------------------
# To integers


def _away(values: np.ndarray) -> np.ndarray:
    whole = np.trunc(values)
    # The difference is exact; adding a half to the value is not.
    half = values.dtype.type(0.5)
    step = np.copysign(values.dtype.type(1), values)
    rounded: np.ndarray = np.where(np.abs(values - whole) >= half, whole + step, whole)
    return rounded


_WHOLE: dict[Rounding, Callable[[np.ndarray], np.ndarray]] = {
    "nearest-even": np.rint,
    "towards-zero": np.trunc,
    "towards-positive": np.ceil,
    "towards-negative": np.floor,
    "nearest-away": _away,
}


def _to_integers(
    values: np.ndarray, dtype: np.dtype[Any], rounding: Rounding, out_of_range: OutOfRange
) -> np.ndarray:
    if np.isnan(values).any():
        raise CodecError(f"{name_of(dtype) or dtype} has no NaN")
    rounded = _WHOLE[rounding](values)
    low, high = limits(dtype)
    # These bounds are powers of two, which all floating-point types have, unlike the highest
    # integer.
    below, above = rounded < float(low), rounded >= float(high + 1)
    outside = below | above
    if not outside.any():
        return _integers(rounded, dtype)
    if out_of_range == "clamp":
        integers = _integers(np.where(outside, 0, rounded), dtype)
        integers[below], integers[above] = low, high
        return integers
    is_infinite = np.isinf(values)
    if out_of_range is None or is_infinite.any():
        raise _out_of_range(values, outside if out_of_range is None else is_infinite, dtype)
    rest = np.fmod(rounded, float(high - low + 1))
    size = np.abs(rest).astype("u8")
    return _wrapped(np.where(rest < 0, np.uint64(0) - size, size), dtype)


def _between_integers(
    values: np.ndarray, dtype: np.dtype[Any], out_of_range: OutOfRange
) -> np.ndarray:
    low, high = limits(dtype)
    lowest, highest = limits(values.dtype)
    if low <= lowest and highest <= high:
        return _integers(values, dtype)
    if out_of_range == "wrap":
        return _wrapped(values.astype("u8"), dtype)
    below, above = values < low, values > high
    outside = below | above
    if out_of_range is None and outside.any():
        raise _out_of_range(values, outside, dtype)
    integers = _integers(np.where(outside, 0, values), dtype)
    integers[below], integers[above] = low, high
    return integers


def _integers(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return integers within the range of a type as that type."""
    if name_of(dtype):
        values = values.astype("i1" if kind_of(dtype) == "i" else "u1")
    return values.astype(dtype)


def _wrapped(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return uint64 modulo 2**bits as integers of a type."""
    low, high = limits(dtype)
    rest = values & np.uint64(high - low)
    if low == 0:
        return _integers(rest, dtype)
    sign = np.uint64(high + 1)
    return _integers(((rest ^ sign) - sign).view("i8"), dtype)


# --------------------------------------------------------------------------------------------
# To floats


def _to_floats(
    values: np.ndarray, dtype: np.dtype[Any], rounding: Rounding, out_of_range: OutOfRange
) -> np.ndarray:
    target = floats(dtype)
    is_nan, is_infinite = np.isnan(values), np.isinf(values)
    if not target.nan and is_nan.any():
        raise CodecError(f"{name_of(dtype) or dtype} has no NaN")
    if rounding == "nearest-even" and dtype.kind == "f" and dtype.itemsize >= 4:
        rounded = values.astype(dtype.newbyteorder("="))
    else:
        rounded = _rounded(np.where(is_nan | is_infinite, 0, values), target, rounding)
        rounded = np.where(is_nan | is_infinite, values, rounded)
    outside = (rounded < target.least) | (rounded > target.most)
    if target.infinite:
        outside &= ~is_infinite
    if outside.any():
        if out_of_range != "clamp":
            raise _out_of_range(values, outside, dtype)
        most = inf if target.infinite else target.most
        least = -inf if target.infinite else target.least
        rounded = np.where(outside, np.where(rounded > target.most, most, least), rounded)
    return rounded.astype(dtype)


def _rounded(values: np.ndarray, target: Floats, rounding: Rounding) -> np.ndarray:
    """Return finite numbers as float64, rounded to the digits, but not the range, of a type."""
    size, scale, length = _parts(values)
    quantum = np.maximum(scale + length - target.digits, target.quantum)
    # With a shift of 63, each number is less than half of the quantum, as with a larger shift.
    shift = np.clip(quantum - scale, 0, 63).astype("u8")
    one = np.uint64(1)
    kept, rest = size >> shift, size & ((one << shift) - one)
    half = (one << shift) >> one
    negative = np.signbit(values) if values.dtype.kind == "f" else values < 0
    if rounding == "towards-positive":
        up = (rest > 0) & ~negative
    elif rounding == "towards-negative":
        up = (rest > 0) & negative
    elif rounding == "nearest-away":
        up = (rest >= half) & (shift > 0)
    elif rounding == "nearest-even":
        up = (rest > half) | ((rest == half) & (shift > 0) & (kept & one).astype(bool))
    else:
        up = np.zeros(values.shape, bool)
    rounded: np.ndarray = np.ldexp(
        (kept + up).astype("f8"), np.maximum(quantum, scale).astype("i4")
    )
    np.negative(rounded, where=negative, out=rounded)
    return rounded


def _parts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the size and scale of each absolute value, size * 2**scale, and the bits of size."""
    if values.dtype.kind == "f":
        fraction, exponent = np.frexp(np.abs(values.astype("f8")))
        return np.ldexp(fraction, 53).astype("u8"), exponent - 53, np.full(values.shape, 53)
    bits = values.astype("u8")
    size = np.where(values < 0, np.uint64(0) - bits, bits)
    return size, np.zeros(values.shape, "i8"), bit_length(size)


def bit_length(values: np.ndarray) -> np.ndarray:
    """Return the number of bits of each uint64, without leading zeros.

    >>> bit_length(np.array([0, 1, 255, 2**64 - 1], "u8")).tolist()
    [0, 1, 8, 64]
    """
    # In halves, because float64 would round numbers of more than 53 bits.
    high, low = values >> np.uint64(32), values & np.uint64(2**32 - 1)
    upper, lower = (np.frexp(half.astype("f8"))[1].astype("i8") for half in (high, low))
    lengths: np.ndarray = np.where(high > 0, upper + 32, lower)
    return lengths
