"""The functions that show many stored arrays as one: `concat` and `stack`."""

from collections.abc import Sequence
from typing import Any, Literal

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.saved_group import root_of
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.concatenations.concatenated import ConcatenatedArray
from zarrdask.arrays.nodes.concatenations.concatenated_group import ConcatenatedGroup
from zarrdask.arrays.nodes.concatenations.join_sources import concat_sources, stack_sources
from zarrdask.formats.metadata.model import ArrayMetadata


@suggests_arguments
def concat(
    sources: Any,
    axis: int | str | Sequence[int | str] = 0,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    missing: Literal["error", "fill"] = "error",
) -> ConcatenatedArray | ConcatenatedGroup:
    """Return stored arrays, one after another along an axis, as one array.

    Only metadata is read: the documents of all arrays are requested together. The result is read
    as any stored array, also by `from_zarr`, where it is one symbolic layer. A slice reads only
    the arrays that it overlaps.

    Parameters
    ----------
    sources : str, list or nested lists
        The arrays: URLs, paths, stores, arrays, and pairs of one of these and a region of it (a
        basic index, or a dict by names of dimensions). A text may be a pattern
        (``"s3://bucket/era5-*.zarr"``), which is listed once and sorted naturally. Nested lists
        are a table in several dimensions, as for `dask.array.block`. None stands for a missing
        array, which is read as the fill value.
    axis : int, str or sequence of them, default 0
        The axis along which the arrays are joined, by number or by the name of the dimension; for
        nested lists, one for each level. By default, nested lists are joined along the last axes.
        Groups are joined along dimensions by name.
    component : str, optional
        The path of the array within each source that is not an array.
    storage_options : dict, optional
        Options for fsspec, for all URLs.
    missing : {"error", "fill"}
        Whether a source without an array raises an error, or reads as the fill value.

    Returns
    -------
    ConcatenatedArray or ConcatenatedGroup
        The array, opened for reading only. If the sources are groups, a group: its arrays are
        joined along the dimensions of these names, or are equal in all groups. An array has the
        fill value and the codecs of the first source, and the attributes that all sources have in
        common. Different data types are promoted as by NumPy, as far as the setting
        ``zarrdask.casting`` permits it.

    Raises
    ------
    NodeNotFoundError
        If there is no array at one of the sources, or nothing matches a pattern.
    MetadataError
        If the shapes do not fit together.
    UnsupportedError, CodecError
        If the data types have no common data type, or the setting does not permit the cast.

    See Also
    --------
    stack : Joins arrays along a new axis.

    Examples
    --------
    >>> import zarrdask
    >>> days = [zarrdask.create_array({}, shape=(24, 6), dtype="f4") for _ in range(3)]
    >>> concat(days).shape, concat([days, days]).shape
    ((72, 6), (48, 18))
    """
    store = concat_sources(sources, axis, component, storage_options, missing)
    node, metadata = root_of(store)
    if isinstance(metadata, ArrayMetadata):
        return ConcatenatedArray(node, metadata)
    return ConcatenatedGroup(node, metadata)


@suggests_arguments
def stack(
    sources: Any,
    axis: int | Sequence[int] = 0,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    missing: Literal["error", "fill"] = "error",
    dimension_names: str | Sequence[str | None] | None = None,
) -> ConcatenatedArray:
    """Return stored arrays of one shape as one array with a new axis.

    Parameters
    ----------
    sources, component, storage_options, missing
        As in `concat`.
    axis : int or sequence of int, default 0
        The position of the new axis in the result; with nested lists, one for each level.
    dimension_names : str or sequence, optional
        The names of the new axes.

    Returns
    -------
    ConcatenatedArray
        The array, as `concat` returns it.

    Raises
    ------
    NodeNotFoundError, MetadataError, UnsupportedError, CodecError
        As `concat`.

    Examples
    --------
    >>> import zarrdask
    >>> runs = [zarrdask.create_array({}, shape=(24, 6), dtype="f4") for _ in range(3)]
    >>> stack(runs, axis=1).shape
    (24, 3, 6)
    """
    options = storage_options
    store = stack_sources(sources, axis, component, options, missing, dimension_names)
    return ConcatenatedArray(NodePath(store, ""), store.arrays[""].metadata)
