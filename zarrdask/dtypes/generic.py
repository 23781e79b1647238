"""Users' values as arrays, also in the generic unit of time, which NumPy 2.5 deprecates."""

from typing import Any

import numpy as np


def as_array(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a user's value as an array of a dtype, by NumPy's rules.

    NumPy 2.5 deprecates the conversion of counts and texts to times in the generic unit, and will
    refuse it; but arrays with this unit exist. So their counts are reinterpreted as times here.

    Examples
    --------
    >>> as_array([1, 2], np.dtype("f4")), as_array([1, 2], np.dtype("m8")).view("i8")
    (array([1., 2.], dtype=float32), array([1, 2]))
    """
    if dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic":
        counts = _counts(value, dtype.kind)
        if counts is not None:
            return counts.astype(np.dtype("i8").newbyteorder(dtype.byteorder)).view(dtype)
    return np.array(value, dtype)


def _counts(value: Any, kind: str) -> np.ndarray | None:
    """Return a value as integer counts of a unit of time, or None if it is something else."""
    array = np.asarray(value)
    if array.dtype.kind in "SU":
        # NumPy reads the text of a count, or "NaT", as the same count in every unit.
        times = np.array(value, f"{kind}8[s]")
        return times.view("i8") if kind == "m" or np.isnat(times).all() else None
    return array if np.can_cast(array.dtype, np.int64) else None
