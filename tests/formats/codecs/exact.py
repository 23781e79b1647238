"""What `cast_value` should do, one number at a time, in exact fractions: slow and plain."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np

from zarrdask.formats.dtypes.ml import BITS, kind_of, limits

INTEGERS = [np.dtype(name) for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")] + [
    np.dtype(getattr(ml_dtypes, name)) for name in BITS if "int" in name
]
FLOATS = [np.dtype(name) for name in ("f2", "f4", "f8")] + [
    np.dtype(getattr(ml_dtypes, name)) for name in BITS if "float" in name
]


class OutOfRange(Exception):
    """There is no such number in the target type."""


def cast_one(value, dtype, rounding, out_of_range):
    """Return a number as another type: a `Fraction`, or a float that is NaN or infinite."""
    floating = kind_of(dtype) == "f"
    special = float(value) if kind_of(value.dtype) == "f" else 0.0
    if floating:
        info = (ml_dtypes if dtype.type.__module__ == "ml_dtypes" else np).finfo(dtype)
        low, high = Fraction(float(info.min)), Fraction(float(info.max))
        digits, step = int(info.nmant) + 1, Fraction(float(info.smallest_subnormal))
        found = np.array([np.inf, np.nan]).astype(dtype).astype("f8")
        infinite, nan = math.isinf(found[0]), math.isnan(found[1])
    else:
        low, high = map(Fraction, limits(dtype))
        infinite = nan = False
    if math.isnan(special):
        if not nan:
            raise OutOfRange
        return special
    if math.isinf(special):
        if infinite:
            return special
        if out_of_range != "clamp":
            raise OutOfRange
        return high if special > 0 else low
    exact = Fraction(special) if kind_of(value.dtype) == "f" else Fraction(int(value))
    unit = max(power_below(exact) / 2 ** (digits - 1), step) if floating else Fraction(1)
    rounded = round_to(exact, unit, rounding)
    if low <= rounded <= high:
        return rounded
    if out_of_range == "wrap":
        return (rounded - low) % (high - low + 1) + low
    if out_of_range != "clamp":
        raise OutOfRange
    if infinite:
        return math.copysign(math.inf, rounded)
    return high if rounded > high else low


def power_below(exact):
    """Return the greatest power of two that is not above a number's size; of 0 none, so 0."""
    if not exact:
        return Fraction(0)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= size else power / 2


def round_to(exact, unit, rounding):
    """Return the multiple of a unit that a number is rounded to."""
    below = math.floor(exact / unit)
    rest = exact / unit - below
    if rounding == "towards-negative" or not rest:
        up = False
    elif rounding == "towards-positive":
        up = True
    elif rounding == "towards-zero":
        up = exact < 0
    elif rest != Fraction(1, 2):
        up = rest > Fraction(1, 2)
    else:
        up = exact > 0 if rounding == "nearest-away" else below % 2 == 1
    return (below + up) * unit
