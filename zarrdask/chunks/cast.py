"""Cast values to the data type of an array, with a range check."""

from functools import lru_cache
from typing import Any

import numpy as np

from zarrdask.chunks.stored import StoredChunks
from zarrdask.dtypes.ml import kind_of, limits
from zarrdask.errors import CodecError
from zarrdask.metadata.losses import dtype_label


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


def as_stored(values: np.ndarray, chunks: StoredChunks) -> np.ndarray:
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
        raise _outside(dtype).within(chunks.location) from error
    except CodecError as error:
        raise error.within(chunks.location) from None


def _check(values: np.ndarray, low: int, high: int, dtype: np.dtype[Any]) -> None:
    # NaN comes out of both, and is in no range.
    for found in (values.min().item(), values.max().item()):
        if not low - 1 < found < high + 1:
            raise _outside(dtype, found, f"{low} to {high}")


def _outside(dtype: np.dtype[Any], found: Any = None, expected: str | None = None) -> CodecError:
    return CodecError(
        f"a value is out of the range of {dtype_label(dtype)}", found=found, expected=expected
    )
