"""Descriptions of what is lost when values or metadata are converted to another type or format."""

from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.display.words import value_text
from zarrdask.errors import MetadataError, quoted
from zarrdask.formats.codecs.array_to_array.cast import floats
from zarrdask.formats.codecs.array_to_bytes.bytes import endian_of, stored_type
from zarrdask.formats.dtypes.cf_fill_values import FILL_VALUE, decode_fill_value
from zarrdask.formats.dtypes.fill_values import only_fill
from zarrdask.formats.dtypes.ml import kind_of, limits, name_of
from zarrdask.formats.metadata.convert import flat_codecs
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata

#: Losses that every rule of casts permits.
_ROUNDED = ("digits may be lost", "fractions are cut off")


def rewrite_loss(before: ArrayMetadata, after: ArrayMetadata) -> str | None:
    """Return a description of what the elements of an array may lose in a rewrite, or None.

    By default, a value that would change raises an error, so that only rounding is left.
    """
    loss = cast_loss(before.dtype, after.dtype) if 0 not in before.shape else None
    is_error = config.get("casting") is None and not (loss or "").endswith(_ROUNDED)
    return None if is_error else loss


def cast_loss(before: np.dtype[Any], after: np.dtype[Any]) -> str | None:
    """Return a description of what values may lose in a cast of NumPy, or None.

    >>> cast_loss(np.dtype("f8"), np.dtype("f4"))
    'float64 as float32: digits may be lost'
    >>> cast_loss(np.dtype("i2"), np.dtype("f4")) is None
    True
    """
    before, after = before.newbyteorder("="), after.newbyteorder("=")
    loss = None if before == after else _lost(before, after)
    return loss and f"{dtype_label(before)} as {dtype_label(after)}: {loss}"


def _lost(before: np.dtype[Any], after: np.dtype[Any]) -> str | None:
    kinds = kind_of(before) + kind_of(after)
    if kinds in ("ff", "cc", "fc"):
        return None if _holds(after, before) else "digits may be lost"
    if kinds in ("if", "uf", "ic", "uc"):
        low, high = limits(before)
        bits = max(-low - 1, high).bit_length()
        return None if bits <= floats(_real(after)).digits else "digits may be lost"
    if kinds in ("fi", "fu"):
        return "fractions are cut off"
    if kinds in ("ci", "cu", "cf"):
        return "imaginary parts are dropped"
    if kinds in ("ii", "iu", "ui", "uu") or (kinds[0] == "b" and kinds[1] in "iufc"):
        return None  # `zarrdask.arrays.chunks.cast` raises an error for values out of range
    if kinds[1] == "b" and kinds[0] in "iufc":
        return "all values but 0 become True"
    if kinds in ("SS", "UU", "VV") and before.names is after.names is None:
        return None if before.itemsize <= after.itemsize else "the end is cut off"
    return None if np.can_cast(before, after, "safe") else "values may be changed"


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _holds(wide: np.dtype[Any], narrow: np.dtype[Any]) -> bool:
    """Whether a type can represent all numbers of another one."""
    wide_numbers, narrow_numbers = floats(_real(wide)), floats(_real(narrow))
    return (
        wide_numbers.digits >= narrow_numbers.digits
        and wide_numbers.quantum <= narrow_numbers.quantum
        and wide_numbers.most >= narrow_numbers.most
    )


def dtype_label(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype for messages: also of those that NumPy shows as void."""
    return name_of(dtype) or str(dtype)


def losses(before: Metadata, after: Metadata) -> tuple[str, ...]:
    """Return descriptions of what an array or a group loses in a conversion of its metadata.

    Differences that are only of spelling are left out.
    """
    descriptions = []
    if isinstance(before, ArrayMetadata) and isinstance(after, ArrayMetadata):
        descriptions = _array_losses(before, after)
    dropped = [f"the extension {e.name}" for e in before.extensions if e not in after.extensions]
    dropped += [f"the member {name}" for name in before.extra if name not in after.extra]
    return *descriptions, *(f"{item} was dropped" for item in dropped)


def _array_losses(before: ArrayMetadata, after: ArrayMetadata) -> list[str]:
    descriptions = [*filter(None, [rewrite_loss(before, after)])]
    if before.shard is not None and after.shard is None:
        inner = _text(before.read_grid.chunks)
        descriptions.append(f"shards of {_text(before.grid.chunks)} became chunks of {inner}")
    if before.fill_value is None and after.fill_value is not None:
        new_fill = value_text(after.fill_value)
        descriptions.append(f"the fill value, which was undefined, is {new_fill} now")
    elif before.dtype.hasobject and type(before.fill_value) is not type(after.fill_value):
        old_fill, new_fill = quoted(before.fill_value), quoted(after.fill_value)
        descriptions.append(f"the fill value {old_fill} is {new_fill} now")
    descriptions += filter(None, [mask_loss(before, after)])
    if before.dimension_names and not after.dimension_names:
        descriptions.append("the dimensions, which had no names, are not named one by one any more")
    if len(before.transformers) > len(after.transformers):
        descriptions.append("storage transformers were undone")
    if _mixed(before) and not _mixed(after):
        descriptions.append("the byte order of the fields is the same for all now")
    return descriptions


def mask_loss(before: ArrayMetadata, after: ArrayMetadata) -> str | None:
    """Return a note if xarray takes other elements for missing after a conversion, or None."""
    if not _changes_mask(before, after):
        return None
    return (
        f"xarray reads other elements as missing in {after.format.title} than in "
        f"{before.format.title}; convert the dataset instead, by zarrdask.rechunk(dataset, ...)"
    )


def _changes_mask(before: ArrayMetadata, after: ArrayMetadata) -> bool:
    """Whether xarray, which needs names of dimensions, takes other elements for missing ones."""
    if before.format.fill_masks == after.format.fill_masks or not after.dimension_names:
        return False
    masked, plain = (before, after) if before.format.fill_masks else (after, before)
    mask = plain.attributes.get(FILL_VALUE)
    if masked.dtype.kind not in "biufc" or mask is None or masked.fill_value is None:
        return masked.dtype.kind in "biufc" and (mask, masked.fill_value) != (None, None)
    try:
        value = np.array([decode_fill_value(mask, plain.dtype)]).astype(masked.dtype)
    except (MetadataError, ValueError, TypeError, OverflowError):
        return True
    return not only_fill(value, masked.fill_value)


def _text(lengths: Any) -> str:
    return " x ".join(map(str, lengths)) or "one element"


def _mixed(metadata: ArrayMetadata) -> bool:
    dtype = stored_type(metadata.dtype, flat_codecs(metadata))
    return endian_of(dtype) == "own"
