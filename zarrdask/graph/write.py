"""``to_zarr``: Dask arrays into stored ones, each stored unit written by one task."""

from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.layers import ArraySliceDep

from zarrdask import config
from zarrdask.array import Array, create_array, open_array
from zarrdask.errors import MetadataError, SelectionError
from zarrdask.graph.client import check_visible
from zarrdask.graph.read import from_zarr
from zarrdask.graph.source import Target
from zarrdask.indexing import Region, basic, pick_size, whole_region
from zarrdask.plan.align import snap


def to_zarr(
    x: da.Array,
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    *,
    overwrite: bool = False,
    region: Any = None,
    compute: bool = True,
    return_stored: bool = False,
    **create_kwargs: Any,
) -> Any:
    """Store a Dask array. A drop-in for `dask.array.to_zarr`.

    Parameters
    ----------
    x : dask.array.Array
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
    **create_kwargs
        Options of `zarrdask.create_array`. Stored chunks follow the blocks of `x` by default.

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
        If there is a node already.
    SelectionError
        If the region does not fit `x`.

    Notes
    -----
    Block boundaries are first moved to those of the stored units, so that every stored object
    is written by exactly one task. Blocks that lie right already are taken as they are.
    """
    if any(np.isnan(n) for axis in x.chunks for n in axis):
        raise MetadataError(
            "chunk sizes must be known to store an array; call x.compute_chunk_sizes()",
            key="chunks",
            found=x.chunks,
        )
    array = _target(x, url, component, storage_options, overwrite, region, create_kwargs)
    check_visible(array.store)
    place = _place(x, array, region)
    receipts, target = write_blocks(x, array, place)
    if not return_stored:
        done = delayed(_finish)(
            receipts.to_delayed().ravel().tolist(), dask_key_name=f"to-zarr-{receipts.name}"
        )
        return done.compute() if compute else done
    if compute:
        dask.compute(receipts)
        return from_zarr(array, region=place)
    return _stored(receipts, target, x)


def _target(
    x: da.Array,
    url: Any,
    component: str | None,
    storage_options: dict[str, Any] | None,
    overwrite: bool,  # noqa: FBT001
    region: Any,
    options: dict[str, Any],
) -> Array:
    if isinstance(url, Array):
        found = open_array(url, component)
    elif region is not None:
        found = open_array(url, component, mode="r+", storage_options=storage_options)
    else:
        options.setdefault("chunks", tuple(max(*axis, 1) for axis in x.chunks))
        options.setdefault("dtype", x.dtype)
        return create_array(
            url,
            component,
            shape=x.shape,
            overwrite=overwrite,
            storage_options=storage_options,
            **options,
        )
    found.check_writable()
    return found


def _place(x: da.Array, array: Array, region: Any) -> Region:
    selection = basic(() if region is None else region, array.shape)
    picks: Region = selection.picks  # type: ignore[assignment]
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


def write_blocks(x: da.Array, array: Array, place: Region) -> tuple[da.Array, Target]:
    """Return a Dask array of receipts, one a block: how many units it stored.

    Parameters
    ----------
    x : dask.array.Array
    array : Array
    place : tuple of slice
        Where in it, of the shape of `x`.
    """
    metadata = array.metadata
    blocks = tuple(
        snap(sizes, pick.start, unit, size)
        for sizes, pick, unit, size in zip(
            x.chunks, place, metadata.chunk_shape, metadata.shape, strict=True
        )
    )
    if blocks != x.chunks:
        x = x.rechunk(blocks)
    start = tuple(pick.start for pick in place)
    target = Target(array.stored, start, empty=config.get("write-empty-chunks"))
    receipts = x.map_blocks(
        write_block,
        target,
        ArraySliceDep(x.chunks),
        dtype=np.intp,
        chunks=tuple((1,) * len(axis) for axis in x.chunks),
        meta=np.empty((0,) * x.ndim, np.intp),
        token="write-zarr",
    )
    return receipts, target


def write_block(values: np.ndarray, target: Target, block: tuple[slice, ...]) -> np.ndarray:
    """Write one block: the task. The receipt is small, whatever the block."""
    return np.full((1,) * len(block), target.write(values, block), np.intp)


def _finish(receipts: Any) -> None:
    """Stand for all writes."""


def _stored(receipts: da.Array, target: Target, x: da.Array) -> da.Array:
    """Return the stored array, each block read after it was written."""
    chunks = receipts.chunks
    blocks = x.chunks if x.numblocks == tuple(map(len, chunks)) else None
    if blocks is None:
        raise MetadataError("blocks differ", key="chunks")
    return receipts.map_blocks(
        read_block,
        target,
        ArraySliceDep(blocks),
        dtype=x.dtype,
        chunks=blocks,
        meta=x._meta,
        token="stored-zarr",
    )


def read_block(receipt: np.ndarray, target: Target, block: tuple[slice, ...]) -> np.ndarray:
    """Read a block that was written: the task."""
    return target.read(block)


__all__ = ["Delayed", "from_zarr", "to_zarr", "whole_region", "write_blocks"]
