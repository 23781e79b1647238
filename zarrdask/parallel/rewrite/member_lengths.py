"""The lengths of chunks and shards for the arrays of a group: for all, by dimension, or by path."""

from collections.abc import Mapping
from typing import Any

from zarrdask.display.words import did_you_mean
from zarrdask.errors import MetadataError
from zarrdask.formats.indexing.selection import is_integer
from zarrdask.formats.metadata.model import ArrayMetadata


def lengths_of_member(lengths: Any, path: str, metadata: ArrayMetadata) -> Any:
    """Return the lengths for one array of a group; None if there are none for it.

    In a mapping, the path of the array comes before its dimensions, and these before the key None.

    Examples
    --------
    >>> import zarrdask
    >>> t = zarrdask.create_array({}, shape=(4, 4), dtype="i4", dimension_names=("time", "x"))
    >>> lengths_of_member({"time": -1, "lat": 30, "/a/b": 2}, "a/t", t.metadata)
    {'time': -1}
    >>> lengths_of_member({"time": -1, "lat": 30, "/a/b": 2}, "a/b", t.metadata)
    2
    """
    if not isinstance(lengths, Mapping):
        return lengths
    if f"/{path}" in lengths:
        return lengths[f"/{path}"]
    dimensions = {
        key: length for key, length in lengths.items() if key is not None and _has(metadata, key)
    }
    if path in lengths and path not in dimensions:
        return lengths[path]
    return dimensions or lengths.get(None)


def check_member_lengths(key: str, lengths: Any, arrays: Mapping[str, ArrayMetadata]) -> None:
    """Check that each key of a mapping is an array or a dimension of the group."""
    for name in lengths if isinstance(lengths, Mapping) else ():
        is_path = isinstance(name, str) and name.removeprefix("/") in arrays
        if name is None or is_path or any(_has(each, name) for each in arrays.values()):
            continue
        dimensions = {dim: None for each in arrays.values() for dim in each.dimension_names or ()}
        names = [str(dim) for dim in dimensions if dim]
        raise MetadataError(
            f"the group has no such dimension or array{did_you_mean(str(name), names)}",
            key=key,
            found=name,
            expected=f"a dimension of {names}, or an array of {[f'/{path}' for path in arrays]}",
        )


def _has(metadata: ArrayMetadata, dimension: Any) -> bool:
    """Whether an array has a dimension, by its name or the number of its axis."""
    if is_integer(dimension):
        ndim = len(metadata.shape)
        return -ndim <= int(dimension) < ndim
    return dimension in (metadata.dimension_names or ())
