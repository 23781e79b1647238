"""`map_overlap`: map a function over blocks of a stored array that overlap."""

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np

from zarrdask.arrays.chunks.missing_chunks import Missing
from zarrdask.arrays.nodes.arguments import checks_booleans
from zarrdask.errors import NodeTypeError
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.parallel.graph.from_zarr import from_zarr
from zarrdask.parallel.graph.overlap.overlap import (
    AxisOverlap,
    axis_overlaps,
    dimension_names,
    in_blocks,
    overlapped,
)
from zarrdask.parallel.graph.stored_array import source_of


@checks_booleans
def map_overlap(
    func: Callable[..., Any],
    url: Any,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    *,
    depth: Any,
    boundary: Any = "none",
    trim: bool = True,
    allow_rechunk: bool = True,
    blocks: Any = "auto",
    region: Any = None,
    zarr_format: ZarrFormat | None = None,
    consolidated: bool | None = None,
    strict: bool | None = None,
    missing: Missing | None = None,
    **kwargs: Any,
) -> da.Array:
    """Map a function over blocks of a stored array that overlap their neighbours.

    The result is the same as of `dask.array.map_overlap`, but each block is read from the
    store with its overlaps: one task reads it, calls the function and trims the result.

    Parameters
    ----------
    func : callable
        The function of a block.
    url, component, storage_options
        The stored array, as in `zarrdask.from_zarr`.
    depth, boundary
        The number of elements by which blocks overlap, and the values beyond the ends of the array,
        as in `zarrdask.from_zarr`.
    trim : bool, default True
        Whether to remove as many elements from each result as the block had of overlaps. Without
        it, the results of the function are expected to have the shapes of blocks without overlaps,
        unless `chunks` says otherwise.
    allow_rechunk : bool, default True
        Whether blocks that are shorter than the depth are joined; otherwise, they raise an error.
    blocks : "auto", "stored", or chunks, default "auto"
        The blocks before they overlap: `chunks` of `zarrdask.from_zarr`.
    region : basic index, or dict of names to slices or integers, optional
        The part of the array to read. Nothing beyond it is read.
    zarr_format, consolidated, strict, missing
        As in `zarrdask.from_zarr`.
    **kwargs
        Other arguments of `dask.array.map_overlap` and `dask.array.map_blocks` (such as `dtype`,
        `meta`, `chunks`, `drop_axis`, `new_axis` and `name`), and the arguments of the function.

    Returns
    -------
    dask.array.Array
        The results.

    Raises
    ------
    MetadataError
        If a depth or boundary is invalid, or the depth is larger than the array.
    NodeTypeError
        If `url` is a Dask array.
    UnsupportedError
        If the depths before and after a block differ where there is a boundary.
    ZarrdaskError
        As from `zarrdask.from_zarr`.

    See Also
    --------
    from_zarr : With `depth`, the blocks that overlap.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=6, dtype="i4", chunks=2)
    >>> z[...] = [1, 2, 4, 8, 16, 32]
    >>> y = map_overlap(lambda x: x[2:] - x[:-2], z, depth=1, boundary="nearest", trim=False)
    >>> y.compute()
    array([ 1,  3,  6, 12, 24, 16], dtype=int32)
    """
    if isinstance(url, da.Array):
        raise NodeTypeError(
            "blocks with overlaps are read from a stored array; use dask.array.map_overlap for a "
            "Dask array",
            key="url",
            found=url,
            expected="a stored array, or its URL",
        )
    x = from_zarr(
        url,
        component,
        storage_options,
        chunks=blocks,
        region=region,
        zarr_format=zarr_format,
        consolidated=consolidated,
        strict=strict,
        missing=missing,
    )
    source = source_of(x)
    names = None if source is None else dimension_names(source)
    axes = axis_overlaps(depth, boundary, x.dtype, x.ndim, names)
    x = in_blocks(x, axes, blocks)
    kwargs.pop("align_arrays", None)  # There is only one.
    overlapping = overlapped(x, axes, allow_rechunk=allow_rechunk)
    if overlapping is not x and not trim and "chunks" not in kwargs:
        kwargs["chunks"] = tuple(axis.joined(n) for axis, n in zip(axes, x.chunks, strict=True))
    y = da.map_blocks(func, overlapping, **kwargs)
    if overlapping is x or not trim:
        return y
    left = _left(axes, kwargs.get("drop_axis"), kwargs.get("new_axis"))
    depths = {number: axis.depth for number, axis in enumerate(left)}
    boundaries = {number: axis.boundary for number, axis in enumerate(left)}
    return da.overlap.trim_internal(y, depths, boundaries)


def _left(axes: Sequence[AxisOverlap], dropped: Any, added: Any) -> list[AxisOverlap]:
    """Return the overlap along each axis of the result of a function that drops and adds axes."""
    numbers = {number % len(axes) for number in _numbers(dropped)}
    left = [axis for number, axis in enumerate(axes) if number not in numbers]
    for number in sorted(_numbers(added)):
        left.insert(number, AxisOverlap(0, 0, "none"))
    return left


def _numbers(axes: Any) -> list[int]:
    return [int(axis) for axis in np.atleast_1d([] if axes is None else axes)]
