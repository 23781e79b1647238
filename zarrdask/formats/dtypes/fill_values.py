"""Fill values: cast without loss, and compared with chunks; values of users as arrays."""

import operator
from enum import Enum
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.ml import kind_of, limits, name_of, nearest


class NoFillValue(Enum):
    """The type of `NO_FILL_VALUE`."""

    NO_FILL_VALUE = "null"

    def __repr__(self) -> str:
        return f"zarrdask.{self.name}"


#: The `fill_value` argument for an array without a fill value (null in its document), whose absent
#: chunks have undefined contents. Only Zarr v2 and the older dialect of the v3 draft have this, and
#: in these, None means the same.
NO_FILL_VALUE = NoFillValue.NO_FILL_VALUE


class DefaultFillValue(Enum):
    """The type of `DEFAULT_FILL_VALUE`."""

    DEFAULT_FILL_VALUE = "default"

    def __repr__(self) -> str:
        return self.name


#: The default of `fill_value` arguments: zeros.
DEFAULT_FILL_VALUE = DefaultFillValue.DEFAULT_FILL_VALUE


def zero(dtype: np.dtype[Any]) -> Any:
    """Return the default fill value of a dtype: all bytes are zero; for objects it is 0."""
    return 0 if dtype.hasobject else np.zeros((), dtype)[()]


def bad_fill(value: Any, expected: str) -> MetadataError:
    """Return the error for a fill value that is not valid."""
    return MetadataError("invalid fill value", key="fill_value", found=value, expected=expected)


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a user's fill value as a scalar of the dtype.

    An error is raised if the dtype can't hold it without loss (1.5 as an integer, 300 as uint8).
    """
    if dtype.hasobject:
        return value
    if dtype.names is not None and isinstance(value, tuple | dict | np.void):
        return _cast_fields(_parts(value, dtype.names), dtype)
    kind = kind_of(dtype)
    try:
        if kind in "iu":
            return dtype.type(exact(value, dtype))
        if kind == "b" and not (isinstance(value, bool | np.bool_ | int) and value in (0, 1)):
            raise bad_fill(value, "True or False")
        result = _cast(value, dtype)
        is_kept = result.shape == () and _is_lossless(value, result)
    except MetadataError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise bad_fill(value, f"a value of {dtype}") from error
    if not is_kept:
        raise bad_fill(value, f"a value of {dtype}")
    return result[()]


def _cast(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a value as a 0-d array, by NumPy's rules."""
    same = isinstance(value, np.generic) and value.dtype == dtype
    if name_of(dtype) is not None and not same:
        return np.asarray(nearest(float(value), dtype))
    with np.errstate(over="ignore"):
        return as_array(value, dtype)


def as_array(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a user's value as an array of a dtype, by NumPy's rules.

    NumPy 2.5 deprecates the conversion of counts and texts to times in the generic unit, and will
    refuse it; but arrays with this unit exist. So their counts are reinterpreted as times here.

    >>> as_array([1, 2], np.dtype("f4")), as_array([1, 2], np.dtype("m8")).view("i8")
    (array([1., 2.], dtype=float32), array([1, 2]))
    """
    if dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic":
        counts = _counts(value, dtype.kind)
        if counts is not None:
            return counts.astype(np.dtype("i8").newbyteorder(dtype.byteorder)).view(dtype)
    if name_of(dtype) is not None and kind_of(dtype) in "iu" and not hasattr(value, "dtype"):
        _check_bounds(np.asarray(value), dtype)
    return np.array(value, dtype)


def _check_bounds(numbers: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Check that numbers of Python are in the range of integers of ml_dtypes, as NumPy does."""
    low, high = limits(dtype)
    if numbers.size and not (low <= numbers.min() and numbers.max() <= high):
        raise OverflowError(f"Python integer out of bounds for {dtype}: {low} to {high}")


def _counts(value: Any, kind: str) -> np.ndarray | None:
    """Return a value as integer counts of a unit of time, or None if it is something else."""
    array = np.asarray(value)
    if array.dtype.kind in "SU":
        # NumPy reads the text of a count, or "NaT", as the same count in every unit.
        times = np.array(value, f"{kind}8[s]")
        return times.view("i8") if kind == "m" or np.isnat(times).all() else None
    return array if np.can_cast(array.dtype, np.int64) else None


def _parts(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a user's structured value as a dict with a value for each field."""
    if isinstance(value, np.void):
        value = {name: value[name] for name in value.dtype.names or ()}
    elif isinstance(value, tuple) and len(value) == len(names):
        value = dict(zip(names, value, strict=True))
    if not isinstance(value, dict) or set(value) != set(names):
        raise bad_fill(value, f"a value for each of {', '.join(names)}")
    return value


def _cast_fields(parts: dict[str, Any], dtype: np.dtype[Any]) -> Any:
    cell = np.zeros((), dtype)
    for name, part in parts.items():
        field = dtype[name]
        # NumPy broadcasts the value of a field of several elements.
        cell[name] = part if field.subdtype else cast(part, field)
    return cell[()]


def _is_lossless(value: Any, result: np.ndarray) -> bool:
    """Whether a value was cast without being truncated or becoming infinite."""
    if result.dtype.kind in "SUV" and isinstance(value, str | bytes):
        return len(value) * (4 if result.dtype.kind == "U" else 1) <= result.dtype.itemsize
    if result.dtype.kind in "SU" and isinstance(value, int | float | np.number):
        return bool(np.array(value, result.dtype.char) == result)
    if result.dtype.kind in "fc" and isinstance(value, np.timedelta64):
        return False
    if result.dtype.kind in "fc" and isinstance(value, int | float | complex | np.number):
        return bool(np.isfinite(result) or not np.isfinite(value))
    # A duration of NumPy is an `np.integer`, too, but it has a unit of its own.
    is_count = isinstance(value, int | np.integer | np.bool_)
    if result.dtype.kind in "mM" and (not is_count or isinstance(value, np.timedelta64)):
        if isinstance(value, str | bytes) and (result.dtype.kind == "m" or np.isnat(result)):
            return True  # a text of a count, or "NaT", has no unit of its own
        # The char without a unit makes NumPy choose the unit of the value itself.
        exact = np.array(value, result.dtype.char)
        return bool(np.isnat(exact) or exact == result)
    return True


def exact(value: Any, dtype: np.dtype[Any]) -> int:
    """Return a number as an integer, which must be one that the dtype can hold."""
    number = None if isinstance(value, complex | np.complexfloating) else int(value)
    if number is None or (isinstance(value, float | np.generic) and number != value):
        raise bad_fill(value, f"an integer for {dtype}")
    minimum, maximum = limits(dtype)
    if not minimum <= number <= maximum:
        raise bad_fill(value, f"{minimum} to {maximum} for {dtype}")
    return number


def only_fill(chunk: np.ndarray, fill: Any) -> bool:
    """Whether every element is the fill value, bit for bit (so -0.0 is not 0.0, and NaN is NaN)."""
    if not chunk.size:
        return True
    if chunk.dtype.hasobject:
        same = np.array_equal if isinstance(fill, np.ndarray) else operator.eq
        return all(type(item) is type(fill) and bool(same(item, fill)) for item in chunk.flat)
    fill_bytes = np.array(fill, chunk.dtype).tobytes()
    # Most chunks that hold data differ in the first element, so it is compared alone.
    first: Any = (*[slice(0, 1)] * chunk.ndim, ...)  # the ellipsis makes 0-d chunks arrays, too
    if chunk[first].tobytes() != fill_bytes:
        return False
    width = chunk.dtype.itemsize
    if width in (1, 2, 4, 8):
        unsigned = f"u{width}"
        return bool((chunk.view(unsigned) == np.frombuffer(fill_bytes, unsigned)[0]).all())
    rows = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).reshape(-1, width)
    return bool((rows == np.frombuffer(fill_bytes, np.uint8)).all())
