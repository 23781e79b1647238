"""The numbers of the package ml_dtypes: what NumPy can't tell of them, and how to get them."""

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from zarrdask.errors import UnsupportedError

#: The names, which are also v3's, and how many bits of an element mean something. All but
#: bfloat16 take one byte, of which these are the lowest bits.
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
    """Return the NumPy dtype of one of these types.

    Raises
    ------
    UnsupportedError
        If the package is not installed, or too old.
    """
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
    """Return the name if it is one of these types, in either byte order, else None."""
    kind = dtype.type
    return kind.__name__ if kind.__module__ == "ml_dtypes" and kind.__name__ in BITS else None


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return NumPy's letter for the kind of a dtype, also where NumPy itself says "V".

    >>> kind_of(np.dtype("<f4")), kind_of(np.dtype("V4"))
    ('f', 'V')
    """
    name = name_of(dtype)
    if name is None:
        return dtype.kind
    return {"i": "i", "u": "u"}.get(name[0], "f")


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the greatest number of an integer type."""
    name = name_of(dtype)
    if name is None:
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    bits = BITS[name]
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def nearest(value: float, dtype: np.dtype[Any]) -> Any:
    """Return the scalar of one of these float types that is nearest to a number, half to even.

    Raises
    ------
    OverflowError
        If there is none: the number is beyond the largest, or the type has no such thing
        (infinity, NaN, zero, a sign).
    """
    with np.errstate(all="ignore"):
        scalar = np.asarray(_odd_float32(value)).astype(dtype)[()]
        rounded = float(scalar)
    if math.isnan(value):
        is_representable = math.isnan(rounded)
    elif math.isinf(value):
        is_representable = rounded == value
    else:
        largest = float(import_module("ml_dtypes").finfo(dtype).max)
        is_representable = abs(value) <= largest and math.isfinite(rounded)
    if not is_representable:
        raise OverflowError(f"{dtype} has no {value}")
    return scalar


def _odd_float32(value: float) -> Any:
    """Return a number as float32, rounded so that rounding once more errs no more (to odd)."""
    narrow = np.float32(value)
    rounded = float(narrow)
    if rounded == value or math.isnan(value) or math.isinf(value):
        return narrow
    if abs(rounded) > abs(value):
        narrow = np.nextafter(narrow, np.float32(0))
    return (np.asarray(narrow).view("u4") | np.uint32(1)).view("f4")[()]
