"""Cast values to another data type; raise an error where a value would change.

Digits and fractions of numbers may be rounded. Everything else must be kept: the range of numbers,
NaN, imaginary parts, all characters of a text, and times exactly. Numbers, times and durations do
not become each other, as numbers have no unit.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from zarrdask.errors import CodecError
from zarrdask.formats.dtypes.ml import kind_of, largest, limits, name_of

Cast = Callable[[np.ndarray], np.ndarray]
_INTEGERS = np.dtype("i8")


def checked_cast(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return values in another data type; the same object if they have it already.

    Raises
    ------
    CodecError
        If a value would become another one.
    """
    if values.dtype == dtype:
        return values
    cast = _find_cast(values.dtype, dtype)
    try:
        if cast is None:
            return values.astype(dtype)
        return cast(values)
    except CodecError:
        raise
    except (TypeError, ValueError, OverflowError, FloatingPointError) as error:
        raise _lossy(values.dtype, dtype, str(error)) from error


def check_meaning(before: np.dtype[Any], after: np.dtype[Any]) -> None:
    """Check that numbers, times and durations do not become each other, for any values.

    Texts and objects may be times.
    """
    kinds = {kind_of(before), kind_of(after)}
    if len(kinds) == 2 and kinds & {*"mM"} and not kinds & {*"SUOT"}:
        raise _other_meaning(before, after)


def _other_meaning(before: np.dtype[Any], after: np.dtype[Any]) -> CodecError:
    if {before.kind, after.kind} == {*"mM"}:
        why = "a duration is not a time"
    elif before.kind == after.kind:
        why = "one of them has no unit of time"
    elif after.kind in "mM":
        why = f"the values have no unit of time; .astype({str(after)!r}) sets it"
    else:
        why = "the unit of time would be lost; .view('i8') returns the counts"
    return _lossy(before, after, why)


def _label(dtype: np.dtype[Any]) -> str:
    return name_of(dtype) or str(dtype)


_ADVICE = (
    "choose another data type, or convert the values first (zarrdask.casting = 'numpy' permits all "
    "casts of NumPy)"
)


def _lossy(
    before: np.dtype[Any], after: np.dtype[Any], why: str, found: Any = None, expected: Any = None
) -> CodecError:
    return CodecError(
        f"values of {_label(before)} can't be stored as {_label(after)}: {why}; {_ADVICE}",
        found=found,
        expected=expected,
    )


def _out_of_range(dtype: np.dtype[Any], found: Any, expected: str | None = None) -> CodecError:
    return CodecError(
        f"a value is out of the range of {_label(dtype)}; {_ADVICE}",
        found=found,
        expected=expected,
    )


def _plain(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast as NumPy does."""
    return values.astype(dtype, copy=False)


@lru_cache(maxsize=256)
def _find_cast(before: np.dtype[Any], after: np.dtype[Any]) -> Cast | None:
    """Return the function that checks and casts values; None if no value can be lost."""
    if before.names is not None and after.names is not None:
        return partial(_fields, dtype=after)
    kinds = kind_of(before) + kind_of(after)
    if kinds[0] in "OT" or kinds[1] == "O":
        return None if kinds[1] in "OT" else partial(_from_objects, dtype=after)
    if kinds[0] in "mM" or kinds[1] in "mM":
        return _cast_of_times(before, after, kinds)
    if kinds[0] in "biufc" and kinds[1] in "biufc":
        return _cast_of_numbers(before, after, kinds)
    if kinds[0] in "SU" and kinds[1] in "SU":
        is_longer = _width(before) > _width(after)
        return partial(_texts if is_longer else _plain, dtype=after)
    if kinds[0] in "SU" and kinds[1] in "iufc":
        return partial(_through, dtype=after, wide=np.dtype(_WIDEST[kinds[1]]))
    if kinds[0] in "biufc" and kinds[1] in "SU":
        return partial(_through, dtype=after, wide=np.dtype("U"))
    return None if kinds[1] == "T" else partial(_reversible, dtype=after)


#: The data type of the widest numbers of each kind: that in which numbers are read from texts.
_WIDEST = {"i": "i8", "u": "u8", "f": "f8", "c": "c16"}


def _through(values: np.ndarray, *, dtype: np.dtype[Any], wide: Any) -> np.ndarray:
    """Cast to a type that can represent all values, then to the requested one."""
    return checked_cast(values.astype(wide), dtype)


def _reversible(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast by a rule that is unknown here: casting back must restore the values."""
    result = values.astype(dtype)
    if not np.array_equal(result.astype(values.dtype), values):
        raise _lossy(values.dtype, dtype, "values would change")
    return result


def _fields(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast structured values field by field, by position, as NumPy does."""
    before, after = values.dtype.names or (), dtype.names or ()
    if len(before) != len(after) or (before != after and {*before} == {*after}):
        raise _lossy(values.dtype, dtype, "the fields differ", list(before), list(after))
    result = np.zeros(values.shape, dtype)
    for old, new in zip(before, after, strict=True):
        if values[old].shape != result[new].shape:
            raise _lossy(values.dtype, dtype, f"the field {new!r} has another shape")
        result[new] = checked_cast(values[old], dtype[new].base)
    return result


# --------------------------------------------------------------------------------------------
# Numbers


def _cast_of_numbers(before: np.dtype[Any], after: np.dtype[Any], kinds: str) -> Cast | None:
    if kinds[1] == "b":
        return partial(_booleans, dtype=after)
    if kinds[0] == "c" and kinds[1] != "c":
        return partial(_real_parts, dtype=after)
    if kinds[1] in "iu":
        return None if kinds[0] == "b" else _cast_to_integers(before, after, kinds)
    if name_of(after) is not None:
        return partial(_small_floats, dtype=after)
    return None if np.can_cast(before, after, "safe") else partial(_floats, dtype=after)


def _cast_to_integers(before: np.dtype[Any], after: np.dtype[Any], kinds: str) -> Cast | None:
    low, high = limits(after)
    if kinds[0] == "f":
        return partial(_in_range, dtype=after, low=low, high=high)
    lowest, highest = limits(before)
    if low <= lowest and highest <= high:
        return None
    return partial(
        _in_range,
        dtype=after,
        low=low if lowest < low else None,
        high=high if high < highest else None,
    )


def _in_range(
    values: np.ndarray, *, dtype: np.dtype[Any], low: int | None, high: int | None
) -> np.ndarray:
    """Cast to integers; None is for a limit that no value can exceed."""
    if values.size:
        numbers = values.astype("f4") if name_of(values.dtype) else values
        # If a value is NaN, so are the minimum and the maximum, and NaN is in no range.
        extremes = [
            getattr(numbers, method)().item()
            for method, limit in (("min", low), ("max", high))
            if limit is not None
        ]
        least, most = limits(dtype)
        for extreme in extremes:
            if not least - 1 < extreme < most + 1:
                raise _out_of_range(dtype, extreme, f"{least} to {most}")
    return values.astype(dtype)


def _booleans(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    result = values.astype(dtype)
    different = values != result.astype("i1")
    if different.any():
        example = values[different].flat[0]
        raise _lossy(values.dtype, dtype, "values other than 0 and 1 would change", example)
    return result


def _real_parts(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    if values.imag.any():
        example = values[values.imag != 0].flat[0]
        raise _lossy(values.dtype, dtype, "imaginary parts would be dropped", example)
    return checked_cast(values.real, dtype)


def _floats(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    try:
        with np.errstate(over="raise", invalid="ignore", under="ignore"):
            return values.astype(dtype)
    except FloatingPointError as error:
        finite = values[np.isfinite(values)]
        example = max(finite.reshape(-1).tolist(), key=abs, default=None)
        raise _out_of_range(dtype, example) from error


def _small_floats(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast to a type of ml_dtypes; some have no infinity, NaN, zero, or negative numbers."""
    with np.errstate(all="ignore"):
        result = values.astype(dtype)
        # Such as float16, whose own limits could be less than the limits of the other type.
        old, new = values.astype("f8"), result.astype("f8")
    changed = (np.isnan(old) != np.isnan(new)) | (np.isinf(old) != np.isinf(new))
    changed |= (np.abs(old) > largest(dtype)) & np.isfinite(old)
    changed |= (old < 0) & (new > 0) | (old == 0) & (new != 0)
    if changed.any():
        raise _out_of_range(dtype, old[changed].flat[0])
    return result


# --------------------------------------------------------------------------------------------
# Times


def _cast_of_times(before: np.dtype[Any], after: np.dtype[Any], kinds: str) -> Cast:
    if kinds in ("mm", "MM"):
        units = np.datetime_data(before), np.datetime_data(after)
        if kinds == "mm" and [unit for unit, _ in units].count("generic") == 1:
            return partial(_missing, dtype=after)
        return partial(_plain if units[0] == units[1] else _times, dtype=after)
    if kinds in ("SM", "UM"):
        return partial(_through, dtype=after, wide=np.dtype("M8"))
    if kinds in ("Sm", "Um"):
        return partial(_missing, dtype=after)
    if kinds in ("MS", "MU"):
        return partial(_through, dtype=after, wide=np.dtype("U"))
    return partial(_refused, dtype=after)


def _refused(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    raise _other_meaning(values.dtype, dtype)


def _missing(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast texts, or durations without a unit, to durations: NaT, as all others need a unit."""
    if not np.isnat(values if values.dtype.kind == "m" else values.astype("m8[s]")).all():
        raise _other_meaning(values.dtype, dtype)
    counts = np.dtype("i8").newbyteorder(dtype.byteorder)
    return np.full(values.shape, np.iinfo(np.int64).min, counts).view(dtype)


def _times(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast to another unit. Values that are cut off, or exceed 64 bits, are not restored."""
    result = values.astype(dtype)
    changed = result.astype(values.dtype) != values
    changed &= ~np.isnat(values)
    if changed.any():
        example = values[changed].flat[0]
        raise _lossy(values.dtype, dtype, "the unit does not represent a value exactly", example)
    return result


# --------------------------------------------------------------------------------------------
# Texts and objects


def _width(dtype: np.dtype[Any]) -> int:
    """Return the number of characters of a fixed-length text."""
    return dtype.itemsize // (4 if dtype.kind == "U" else 1)


def _texts(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    if values.size:
        lengths = np.strings.str_len(values)
        if lengths.max() > _width(dtype):
            example = values[lengths == lengths.max()].flat[0].item()
            raise _lossy(
                values.dtype, dtype, "a text would be cut off", example, f"length {_width(dtype)}"
            )
    return values.astype(dtype)


def _from_objects(values: np.ndarray, *, dtype: np.dtype[Any]) -> np.ndarray:
    """Cast objects of Python, and texts of any length."""
    items = [item.to_numpy() if hasattr(item, "to_numpy") else item for item in values.flat]
    kind = kind_of(dtype)
    if kind in "mM":
        if any(_has_other_meaning(item, kind) for item in items):
            raise _other_meaning(values.dtype, dtype)
        return checked_cast(np.array(items, f"{kind}8").reshape(values.shape), dtype)
    if kind in "fc":  # as NumPy and pandas do
        items = [np.nan if item is None else item for item in items]
    if kind == "S":
        items = [item.encode("ascii") if isinstance(item, str) else item for item in items]
    if kind not in "SU":
        numbers = np.array(items).reshape(values.shape)
        if not numbers.dtype.hasobject:
            return checked_cast(numbers, dtype)
    result = np.array(items, object).reshape(values.shape).astype(dtype)
    for old, new in zip(items, result.reshape(-1).tolist(), strict=True):
        if old != new:
            raise _lossy(values.dtype, dtype, "an object would become another value", old, new)
    return result


def _has_other_meaning(item: Any, kind: str) -> bool:
    """Whether NumPy would take an object of another kind for a time or a duration."""
    if isinstance(item, str | bytes):
        return kind == "m" and not np.isnat(np.timedelta64(item, "s"))
    return getattr(item, "dtype", _INTEGERS).kind != kind and isinstance(item, int | np.generic)
