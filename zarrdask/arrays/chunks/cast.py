"""Values as an array stores them: which casts are permitted, and which values fit."""

from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from zarrdask import config
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.errors import CodecError, UnsupportedError
from zarrdask.formats.dtypes.ml import kind_of, limits
from zarrdask.formats.metadata.losses import dtype_label


class HasLocation(Protocol):
    """What has a location, which is rendered for errors only."""

    @property
    def location(self) -> str: ...


#: The smallest data type of each kind of Python's numbers.
_SMALLEST = {"b": "?", "i": "i1", "u": "i1", "f": "f2", "c": "c8"}


def check_cast(before: np.dtype[Any], after: np.dtype[Any], place: HasLocation | str) -> None:
    """Check that the setting ``zarrdask.casting`` permits to write values to an array.

    `place` is the array, or the argument, that an error names.

    The data types alone decide. Codecs of objects and of text check each value.
    """
    if before == after or (before.kind in "OTU" and after.kind in "OT"):
        return
    casting = config.get("casting")
    if casting not in (None, "numpy") and not np.can_cast(before, after, casting):
        raise CodecError(
            "the setting zarrdask.casting does not permit writing values of this data type to the "
            f"array; convert them first, by astype({dtype_label(after)!r}), or set it to 'numpy'",
            key=place if isinstance(place, str) else place.location,
            found=dtype_label(before),
            expected=f"a data type that NumPy casts to {dtype_label(after)} by {casting!r}",
        )


def is_unchecked() -> bool:
    """Whether rewrites cast values that are out of range, as writes do: if the setting is set."""
    return config.get("casting") is not None


def check_value_cast(value: Any, after: np.dtype[Any], place: HasLocation) -> None:
    """Check that the setting permits writing a value of NumPy or Python, which can be converted.

    As in NumPy, a number of Python has a kind but no size: 1 is safe as int8, and 1.5 as float32.
    Whether it is in the range of the data type was checked when it was converted.
    """
    before = getattr(value, "dtype", None)
    if before is None:
        if config.get("casting") in (None, "numpy"):
            return
        before = np.asarray(value).dtype
        smallest = _SMALLEST.get(before.kind) if _is_plain(value) else None
        if smallest is not None and (
            _SMALLEST.get(kind_of(after)) == smallest or np.can_cast(smallest, after)
        ):
            return
    check_cast(before, after, place)


def check_mask(values: Any, place: HasLocation | str) -> None:
    """Check that no element is masked; a Dask array must not have blocks with masks at all.

    A stored array has no mask: what is below it would be stored as if it were valid.
    """
    meta = getattr(values, "_meta", None)
    if isinstance(meta, np.ma.MaskedArray) or (
        isinstance(values, np.ma.MaskedArray) and any(np.ma.getmaskarray(values).tobytes())
    ):
        raise UnsupportedError(
            "masked elements can't be stored; replace them by a value first, such as the fill "
            "value of the array: numpy.ma.filled(x, 0), or dask.array.ma.filled(x, 0) of a Dask "
            "array",
            key=place if isinstance(place, str) else place.location,
            found=type(values if meta is None else meta).__name__,
        )


def _is_plain(value: Any) -> bool:
    """Whether a value or a nested list has numbers of Python only, and none of NumPy."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return not hasattr(value, "dtype")


@lru_cache
def _range_to_check(before: np.dtype[Any], after: np.dtype[Any]) -> tuple[int, int] | None:
    """Return the range of an integer type, or None if no value of the other type is outside it."""
    if kind_of(after) not in "iu" or kind_of(before) not in "iuf":
        return None
    low, high = limits(after)
    if kind_of(before) in "iu":
        lowest, highest = limits(before)
        return None if low <= lowest and highest <= high else (low, high)
    return low, high


def as_stored(values: np.ndarray, chunks: StoredChunks, *, unchecked: bool = False) -> np.ndarray:
    """Return values cast to the data type of an array; the same object if they have it already.

    If they are unchecked, all are cast as NumPy does.

    Raises
    ------
    CodecError
        If a number is outside the range of the data type, or is NaN and the type has none.
    """
    dtype = chunks.metadata.dtype
    if values.dtype == dtype:
        return values
    if unchecked:
        return values.astype(dtype)
    try:
        limit = _range_to_check(values.dtype, dtype)
        if limit is not None and values.size:
            _check_range(values, *limit, dtype)
        with np.errstate(over="raise", invalid="ignore"):
            return values.astype(dtype)
    except FloatingPointError as error:
        raise _out_of_range(dtype).within(chunks.location) from error
    except CodecError as error:
        raise error.within(chunks.location) from None


def _check_range(values: np.ndarray, low: int, high: int, dtype: np.dtype[Any]) -> None:
    # If a value is NaN, so are the minimum and the maximum, and NaN is in no range.
    for extreme in (values.min().item(), values.max().item()):
        if not low - 1 < extreme < high + 1:
            raise _out_of_range(dtype, extreme, f"{low} to {high}")


def _out_of_range(
    dtype: np.dtype[Any], value: Any = None, expected: str | None = None
) -> CodecError:
    return CodecError(
        f"a value is out of the range of {dtype_label(dtype)}; choose another data type, or clip "
        "the values first",
        found=value,
        expected=expected,
    )
