"""How a blocked array fits a stored one: the chunks of a new one, the region of another. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from zarrdask.errors import MetadataError, SelectionError
from zarrdask.grids.base import Shape
from zarrdask.indexing.selection import Region, basic, first_out_of_bounds, index_by_name, pick_size
from zarrdask.metadata.chunking import GridLike
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.plan.align import Chunks, even


def known_blocks(shape: Shape, chunks: Any) -> Chunks:
    """Return the lengths of blocks along each axis.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    chunks : int, sequence of int, or sequence of sequences of int
        One length for all blocks, one for those of each axis, or all lengths, as Dask has them.

    Raises
    ------
    MetadataError
        If they aren't known, or of another number of axes.

    Examples
    --------
    >>> known_blocks((5, 4), 2), known_blocks((5, 4), ((1, 4), 3))
    (((2, 2, 1), (2, 2)), ((1, 4), (3, 1)))
    """
    found = list(chunks) if isinstance(chunks, Iterable) else [chunks] * len(shape)
    if len(found) != len(shape):
        raise MetadataError(
            "there must be blocks along each axis",
            key="chunks",
            found=chunks,
            expected=f"{len(shape)}",
        )
    lists = [
        list(axis) if isinstance(axis, Iterable) else even(size, axis)
        for size, axis in zip(shape, found, strict=True)
    ]
    if any(n != n for axis in lists for n in axis):  # noqa: PLR0124 - NaN: Dask doesn't know it
        raise MetadataError(
            "chunk sizes must be known to store an array; call x.compute_chunk_sizes()",
            key="chunks",
            found=chunks,
        )
    return tuple(tuple(map(int, axis)) for axis in lists)


def chunk_options(blocks: Chunks, grid: GridLike, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that tell the chunks of a new array, where none does.

    Raises
    ------
    MetadataError
        If two options tell different chunks.
    """
    if grid == "regular":
        return {"chunks": tuple(max(*axis, 1) for axis in blocks)}
    if grid != "rectilinear":
        return {"grid": grid}
    if "chunks" in options:
        raise MetadataError(
            "the grid is that of the chunks given: lists of lengths make it rectilinear",
            key="grid",
            found=grid,
        )
    return {"chunks": blocks}


def find_region(region: Any, metadata: ArrayMetadata) -> Region:
    """Return which part of a stored array a user means.

    Parameters
    ----------
    region : tuple of slice, or dict of names to slices, optional
        All of the array, if None.
    metadata : ArrayMetadata
        Of the stored array.

    Raises
    ------
    SelectionError
        If it is not made of slices without a step, or goes beyond the array; also if it is
        ``"auto"``, all of it or along an axis: that is found by coordinates, which arrays lack.
    """
    if _is_auto(region):
        raise SelectionError(
            "places are not found by coordinates here, as an array has none; xarray, which has "
            "them, can tell the slices",
            key="region",
            found=region,
            expected="slices, or a dict of names of dimensions to slices",
        )
    try:
        if isinstance(region, Mapping):
            region = index_by_name(region, metadata.dimension_names)
        selection = basic(() if region is None else region, metadata.shape)
    except SelectionError as error:
        raise error.within("region") from error.__cause__
    picks = selection.slices
    if not selection.plain or any(pick.step != 1 for pick in picks):
        raise SelectionError(
            "a region is made of slices without a step", key="region", found=region
        )
    outside = first_out_of_bounds(() if region is None else region, metadata.shape)
    if outside is not None:
        axis, pick = outside
        raise SelectionError(
            f"the region goes beyond the array along axis {axis}; resize or append makes it longer",
            key="region",
            found=pick,
            expected=f"a slice within 0 to {metadata.shape[axis]}",
        )
    return picks


def _is_auto(region: Any) -> bool:
    """Whether a place is to be found by coordinates, as xarray does that."""
    picks = region.values() if isinstance(region, Mapping) else region
    picks = picks if isinstance(picks, Iterable) and not isinstance(picks, str) else (picks,)
    return any(isinstance(pick, str) and pick == "auto" for pick in picks)


def find_place(shape: Shape, region: Any, metadata: ArrayMetadata) -> Region:
    """Return where in a stored array an array goes.

    Parameters
    ----------
    shape : tuple of int
        Of what is written.
    region : tuple of slice, or dict of names to slices, optional
        As a user means it; all of the stored array, if None.
    metadata : ArrayMetadata
        Of the stored array.

    Raises
    ------
    SelectionError
        If the region is not made of slices without a step, or has another shape.
    """
    picks = find_region(region, metadata)
    taken = tuple(map(pick_size, picks))
    if taken != shape:
        raise SelectionError(
            "the array does not fit the region", key="region", found=shape, expected=f"{taken}"
        )
    return picks
