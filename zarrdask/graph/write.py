"""``to_zarr`` and ``store``: Dask arrays into stored ones, each stored unit written by one task."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import dask.array as da

from zarrdask.arguments import check_options
from zarrdask.array import Array
from zarrdask.creation import ArrayOptions
from zarrdask.errors import MetadataError, NodeNotFoundError
from zarrdask.graph.destination import Destination, How, find_destination
from zarrdask.graph.jobs import batches, begin, check_deferrable, do, known, later
from zarrdask.graph.read import from_zarr
from zarrdask.group import open_group
from zarrdask.sizes import GridLike


def to_zarr(
    x: da.Array,
    url: Any,
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
    """Store a Dask array. A drop-in for `dask.array.to_zarr`.

    Parameters
    ----------
    x : dask.array.Array or array_like
        What to store; its chunk sizes must be known.
    url : str, os.PathLike, MutableMapping, Store, Group or Array
        Where to: a new array is created there. An `Array` is written to as it is.
    component : str, optional
        The array's path within.
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
    """
    check_options(create_kwargs, to_zarr, ArrayOptions)
    x = known(x)
    how = How(region, mode, overwrite, grid, commit)
    to = find_destination(x, url, component, storage_options, how, create_kwargs, [x])
    if not compute:
        check_deferrable([to.array])
        jobs = begin([(x, to)])
        return jobs[0].stored() if return_stored else later(jobs)
    with batches([to]):
        do(begin([(x, to)]))
    return from_zarr(to.array, region=to.place) if return_stored else None


def store(
    arrays: Mapping[str, Any] | Iterable[tuple[Any, Any]],
    group: Any = None,
    *,
    storage_options: dict[str, Any] | None = None,
    compute: bool = True,
    **options: Any,
) -> Any:
    """Store several Dask arrays in one graph: what they are computed from is computed once.

    Parameters
    ----------
    arrays : mapping of str to array, or iterable of (target, array)
        Where each goes: its path in the group, or an `Array` that is written to as it is.
    group : str, os.PathLike, MutableMapping, Store or Group, optional
        Where the paths are; if there is no group, one is made.
    storage_options : dict, optional
        For fsspec.
    compute : bool
        Whether to do it now. If not, nothing but metadata is written yet.
    **options
        Of `zarrdask.to_zarr`, for all arrays that go to the group.

    Returns
    -------
    None or Delayed
        None after computing; what does it, if `compute` is false.

    Raises
    ------
    ZarrdaskError
        As `zarrdask.to_zarr`, before anything is written if one of the arrays can't be stored, or
        two have elements in common.

    Examples
    --------
    >>> import dask.array as da
    >>> import zarrdask
    >>> x = da.arange(6, chunks=3)
    >>> root = zarrdask.create_group({})
    >>> zarrdask.store({"a": x, "b/c": x * 2}, root, attributes={"units": "m"})
    >>> root["b/c"][...]
    array([ 0,  2,  4,  6,  8, 10])
    """
    how = {name: options.pop(name) for name in How._fields if name in options}
    check_options(options, store, ArrayOptions)
    pairs = arrays.items() if isinstance(arrays, Mapping) else arrays
    given = [(target, known(x)) for target, x in pairs]
    together = [x for _, x in given]
    inside = (group, storage_options, How(**how), _of_group(group, storage_options, options))
    writes = [(x, _member(target, x, inside, together)) for target, x in given]
    destinations = [to for _, to in writes]
    if not compute:
        check_deferrable([to.array for to in destinations])
        return later(begin(writes))
    with batches(destinations):
        do(begin(writes))
    return None


def _of_group(
    group: Any, storage_options: dict[str, Any] | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of arrays in a group: they have its format."""
    if group is None or "zarr_format" in options:
        return options
    try:
        found = open_group(group, storage_options=storage_options)
    except NodeNotFoundError:
        return options
    return {**options, "zarr_format": found.zarr_format}


def _member(
    target: Any, x: da.Array, inside: tuple[Any, Any, How, dict[str, Any]], together: list[da.Array]
) -> Destination:
    """Return where one of several arrays goes."""
    group, storage_options, how, options = inside
    if isinstance(target, Array):
        return find_destination(x, target, None, None, How(how.region), {}, together)
    if group is None or not isinstance(target, str):
        raise MetadataError(
            "not a target", key="arrays", found=target, expected="a path in the group, or an Array"
        )
    options = options if how.region is None and how.mode != "r+" else {}
    return find_destination(x, group, target, storage_options, how, options, together)
