"""Values as another data type: what they lose is told, and none becomes another number silently."""

from functools import lru_cache
from typing import Any

import numpy as np

from zarrdask.chunkio import Chunks
from zarrdask.codecs.casting import floats
from zarrdask.dtypes.ml import kind_of, limits, name_of
from zarrdask.errors import CodecError
from zarrdask.hierarchy import location


def lost(before: np.dtype[Any], after: np.dtype[Any]) -> str | None:
    """Return what values may lose as another data type, in words, or None.

    >>> lost(np.dtype("f8"), np.dtype("f4"))
    'float64 as float32: digits may be lost'
    >>> lost(np.dtype("i2"), np.dtype("f4")) is None
    True
    """
    before, after = before.newbyteorder("="), after.newbyteorder("=")
    what = None if before == after else _lost(before, after)
    return what and f"{_name(before)} as {_name(after)}: {what}"


def _lost(before: np.dtype[Any], after: np.dtype[Any]) -> str | None:
    kinds = kind_of(before) + kind_of(after)
    if kinds in ("ff", "cc", "fc"):
        return None if _holds(after, before) else "digits may be lost"
    if kinds in ("if", "uf", "ic", "uc"):
        low, high = limits(before)
        most = max(-low - 1, high).bit_length()
        return None if most <= floats(_real(after)).digits else "digits may be lost"
    if kinds in ("fi", "fu"):
        return "fractions are cut off"
    if kinds in ("ci", "cu", "cf"):
        return "imaginary parts are dropped"
    if kinds in ("ii", "iu", "ui", "uu") or (kinds[0] == "b" and kinds[1] in "iufc"):
        return None  # see `as_stored`
    if kinds[1] == "b" and kinds[0] in "iufc":
        return "only whether they are zero is kept"
    if kinds in ("SS", "UU", "VV") and before.names is after.names is None:
        return None if before.itemsize <= after.itemsize else "the end is cut off"
    return None if np.can_cast(before, after, "safe") else "values may be changed"


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _holds(wide: np.dtype[Any], narrow: np.dtype[Any]) -> bool:
    """Whether a type has all numbers of another one."""
    one, other = floats(_real(wide)), floats(_real(narrow))
    return one.digits >= other.digits and one.quantum <= other.quantum and one.most >= other.most


def _name(dtype: np.dtype[Any]) -> str:
    return name_of(dtype) or str(dtype)


# --------------------------------------------------------------------------------------------
# Casting


@lru_cache
def _range(before: np.dtype[Any], after: np.dtype[Any]) -> tuple[int, int] | None:
    """Return the range of an integer type, if numbers of the other one can lie outside."""
    if kind_of(after) not in "iu" or kind_of(before) not in "iuf":
        return None
    low, high = limits(after)
    if kind_of(before) in "iu":
        least, most = limits(before)
        return None if low <= least and most <= high else (low, high)
    return low, high


def as_stored(values: np.ndarray, chunks: Chunks) -> np.ndarray:
    """Return values as the data type of an array; themselves, if they have it.

    Raises
    ------
    CodecError
        If a number is out of its range, or NaN where it has none.
    """
    dtype = chunks.metadata.dtype
    if values.dtype == dtype:
        return values
    try:
        limit = _range(values.dtype, dtype)
        if limit is not None and values.size:
            _check(values, *limit, dtype)
        with np.errstate(over="raise", invalid="ignore"):
            return values.astype(dtype)
    except FloatingPointError as error:
        raise _outside(dtype).within(location(chunks.store, chunks.prefix)) from error
    except CodecError as error:
        raise error.within(location(chunks.store, chunks.prefix)) from None


def _check(values: np.ndarray, low: int, high: int, dtype: np.dtype[Any]) -> None:
    # NaN comes out of both, and is in no range.
    for found in (values.min().item(), values.max().item()):
        if not low - 1 < found < high + 1:
            raise _outside(dtype, found, f"{low} to {high}")


def _outside(dtype: np.dtype[Any], found: Any = None, expected: str | None = None) -> CodecError:
    return CodecError(
        f"a value is out of the range of {_name(dtype)}", found=found, expected=expected
    )
