"""Durations (timedelta64) that are written to stored ones: in the stored units, or not at all."""

from functools import partial
from typing import Any

import numpy as np
from xarray import Variable, conventions

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.errors import MetadataError
from zarrdask.xarray.packing import map_values

#: NumPy's codes of the units of durations, which CF names in the singular or the plural.
_CODES = {
    "day": "D",
    "hour": "h",
    "minute": "m",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "us",
    "nanosecond": "ns",
}
_UNITS = _CODES | {f"{name}s": code for name, code in _CODES.items()}


def changes_reading(old: Any, new: Any) -> bool:
    """Whether values with one of two ``units`` attributes are times, or may be read as durations.

    Numbers of hours are not stored beside numbers of days, but numbers without units may be.
    """
    if " since " in f"{old}{new}":
        return True
    if old is None or new is None:
        return False
    return str(old) in _UNITS or str(new) in _UNITS


def check_kind(variable: Variable, stored: Variable, name: str) -> None:
    """Check that neither durations are stored among times, nor times among durations."""
    if {variable.dtype.kind, stored.dtype.kind} == {"m", "M"}:
        raise MetadataError(
            "durations can't be stored among times, nor times among durations",
            key=f"variable {name!r}",
            found=str(variable.dtype),
            expected=str(stored.dtype),
        )


def as_stored_durations(variable: Variable, stored: Variable, name: str) -> Variable:
    """Return durations with the resolution of the stored ones, if these are durations, too.

    Durations in memory must be multiples of the stored units, unless floating-point numbers are
    stored.
    """
    cast = partial(Casting.EXACT.cast, target=f"variable {name!r}")
    counts = np.dtype(stored.encoding.get("dtype", "i8")).kind in "iu"
    unit = _UNITS.get(str(stored.encoding.get("units")))
    if counts and unit is not None and variable.chunks is None:
        cast(np.asarray(variable.data), dtype=np.dtype(f"m8[{unit}]"))
    if stored.dtype.kind != "m" or variable.dtype == stored.dtype:
        return variable
    resolution = partial(cast, dtype=stored.dtype)
    data = map_values(variable.data, resolution, stored.dtype)
    return variable.copy(deep=False, data=data)


def check_durations(variable: Variable, encoded: Variable, name: str) -> None:
    """Check that durations in memory are read as they are from what encodes them."""
    if variable.chunks is not None:
        return
    back = conventions.decode_cf_variable(name, encoded, decode_timedelta=True)
    new, read = np.asarray(variable.data), np.asarray(back.data)
    different = (new != read) & ~(np.isnat(new) & np.isnat(read))
    if different.any():
        raise MetadataError(
            f"the stored units {encoded.attrs.get('units')!r} do not represent a new duration; "
            "convert it, or rewrite the stored variable with an encoding that does",
            key=f"variable {name!r}",
            found=str(new[different].flat[0]),
            expected=str(read[different].flat[0]),
        )
