"""Durations (timedelta64) that are written to stored ones: in the stored units, or not at all."""

from functools import partial
from typing import Any

import numpy as np
from xarray import Variable, conventions

from zarrdask.arrays.chunks.cast import as_stored
from zarrdask.errors import MetadataError
from zarrdask.xarray.packing import map_values

#: The units of durations, in the singular and the plural.
_UNITS = frozenset(
    f"{unit}{ending}"
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond")
    for ending in ("", "s")
)


def changes_reading(old: Any, new: Any) -> bool:
    """Whether values with one of two ``units`` attributes are times, or may be read as durations.

    Numbers of hours are not stored beside numbers of days, but numbers without units may be.
    """
    if " since " in f"{old}{new}":
        return True
    return old is not None and new is not None and not _UNITS.isdisjoint((str(old), str(new)))


def with_resolution(variable: Variable, stored: Variable, name: str) -> Variable:
    """Return durations with the resolution of the stored ones, if these are durations, too."""
    if stored.dtype.kind != "m" or variable.dtype == stored.dtype:
        return variable
    dtype = stored.dtype
    cast = partial(as_stored, dtype=dtype, place=f"variable {name!r}", casting=None)
    return variable.copy(deep=False, data=map_values(variable.data, cast, dtype))


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
