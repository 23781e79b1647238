"""Ambiguous encodings of variables: accepted with one meaning and a warning, or refused.

They are the same whether a variable is written for the first time or appended.
"""

import warnings
from collections.abc import Hashable

import numpy as np
from xarray import Variable

from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE


def unambiguous(variable: Variable, name: Hashable) -> Variable:
    """Return a variable with its ``_FillValue`` in the encoding; check the encoding of dates."""
    _check_times(variable, name)
    if (
        variable.dtype == np.dtype("S1")
        and variable.ndim
        and "char_dim_name" not in (variable.encoding)
    ):
        warnings.warn(
            f"variable {name!r} has the data type S1, whose last dimension, {variable.dims[-1]!r}, "
            "readers of xarray join to one text; open it with concat_characters=False, or store "
            "it as S2",
            UserWarning,
            stacklevel=2,
        )
    return _with_own_fill(variable, name) if FILL_VALUE in variable.attrs else variable


def _check_times(variable: Variable, name: Hashable) -> None:
    """Check that dates are stored as counts of units, or in a data type of dates, but not both."""
    dtype = variable.encoding.get("dtype")
    counts = [key for key in ("units", "calendar") if variable.encoding.get(key) is not None]
    if counts and str(dtype).lstrip("<>=").startswith(("datetime64", "M8")):
        raise MetadataError(
            "dates are stored as counts of units, or in a data type of dates, but not both; leave "
            f"{' and '.join(counts)} out, or encode them with the dtype int64",
            key=f"variable {name!r}",
            found=f"dtype {dtype} with {counts[0]} {variable.encoding[counts[0]]!r}",
        )


def _with_own_fill(variable: Variable, name: Hashable) -> Variable:
    """Return a variable whose attribute ``_FillValue`` is part of the encoding, as CF means it."""
    fill, encoded = variable.attrs[FILL_VALUE], variable.encoding.get(FILL_VALUE, ...)
    if encoded is None:
        return variable
    if encoded is not ... and not np.array_equal(fill, encoded, equal_nan=_is_float(fill)):
        raise MetadataError(
            "the attribute _FillValue differs from the encoding, or from the stored variable; "
            "remove the attribute",
            key=f"variable {name!r}",
            found=fill,
            expected=repr(encoded),
        )
    variable = variable.copy(deep=False)
    variable.attrs = {key: value for key, value in variable.attrs.items() if key != FILL_VALUE}
    variable.encoding = {**variable.encoding, FILL_VALUE: fill}
    return variable


def _is_float(value: object) -> bool:
    return np.asarray(value).dtype.kind in "fc"
