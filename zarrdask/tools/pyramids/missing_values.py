"""Which values of an array count as missing, by its attributes; and the default method. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from zarrdask.errors import MetadataError, one_of
from zarrdask.formats.dtypes.cf_fill_values import decode_fill_value
from zarrdask.formats.dtypes.ml import kind_of
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.tools.conventions.labels import LABELS
from zarrdask.tools.pyramids.kernels import Missing

#: The attributes of CF that name missing values.
_NAMES = ("_FillValue", "missing_value")
#: The attributes of arrays whose numbers stand for something else, such as classes of land use.
_LABELS = ("flag_values", "flag_meanings", "flag_masks", "image-label")


def find_missing(
    metadata: ArrayMetadata, method: str, *, skipna: bool | Literal["fill"]
) -> Missing | None:
    """Return the missing values of an array; None if windows take all values as they are."""
    one_of(skipna, "skipna", (True, False, "fill"))
    dtype, kind = metadata.dtype, kind_of(metadata.dtype)
    if skipna is False or method == "nearest" or kind not in "iufc":
        return None
    values = [
        value for name in _NAMES for value in _in_attribute(metadata.attributes.get(name), dtype)
    ]
    if skipna == "fill":
        values += _numbers(metadata.fill, dtype)
    values = [value for value in values if value == value]  # noqa: PLR0124 - NaN is no number
    has_nan = kind in "fc"
    if not (values or has_nan):
        return None
    return Missing(tuple(dict.fromkeys(values)), has_nan, values[0] if values else np.nan)


def _in_attribute(value: Any, dtype: np.dtype[Any]) -> list[Any]:
    """Return the numbers in an attribute; xarray stores some in base64."""
    if isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], str)):
        try:
            value = decode_fill_value(value, dtype)
        except MetadataError:
            return []
    return _numbers(value, dtype)


def _numbers(value: Any, dtype: np.dtype[Any]) -> list[Any]:
    """Return the numbers that the data type represents, as it rounds them."""
    if value is None or isinstance(value, str | bytes | Mapping):
        return []
    kind = kind_of(dtype)
    try:
        numbers = np.atleast_1d(np.asarray(value))
        with np.errstate(all="ignore"):
            cast = numbers.astype(dtype).astype({"f": "f8", "c": "c16"}.get(kind, dtype))
            is_kept = np.isfinite(cast) | ~np.isfinite(numbers) if kind in "fc" else cast == numbers
    except (ValueError, TypeError, OverflowError):
        return []
    return [number for number, kept in zip(cast.tolist(), is_kept, strict=True) if kept]


def default_method(metadata: ArrayMetadata, *paths: str) -> str:
    """Return "mode" for labels, such as those in the group ``labels`` of OME-Zarr, else "mean"."""
    is_inside = any(LABELS in path.split("/") for path in paths)
    is_label = is_inside or any(name in metadata.attributes for name in _LABELS)
    return "mode" if is_label or metadata.dtype.kind == "b" else "mean"
