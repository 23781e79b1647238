"""The chunks of a new array for given blocks, and the region of an existing one. Pure."""

from collections.abc import Mapping
from typing import Any

from zarrdask.errors import MetadataError, SelectionError
from zarrdask.formats.grids.axis import Even
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import Region, find_region, is_iterable, region_shape
from zarrdask.formats.metadata.array_options import GridLike
from zarrdask.formats.metadata.lengths import with_defaults
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.plan.align import Chunks


def known_blocks(shape: Shape, chunks: Any) -> Chunks:
    """Return the lengths of blocks along each axis, which must be known.

    Examples
    --------
    >>> known_blocks((5, 4), 2), known_blocks((5, 4), ((1, 4), 3))
    (((2, 2, 1), (2, 2)), ((1, 4), (3, 1)))
    """
    axes = list(chunks) if is_iterable(chunks) else [chunks] * len(shape)
    if len(axes) != len(shape):
        raise MetadataError(
            "the blocks have another number of axes than the array; pass lengths along each axis",
            key="chunks",
            found=chunks,
            expected=f"lengths along {len(shape)} axes",
        )
    lists = [
        list(axis) if is_iterable(axis) else Even(size, axis).blocks(slice(0, size, 1))
        for size, axis in zip(shape, axes, strict=True)
    ]
    if any(n != n for axis in lists for n in axis):  # noqa: PLR0124 - NaN is a length that Dask doesn't know
        raise MetadataError(
            "chunk sizes must be known to store an array; call x.compute_chunk_sizes()",
            key="chunks",
            found=chunks,
        )
    return tuple(tuple(map(int, axis)) for axis in lists)


def chunk_options(blocks: Chunks, grid: GridLike, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for the chunks and shards of a new array that has blocks.

    Lengths that the `options` leave open, by None or in a mapping, are the lengths of the blocks.
    """
    if grid == "regular":
        longest = tuple(max(*axis, 1) for axis in blocks)
        names = options.get("dimension_names")
        chunks = with_defaults(options.get("chunks", longest), longest, names, "chunks")
        if options.get("shards") is None:
            return {"chunks": chunks}
        inner = chunks if isinstance(chunks, tuple) else (None,) * len(blocks)
        return {
            "chunks": chunks,
            "shards": with_defaults(options["shards"], inner, names, "shards"),
        }
    if grid != "rectilinear":
        return {"grid": grid}
    if "chunks" in options:
        raise MetadataError(
            "chunks already determine the grid (lists of lengths make it rectilinear); omit grid "
            "or chunks",
            key="grid",
            found=grid,
        )
    return {"chunks": blocks}


def written_region(shape: Shape, region: Any, metadata: ArrayMetadata) -> Region:
    """Return the region of a stored array that an array of some shape is written to."""
    picks = find_region(region, metadata.shape, metadata.dimension_names)
    if region_shape(picks) != shape:
        raise SelectionError(
            "the array does not fit the region: their shapes differ",
            key="region",
            found=shape,
            expected=f"{region_shape(picks)}",
        )
    return picks
