"""``to_zarr``: Dask arrays into stored ones, each stored unit written by one task."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.layers import ArraySliceDep

from zarrdask import config, hierarchy
from zarrdask.array import Array, check_mode, create_array, open_array
from zarrdask.errors import MetadataError, SelectionError
from zarrdask.graph.client import check_visible
from zarrdask.graph.read import check_not_read, from_zarr, stored_type
from zarrdask.graph.source import Handle, Target
from zarrdask.indexing import Region, basic, pick_size
from zarrdask.plan.align import Chunks, snap
from zarrdask.sizes import GridLike
from zarrdask.storage.draft import DraftStore


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
    **create_kwargs: Any,
) -> Any:
    """Store a Dask array. A drop-in for `dask.array.to_zarr`.

    Parameters
    ----------
    x : dask.array.Array or array_like
        What to store; its chunk sizes must be known.
    url : str, os.PathLike, MutableMapping, Store or Array
        Where to: a new array is created there. An `Array` is written to as it is.
    component : str, optional
        The array's path within.
    storage_options : dict, optional
        For fsspec.
    overwrite : bool
        Whether an array that is there is removed first; it is an error otherwise.
    region : tuple of slice, optional
        Write to this region of an array that exists. At its edges, stored units that it covers
        in part are read, changed and written, so no one else may write those at the same time.
    compute : bool
        Whether to do it now. If not, nothing but metadata is written yet.
    return_stored : bool
        Whether to return the stored array, as a Dask array.
    mode : {"a", "r+", "w", "w-"}
        As in Dask: "w" is `overwrite`, "r+" writes to an array that must be there.
    grid : {"regular", "rectilinear"}, dict or ChunkGrid
        Of a new array without the option `chunks`. ``"regular"``: all stored chunks have the
        shape of the longest block of `x` along each axis. ``"rectilinear"``: they are the
        blocks of `x`. Any other as in `zarrdask.create_array`.
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
        If there is a node already, or the one to be replaced is what `x` is computed from.
    SelectionError
        If the region does not fit `x`.

    Notes
    -----
    Block boundaries are first moved to those of the stored units, so that every stored object
    is written by exactly one task. Blocks that lie right already are taken as they are.
    """
    x = da.asanyarray(x)
    if any(np.isnan(n) for axis in x.chunks for n in axis):
        raise MetadataError(
            "chunk sizes must be known to store an array; call x.compute_chunk_sizes()",
            key="chunks",
            found=x.chunks,
        )
    check_mode(mode, ("a", "r+", "w", "w-"))
    how = _How(region, mode, overwrite, grid)
    array = _target(x, url, component, storage_options, how, create_kwargs)
    place = _place(x, array, region)
    receipts, blocks, target = write_blocks(x, array, place)
    if return_stored and not compute:
        return _stored(receipts, blocks, target, array)
    if not compute:
        return _delayed(receipts)
    dask.compute(receipts)
    return from_zarr(array, region=place) if return_stored else None


class _How(NamedTuple):
    region: Any
    mode: str
    overwrite: bool
    grid: GridLike


def _delayed(receipts: da.Array) -> Delayed:
    """Return all writes as one thing to compute."""
    # Array expressions have no to_delayed; there the receipts are gathered.
    parts = receipts if da.ARRAY_EXPR_ENABLED else receipts.to_delayed().ravel().tolist()
    return delayed(_finish)(parts, dask_key_name=f"to-zarr-{receipts.name}")


def _target(
    x: da.Array,
    url: Any,
    component: str | None,
    storage_options: dict[str, Any] | None,
    how: _How,
    options: dict[str, Any],
) -> Array:
    """Return the array to write to: the one that is there, or a new one."""
    store, path = hierarchy.locate(url, component, storage_options)
    check_visible(store)
    opened = isinstance(url, Array) and not component
    if not (opened or how.region is not None or how.mode == "r+"):
        options = {**_chunks(x, how.grid, options), "dtype": stored_type(x)} | options
        if isinstance(store, DraftStore):
            options.setdefault("zarr_format", store.zarr_format)
        replace = how.overwrite or how.mode == "w"
        if replace:
            check_not_read(x, store, path)
        return create_array(store, path, shape=x.shape, overwrite=replace, **options)
    if options or how.grid != "regular":
        raise MetadataError(
            "options of a new array make no sense for one that is there",
            key=hierarchy.location(store, path),
            found=sorted(options) or ["grid"],
        )
    found: Array = url if opened else open_array(store, path, mode="r+")
    found.check_writable()
    return found


def _chunks(x: da.Array, grid: GridLike, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that tell the chunks of a new array."""
    if grid == "regular":
        return {"chunks": tuple(max(*axis, 1) for axis in x.chunks)}
    if grid != "rectilinear":
        return {"grid": grid}
    if "chunks" in options:
        raise MetadataError(
            "the grid is that of the chunks given: lists of lengths make it rectilinear",
            key="grid",
            found=grid,
        )
    return {"chunks": x.chunks}


def _place(x: da.Array, array: Array, region: Any) -> Region:
    selection = basic(() if region is None else region, array.shape)
    picks = selection.slices
    if not selection.plain or any(pick.step != 1 for pick in picks):
        raise SelectionError(
            "a region to write to is made of slices without a step", key="region", found=region
        )
    shape = tuple(map(pick_size, picks))
    if shape != x.shape:
        raise SelectionError(
            "the array does not fit the region", key="region", found=x.shape, expected=f"{shape}"
        )
    return picks


def write_blocks(x: da.Array, array: Array, place: Region) -> tuple[da.Array, Chunks, Target]:
    """Return the tasks that write a Dask array.

    Parameters
    ----------
    x : dask.array.Array
    array : Array
    place : tuple of slice
        Where in it, of the shape of `x`.

    Returns
    -------
    dask.array.Array
        Receipts, one a block: how many units it stored.
    tuple of tuple of int
        The blocks.
    Target
        What the tasks write to.
    """
    metadata = array.metadata
    blocks = tuple(
        snap(sizes, pick.start, axis)
        for sizes, pick, axis in zip(x.chunks, place, metadata.write_axes, strict=True)
    )
    if blocks != x.chunks:
        x = x.rechunk(blocks)
    start = tuple(pick.start for pick in place)
    target = Target(Handle(array.stored), start, empty=config.get("write-empty-chunks"))
    receipts = _map_blocks(
        write_block,
        x,
        target,
        blocks,
        dtype=np.intp,
        chunks=tuple((1,) * len(axis) for axis in blocks),
        meta=np.empty((0,) * x.ndim, np.intp),
        # Not by what it is made of: a write that is asked for again has to be done again.
        name=f"write-zarr-{uuid4().hex}",
    )
    return receipts, blocks, target


def _map_blocks(
    task: Callable[..., np.ndarray], x: da.Array, target: Target, blocks: Chunks, **options: Any
) -> da.Array:
    """Map a task over blocks: it is given the block, the target, and where the block lies."""
    if not da.ARRAY_EXPR_ENABLED:
        return x.map_blocks(task, target, ArraySliceDep(blocks), **options)
    # Array expressions can't hand out slices yet; block numbers they can.
    return x.map_blocks(_at, _Numbered(task, target, blocks), **options)


class _Numbered(NamedTuple):
    task: Callable[..., np.ndarray]
    target: Target
    blocks: Chunks


def _at(values: np.ndarray, numbered: _Numbered, block_id: tuple[int, ...] = ()) -> np.ndarray:
    ends = (sum(axis[: i + 1]) for axis, i in zip(numbered.blocks, block_id, strict=True))
    block = tuple(
        slice(end - axis[i], end)
        for end, axis, i in zip(ends, numbered.blocks, block_id, strict=True)
    )
    return numbered.task(values, numbered.target, block)


def write_block(values: np.ndarray, target: Target, block: tuple[slice, ...]) -> np.ndarray:
    """Write one block: the task. The receipt is small, whatever the block."""
    return np.full((1,) * len(block), target.write(values, block), np.intp)


def _finish(receipts: Any) -> None:
    """Stand for all writes."""


def _stored(receipts: da.Array, blocks: Chunks, target: Target, array: Array) -> da.Array:
    """Return the stored array, each block read after it was written."""
    return _map_blocks(
        read_block,
        receipts,
        target,
        blocks,
        dtype=array.dtype,
        chunks=blocks,
        meta=np.empty((0,) * array.ndim, array.dtype),
        name=f"stored-{receipts.name}",
    )


def read_block(receipt: np.ndarray, target: Target, block: tuple[slice, ...]) -> np.ndarray:
    """Read a block that was written: the task."""
    return target.read(block)
