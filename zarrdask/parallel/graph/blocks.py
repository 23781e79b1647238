"""The blocks of Dask arrays that read stored arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.array.core import normalize_chunks

from zarrdask import config
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.errors import MetadataError
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.formats.metadata.lengths import by_axis
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.plan.align import Chunks, auto_block

#: The largest number of blocks along an axis. Dask holds an integer for each.
_MAX_BLOCKS = 2**26


def is_auto(chunks: Any) -> bool:
    """Whether the blocks are the default ones."""
    return chunks is None or (isinstance(chunks, str) and chunks == "auto")


def region_blocks(source: ArrayRegion, chunks: Any, depths: Shape | None = None) -> Chunks:
    """Return the blocks of a region; `chunks` as in `from_zarr`.

    `depths` says how far default blocks overlap along each axis of the stored array.
    """
    metadata, region = source.metadata, source.region
    if is_auto(chunks):
        extent = tuple(s.stop - s.start for s in region)
        limit = block_bytes(source.stored.units.capabilities.costs.block_factor)
        blocks = _cut(region, _auto_axes(metadata, extent, limit, depths))
    else:
        blocks = _cut(region, metadata.grid.axes)
        if not (isinstance(chunks, str) and chunks == "stored"):
            shape, names = region_shape(region), metadata.dimension_names
            blocks = normal_blocks(chunks, shape, metadata.dtype, names, blocks)
    return tuple(blocks[axis] for axis in source.axes)


def normal_blocks(
    chunks: Any,
    shape: Shape,
    dtype: np.dtype[Any],
    names: Sequence[str | None] | None,
    previous: Chunks,
) -> Chunks:
    """Return the lengths of blocks for chunks in any form that Dask accepts.

    The keys of a mapping are axes or `names`; `previous` are the blocks where it leaves them open.
    """
    chunks = by_axis(chunks, len(shape), names, "chunks")
    try:
        if isinstance(chunks, str) and chunks.strip().isdigit():
            raise ValueError("a number as text may be a length or bytes")
        blocks: Chunks = normalize_chunks(chunks, shape, dtype=dtype, previous_chunks=previous)
        if any(length < 0 for lengths in blocks for length in set(lengths)):
            raise ValueError("a length is negative")  # which Dask accepts if they add up
    except (TypeError, ValueError, ZeroDivisionError) as error:
        reason = "a length is 0" if isinstance(error, ZeroDivisionError) else error
        raise MetadataError(
            f"invalid chunks: {reason}",
            key="chunks",
            found=chunks,
            expected="lengths, a size such as '16 MiB', 'auto', or 'stored'",
        ) from error
    return blocks


def block_bytes(factor: int) -> int:
    """Return up to which size in bytes units are joined; `factor` is the factor of their store."""
    return int(config.get("block-size")) * factor


def _auto_axes(
    metadata: ArrayMetadata, extent: Shape, limit: int, depths: Shape | None
) -> tuple[Axis, ...]:
    """Return the blocks along each axis, for a region with some extent."""
    grid, inner = metadata.grid, metadata.read_grid.chunk_shape
    block = auto_block(extent, grid.chunk_shape, inner, metadata.dtype.itemsize, limit, depths)
    units = zip(block, grid.chunk_shape, extent, strict=True)
    if any(length < min(unit, n) for length, unit, n in units):
        return RegularGrid(grid.shape, block).axes  # Large shards are cut along inner chunks.
    return tuple(axis.join(length) for axis, length in zip(grid.axes, block, strict=True))


def _cut(region: Region, axes: Sequence[Axis]) -> Chunks:
    """Return the lengths of blocks if a region is cut at boundaries of the stored array."""
    for pick, axis in zip(region, axes, strict=True):
        count = len(axis.numbers(pick))
        if count > _MAX_BLOCKS:
            raise MetadataError(
                "there would be more blocks along an axis than Dask can hold",
                key="chunks",
                found=count,
                expected=f"at most {_MAX_BLOCKS}: pass a smaller region, or larger chunks",
            )
    return tuple(axis.blocks(pick) for pick, axis in zip(region, axes, strict=True))
