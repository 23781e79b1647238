"""Appends that are probably a mistake: other units, or an index that does not continue."""

import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from xarray import Variable

from zarrdask import config
from zarrdask.errors import MetadataError
from zarrdask.xarray.writing.existing import StoredDataset

_SETTING = "the setting zarrdask.append-checks"


def check_append(stored: StoredDataset, dim: Hashable, variables: Mapping[str, Variable]) -> None:
    """Report what an append along a dimension would change without saying so.

    ``zarrdask.append-checks`` says whether that is a warning, an error, or nothing.
    """
    level = config.get("append-checks")
    if level == "off":
        return
    for name, variable in variables.items():
        if dim in variable.dims and name in stored.arrays:
            _check_units(stored, name, variable, level)
    index = variables.get(str(dim))
    if index is not None and index.dims == (dim,) and str(dim) in stored.arrays:
        _check_continues(stored, str(dim), index, level)


def _check_units(stored: StoredDataset, name: str, variable: Variable, level: str) -> None:
    """Check that numbers are appended in the units that the stored ones have."""
    old = stored.arrays[name].metadata.attributes.get("units")
    new = variable.attrs.get("units")
    # Times have units in their encoding, which `encode_as_stored` compares.
    if old is None or new is None or str(old).strip() == str(new).strip():
        return
    _report(
        "the values to append have other units than the stored ones, and the stored attribute "
        "stays; convert the values first",
        level,
        key=f"variable {name!r}: units",
        found=new,
        expected=repr(old),
    )


def _check_continues(stored: StoredDataset, name: str, index: Variable, level: str) -> None:
    """Check that an index goes on behind the stored one, in its direction."""
    if index.chunks is not None or index.dtype.kind not in "iufmM" or not index.size:
        return
    after = _without_nan(np.asarray(index.values))
    before = _without_nan(stored.last_values(name, max(after.size, 2)))
    kinds = {before.dtype.kind, after.dtype.kind}
    if not (before.size and after.size) or (len(kinds) > 1 and not kinds <= {*"iuf"}):
        return
    falls = before.size > 1 and before[-2] > before[-1]
    last, first = before[-1], after[0]
    if (first < last) if falls else (first > last):
        return
    text = "the values to append do not continue the stored index"
    if np.array_equal(before[-after.size :], after):
        text = "the stored index ends with these values already; was this append made before?"
    _report(
        text,
        level,
        key=f"coordinate {name!r}",
        found=str(first),
        expected=f"a value {'below' if falls else 'above'} {last}, the last one stored",
    )


def _without_nan(values: np.ndarray) -> np.ndarray:
    valid: np.ndarray = values[values == values]  # noqa: PLR0124 - neither NaN nor NaT equals itself
    return valid


def _report(text: str, level: str, **fields: Any) -> None:
    choice = "'error' raises an error, and 'off' omits the check"
    if level == "error":
        raise MetadataError(f"{text} ({_SETTING} is 'error')", **fields)
    warnings.warn(f"{MetadataError(text, **fields)} ({_SETTING}: {choice})", stacklevel=2)
