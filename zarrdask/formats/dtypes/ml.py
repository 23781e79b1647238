"""The number types of the package ml_dtypes: their names, kinds, limits and rounding."""

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from zarrdask.errors import UnsupportedError

#: The names of the types, in ml_dtypes and in v3, and the number of bits that they use. All but
#: bfloat16 take one byte, and use its lowest bits.
BITS: Mapping[str, int] = {
    "bfloat16": 16,
    "float8_e3m4": 8,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 8,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float4_e2m1fn": 4,
    "int2": 2,
    "uint2": 2,
    "int4": 4,
    "uint4": 4,
}


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype with a name in `BITS`, if ml_dtypes is installed and has it."""
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), name))
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            "this data type needs the package ml_dtypes",
            key="data_type",
            found=name,
            expected="pip install 'zarrdask[ml_dtypes]'",
        ) from error
    return dtype


def name_of(dtype: np.dtype[Any]) -> str | None:
    """Return the name of a type of ml_dtypes, in either byte order, or None for other types."""
    kind = dtype.type
    return kind.__name__ if kind.__module__ == "ml_dtypes" and kind.__name__ in BITS else None


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return NumPy's letter for the kind of a dtype; for types of ml_dtypes NumPy has only "V".

    >>> kind_of(np.dtype("<f4")), kind_of(np.dtype("V4"))
    ('f', 'V')
    """
    name = name_of(dtype) if dtype.kind == "V" else None
    return dtype.kind if name is None else {"i": "i", "u": "u"}.get(name[0], "f")


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type."""
    name = name_of(dtype)
    if name is None:
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    bits = BITS[name]
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def nearest(value: float, dtype: np.dtype[Any]) -> Any:
    """Return a number, rounded half to even, as a scalar of a float type of ml_dtypes.

    It is an OverflowError if the number is beyond the largest of the type, or if the type has no
    infinity, NaN, zero or negative numbers.
    """
    with np.errstate(all="ignore"):
        scalar = np.asarray(_odd_float32(value)).astype(dtype)[()]
        rounded = float(scalar)
    if math.isnan(value):
        is_representable = math.isnan(rounded)
    elif math.isinf(value):
        is_representable = rounded == value
    else:
        is_representable = abs(value) <= largest(dtype) and math.isfinite(rounded)
    if not is_representable:
        raise OverflowError(f"{dtype} can't represent {value}")
    return scalar


def _odd_float32(value: float) -> Any:
    """Return a number as float32, rounded to odd, so that rounding it again is correct."""
    narrow = np.float32(value)
    rounded = float(narrow)
    if rounded == value or math.isnan(value) or math.isinf(value):
        return narrow
    if abs(rounded) > abs(value):
        narrow = np.nextafter(narrow, np.float32(0))
    return (np.asarray(narrow).view("u4") | np.uint32(1)).view("f4")[()]


def largest(dtype: np.dtype[Any]) -> float:
    """Return the largest number of a float type of ml_dtypes."""
    return float(import_module("ml_dtypes").finfo(dtype).max)
