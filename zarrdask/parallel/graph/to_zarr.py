"""``to_zarr``: store Dask arrays, each stored chunk or shard by exactly one task."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import dask.array as da
from dask import delayed

from zarrdask import config
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.nodes.arguments import check_options, checks_booleans
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.open_group import open_group
from zarrdask.errors import MetadataError, NodeNotFoundError, UnsupportedError
from zarrdask.formats.metadata.array_options import ArrayOptions, GridLike
from zarrdask.parallel.execution.client import check_visible, scheduler_in_task
from zarrdask.parallel.graph.dependencies import Inputs
from zarrdask.parallel.graph.from_zarr import from_zarr
from zarrdask.parallel.graph.writing.resume import Writes, resumable
from zarrdask.parallel.graph.writing.target import (
    Resume,
    WriteOptions,
    WriteTarget,
    find_target,
    is_opened,
)
from zarrdask.parallel.graph.writing.write_job import (
    as_dask_array,
    cast_in_memory,
    check_deferrable,
    check_plain,
    deferred,
    keep_manifests,
    write_jobs,
    writing,
)
from zarrdask.parallel.graph.writing.write_job import compute as compute_jobs
from zarrdask.runtime.progress import Show


@checks_booleans
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
    resume: Resume = False,
    progress: Show = False,
    **create_kwargs: Any,
) -> Any:
    """Store a Dask array, or several arrays in one graph.

    A drop-in replacement for `dask.array.to_zarr`.

    Parameters
    ----------
    x : dask.array.Array or array_like, mapping, or iterable of (target, array)
        The array to store; its chunk sizes must be known. Several arrays are computed together, so
        that shared inputs are computed once. The keys of a mapping and the targets of pairs are
        paths in the group at `url`; the target of a pair can also be an open array, of zarrdask or
        zarr-python, whose content is overwritten.
    url : str, os.PathLike, MutableMapping, Store, Group or Array
        The location of the new array. The content of an open array, of zarrdask or zarr-python, is
        overwritten. For several arrays, the group that contains them, which is created if it does
        not exist.
    component : str, optional
        The path of the array (or group) within `url`.
    storage_options : dict, optional
        Options for fsspec, if `url` is a URL.
    overwrite : bool, default False
        Replace an existing array or group. If False, raise `NodeExistsError` when one exists. On a
        local disk, the new array replaces the old one when it is complete; a write that fails
        leaves the old one. Other stores erase the old one first.
    region : tuple of slice, or dict of names to slices, optional
        The region of an existing array to write to, within its shape. The keys of a dict are names
        of dimensions. Chunks or shards that the region covers in part are read, changed and written
        back, by one writer at a time.
    compute : bool, default True
        Whether to write the chunks now. If false, they are written when the result is computed. If
        several deferred writes overlap, the one computed last wins; if they run concurrently, the
        result is undefined.
    return_stored : bool, default False
        Whether to return the stored array as a Dask array.
    mode : {"a", "r+", "w", "w-"}, default "a"
        As in Dask: "w" means ``overwrite=True``, and "r+" writes to an existing array.
    grid : {"regular", "rectilinear"}, dict or ChunkGrid, default "regular"
        The chunk grid of a new array without the option `chunks`. ``"regular"``: all stored chunks
        have the shape of the longest block of `x` along each axis. ``"rectilinear"``: the stored
        chunks are the blocks of `x`. Others as in `zarrdask.create_array`.
    commit : {"first", "last"}, default "first"
        Whether the metadata of a new array is written before its chunks, so that its regions can
        be written concurrently, or after them, so that the array appears when it is complete. An
        array that replaces another one on a local disk always appears when it is complete.
    resume : bool or "restart", default False
        Whether stored blocks are recorded, so that the same call, made again after the process was
        killed, computes and writes only the missing blocks. The metadata of new arrays is written
        last. An error is raised if the Dask array (by its name), the chunks or the options have
        changed; ``"restart"`` begins again then, as does ``overwrite=True`` for a single new array.
        The same call does nothing when the write is complete; an array that another writer has
        created, or changed since, raises `NodeExistsError`. The store must be one that can be
        listed. With ``compute=False``, the result is one task, which writes the missing blocks.
    progress : bool, file or callable, default False
        Whether to show a bar: in the output of a notebook's cell, or on standard error; or the file
        to write it to. A file that is not a terminal gets a line every ten seconds. A function is
        called with the finished work, all work, and the bytes of the finished work. There is none
        with ``compute=False``.
    **create_kwargs
        Options of a new array, as in `zarrdask.create_array`.

    Returns
    -------
    None, dask.delayed.Delayed or dask.array.Array
        None by default; if `compute` is false, a Delayed that writes the chunks; if
        `return_stored` is true, the stored array (with ``compute=False``, it is written when it is
        first computed).

    Raises
    ------
    MetadataError, UnsupportedError
        If chunk sizes are unknown, an option is wrong, or the format can't store such an array.
    NodeExistsError
        If there is a node and `overwrite` is false; or if `x` is computed from the node to be
        replaced, in a store that can't keep it until the new one is complete.
    SelectionError
        If the region is not made of slices, does not fit `x`, or is itself read to compute `x`.

    See Also
    --------
    append : Add a Dask array at the end of a stored array.
    plan_write : Show which task would write which chunk or shard.

    Notes
    -----
    Block boundaries are first moved to boundaries of chunks or shards, so that each of these is
    written by exactly one task. Blocks that already lie on these boundaries are not changed.

    An error that is raised during the computation has a note that describes what the target holds.

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
    pairs = _pairs(x)
    parent = _Parent(url, component, storage_options)
    several = pairs is not None, return_stored
    how = WriteOptions(region, mode, overwrite, grid, commit, resume, compute, *several)
    if return_stored and (pairs is not None or (resume and not compute)):
        raise UnsupportedError(
            "return_stored=True takes a single array, which is not written later with resume=True; "
            "open arrays with from_zarr",
            key="return_stored",
            found=True,
        )
    plan = partial(_plan, x if pairs is None else pairs, parent, how, create_kwargs)
    writes = plan()
    for array, target in writes:
        Casting.chosen().check(array.dtype, target.array.dtype, target.array.node_path)
    if not compute:
        check_deferrable([target.array for _, target in writes])
        if resume:
            task = partial(_write_in_task, plan, resume, Casting.chosen(), config.get("manifests"))
            later = delayed(task, pure=False, traverse=False)
            return later(dask_key_name=f"to-zarr-{uuid4().hex}")
    if return_stored:
        check_visible(writes[0][1].array.store)
    if resume:
        writes = resumable(writes, resume)
    # If an array is read as it is written, only a part may be computed.
    is_read = return_stored and not compute
    digests = config.get("manifests") and not is_read
    with writing([target for _, target in writes], commits=compute):
        is_later = not compute and not return_stored
        jobs = write_jobs(writes, later=is_later, returned=is_read, digests=digests)
        if not compute:
            return jobs[0].stored() if return_stored else deferred(jobs)
        compute_jobs(jobs, show=progress)
    keep_manifests(jobs)
    if not return_stored:
        return None
    ((_, target),) = writes
    return from_zarr(target.array, region=target.region)


def _write_in_task(
    plan: Callable[[], Writes],
    resume: Resume,
    casting: Casting,
    digests: bool,  # noqa: FBT001 - of a partial function
) -> None:
    """Write what a plan consists of, and compute it: a task, which is resumed if it is killed."""
    with casting.requested():
        writes = resumable(plan(), resume)
        with scheduler_in_task() as options, writing([target for _, target in writes]):
            jobs = write_jobs(writes, digests=digests)
            compute_jobs(jobs, **options)
        keep_manifests(jobs)


class _Parent(NamedTuple):
    """The group that several arrays are written to, as named by the user."""

    url: Any
    component: str | None
    storage_options: dict[str, Any] | None


def _plan(
    x: Any, parent: "_Parent", how: WriteOptions, options: dict[str, Any]
) -> list[tuple[da.Array, WriteTarget]]:
    """Return the Dask arrays that are written, and their targets."""
    how.check()
    if how.is_member:
        return _members(x, parent, how, options)
    if parent.url is None:
        raise MetadataError(
            "pass a URL to store the array at",
            key="url",
            found=None,
            expected="a URL, a path or a store; or targets and arrays, in pairs, as x",
        )
    array = as_dask_array(x, is_view=how.is_immediate)
    target = find_target(array, *parent, how, options, Inputs([array]))
    return [(cast_in_memory(array, x, target.array), target)]


def _pairs(x: Any) -> list[tuple[Any, Any]] | None:
    """Return pairs of targets and arrays if `x` holds several arrays; None for a single array."""
    check_plain(x)
    if isinstance(x, Mapping):
        return list(x.items())
    if hasattr(x, "shape") or not isinstance(x, Iterable):
        return None
    items = list(x)
    pairs = [item for item in items if isinstance(item, tuple) and len(item) == 2]
    if any(isinstance(target, str) or is_opened(target) for target, _ in pairs):
        return items
    if any(isinstance(target, str | Array) for _, target in pairs):
        raise MetadataError(
            "the target comes first in each pair", key="x", expected="(path or Array, array)"
        )
    return None


def _members(
    pairs: list[tuple[Any, Any]], group: _Parent, how: WriteOptions, options: dict[str, Any]
) -> list[tuple[da.Array, WriteTarget]]:
    """Return several arrays and their targets, in the format of their group."""
    arrays = [as_dask_array(x, is_view=how.is_immediate) for _, x in pairs]
    options, inputs = _with_group_format(group, options), Inputs(arrays)
    targets = [
        _member(target, x, group, how, options, inputs)
        for (target, _), x in zip(pairs, arrays, strict=True)
    ]
    return [
        (cast_in_memory(x, value, target.array), target)
        for (_, value), x, target in zip(pairs, arrays, targets, strict=True)
    ]


def _with_group_format(group: _Parent, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of new arrays, completed by the format of an existing group."""
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
    group: _Parent,
    how: WriteOptions,
    options: dict[str, Any],
    inputs: Inputs,
) -> WriteTarget:
    """Return the target of one of several arrays."""
    if is_opened(target):
        return find_target(x, target, None, None, WriteOptions(how.region), {}, inputs)
    if group.url is None or not isinstance(target, str):
        raise MetadataError(
            "each array needs a target; pass the group that contains the paths as url",
            key="x",
            found=target,
            expected="a path in the group, or an Array",
        )
    options = options if how.region is None and how.mode != "r+" else {}
    path = f"{group.component}/{target}" if group.component else target
    return find_target(x, group.url, path, group.storage_options, how, options, inputs)
