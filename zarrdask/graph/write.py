"""``to_zarr``: store Dask arrays; each stored chunk or shard is written by exactly one task."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import dask.array as da

from zarrdask.errors import MetadataError, NodeNotFoundError, UnsupportedError
from zarrdask.graph.read import from_zarr
from zarrdask.graph.target import Destination, How, find_destination
from zarrdask.graph.write_job import batches, begin, check_deferrable, do, known, later
from zarrdask.metadata.chunking import GridLike
from zarrdask.metadata.options import ArrayOptions
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import open_group
from zarrdask.nodes.options import check_options


def to_zarr(
    x: Any,
    url: Any = None,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    overwrite: bool = False,  # noqa: FBT001, FBT002 - the order of dask.array.to_zarr
    region: Any = None,
    compute: bool = True,  # noqa: FBT001, FBT002
    return_stored: bool = False,  # noqa: FBT001, FBT002
    *,
    mode: Literal["a", "r+", "w", "w-"] = "a",
    grid: GridLike = "regular",
    commit: Literal["first", "last"] = "first",
    **create_kwargs: Any,
) -> Any:
    """Store a Dask array, or several in one graph. A drop-in for `dask.array.to_zarr`.

    Parameters
    ----------
    x : dask.array.Array or array_like, mapping, or iterable of (target, array)
        The array to store; its chunk sizes must be known. Several arrays are computed together, so
        that what they share is computed once: the keys of a mapping, and the targets of pairs, are
        paths in the group at `url`, or an `Array` that is written to as it is.
    url : str, os.PathLike, MutableMapping, Store, Group or Array
        Where to create the new array. An `Array` is written to as it is. For several arrays, the
        group that they go to, which is created if there is none.
    component : str, optional
        The path of the array (or group) below `url`.
    storage_options : dict, optional
        For fsspec.
    overwrite : bool
        Whether an array that is there is removed first; it is an error otherwise. One on a local
        disk that `x` is computed from, or is to be replaced at last (see `commit`), stays until
        the new one is complete.
    region : tuple of slice, or dict of names to slices, optional
        Write to this region of an array that exists, within its shape; a dict has names of its
        dimensions. Stored
        units that it covers in part are read, changed and written, by one writer at a time.
    compute : bool
        Whether to do it now. If not, nothing but metadata is written yet. Of writes of the same
        elements that are computed one after another the last one counts; of those that are
        computed at the same time, any.
    return_stored : bool
        Whether to return the stored array, as a Dask array.
    mode : {"a", "r+", "w", "w-"}
        As in Dask: "w" is `overwrite`, "r+" writes to an array that must be there.
    grid : {"regular", "rectilinear"}, dict or ChunkGrid
        Of a new array without the option `chunks`. ``"regular"``: all stored chunks have the
        shape of the longest block of `x` along each axis. ``"rectilinear"``: they are the
        blocks of `x`. Any other as in `zarrdask.create_array`.
    commit : {"first", "last"}
        When the metadata of a new array are written: first, so that regions of it can be written
        meanwhile; or last, so that it is there when it is complete.
    **create_kwargs
        Options of `zarrdask.create_array`.

    Returns
    -------
    None, Delayed or dask.array.Array
        None after computing; what does it, if `compute` is false; the stored array, if
        `return_stored` is true (which is then written when it is first needed).

    Raises
    ------
    MetadataError, UnsupportedError
        If sizes are unknown, or the format can't store such an array.
    NodeExistsError
        If there is a node already, or the one to be replaced is what `x` is computed from and
        can't stay until the new one is complete.
    SelectionError
        If the region is not made of slices, does not fit `x`, or `x` is computed from it.

    Notes
    -----
    Block boundaries are first moved to those of the stored units, so that every stored object
    is written by exactly one task. Blocks that lie right already are taken as they are.

    An error that comes while it is computed has a note that says what is there then.

    Examples
    --------
    >>> import dask.array as da
    >>> import zarrdask
    >>> x = da.arange(6, chunks=3)
    >>> root = zarrdask.create_group({})
    >>> zarrdask.to_zarr({"a": x, "b/c": x * 2}, root, attributes={"units": "m"})
    >>> root["b/c"][...]
    array([ 0,  2,  4,  6,  8, 10])
    """
    check_options(create_kwargs, to_zarr, ArrayOptions)
    how = How(region, mode, overwrite, grid, commit)
    pairs = _pairs(x)
    if pairs is None:
        x = known(x)
        writes = [
            (x, find_destination(x, url, component, storage_options, how, create_kwargs, [x]))
        ]
    elif return_stored:
        raise UnsupportedError(
            "only a single array can be returned; open the others with from_zarr",
            key="return_stored",
            found=True,
        )
    else:
        writes = _members(pairs, _Place(url, component, storage_options), how, create_kwargs)
    destinations = [to for _, to in writes]
    if not compute:
        check_deferrable([to.array for to in destinations])
        jobs = begin(writes)
        return jobs[0].stored() if return_stored else later(jobs)
    with batches(destinations):
        do(begin(writes))
    if not return_stored:
        return None
    (to,) = destinations
    return from_zarr(to.array, region=to.place)


class _Place(NamedTuple):
    """The group that several arrays go to, as the user names it."""

    url: Any
    component: str | None
    storage_options: dict[str, Any] | None


def _pairs(x: Any) -> list[tuple[Any, Any]] | None:
    """Return targets and arrays, if a user passes several arrays; None for a single array."""
    if isinstance(x, Mapping):
        return list(x.items())
    if hasattr(x, "shape") or not isinstance(x, Iterable):
        return None
    items = list(x)
    return items if any(map(_is_pair, items)) else None


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str | Array)


def _members(
    pairs: list[tuple[Any, Any]], group: _Place, how: How, options: dict[str, Any]
) -> list[tuple[da.Array, Destination]]:
    """Return several arrays and where each goes, with the format of the group that they go to."""
    arrays = [known(x) for _, x in pairs]
    options = _of_group(group, options)
    return [
        (x, _member(target, x, group, how, options, arrays))
        for (target, _), x in zip(pairs, arrays, strict=True)
    ]


def _of_group(group: _Place, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of arrays in a group: they have its format."""
    if group.url is None or "zarr_format" in options:
        return options
    try:
        parent = open_group(group.url, group.component, storage_options=group.storage_options)
    except NodeNotFoundError:
        return options
    return {**options, "zarr_format": parent.zarr_format}


def _member(
    target: Any,
    x: da.Array,
    group: _Place,
    how: How,
    options: dict[str, Any],
    arrays: list[da.Array],
) -> Destination:
    """Return where one of several arrays goes."""
    if isinstance(target, Array):
        return find_destination(x, target, None, None, How(how.region), {}, arrays)
    if group.url is None or not isinstance(target, str):
        raise MetadataError(
            "each array needs a target; pass the group as url",
            key="x",
            found=target,
            expected="a path in the group, or an Array",
        )
    options = options if how.region is None and how.mode != "r+" else {}
    path = f"{group.component}/{target}" if group.component else target
    return find_destination(x, group.url, path, group.storage_options, how, options, arrays)
