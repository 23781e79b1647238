"""Arithmetic with regions, and regions split into parts to read or write one by one. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import Region


def moved(region: Region, by: Shape) -> Region:
    """Return a region, shifted by a number of elements along each axis."""
    return tuple(slice(p.start + n, p.stop + n, 1) for p, n in zip(region, by, strict=True))


def compose_axis(outer: slice, inner: slice) -> slice:
    """Return the slice of an axis that is the slice `inner` of its slice `outer`."""
    step = inner.step or 1
    if step == outer.step == 1 and inner.start < inner.stop:
        return slice(outer.start + inner.start, outer.start + inner.stop, 1)
    count = len(range(inner.start, inner.stop, step))
    start, step = outer.start + inner.start * outer.step, outer.step * step
    return slice(start, start + (count - 1) * step + 1 if count else start, step)


def within(part: Region, region: Region) -> Region:
    """Return a part of a region, counted from the region's first element."""
    return moved(part, tuple(-pick.start for pick in region))


def view(values: np.ndarray, region: Region) -> np.ndarray:
    """Return a region of an array as a view: for a 0-d array, too, which NumPy makes a scalar."""
    index: Any = (*region, ...)
    result: np.ndarray = values[index]
    return result


def tiles(
    region: Region, axes: Sequence[Axis], start: Shape, limit: int, min_chunk_size: int = 1
) -> Iterator[Region]:
    """Split a region at chunk boundaries, and yield parts of several neighbouring chunks.

    Parameters
    ----------
    region : tuple of slice
        The region to split.
    axes : sequence of Axis
        The chunks along each axis.
    start : tuple of int
        The position, in the grid of the chunks, of the origin that `region` counts from.
    limit : int
        The maximum number of elements in a part. A single chunk may have more.
    min_chunk_size : int
        The number of elements that a chunk counts for, if it has fewer in the region.

    >>> from zarrdask.formats.grids.regular import RegularGrid
    >>> axes = RegularGrid((4, 9), (2, 4)).axes
    >>> parts = tiles((slice(0, 4, 1), slice(1, 9, 1)), axes, (0, 0), 16)
    >>> [(a.start, a.stop, b.start, b.stop) for a, b in parts]
    [(0, 2, 1, 8), (0, 2, 8, 9), (2, 4, 1, 8), (2, 4, 8, 9)]
    """
    boundaries = [axis.cut(pick, n) for axis, pick, n in zip(axes, region, start, strict=True)]
    longest = prod(max((b - a for a, b in pairwise(edges)), default=0) for edges in boundaries)
    budget = limit // max(longest, min_chunk_size, 1)
    picks = []
    # From the last axis to the first, so that a part is contiguous in memory.
    for edges in reversed(boundaries):
        count = max(min(len(edges) - 1, budget), 1)
        budget //= count
        last = edges[-1:] if (len(edges) - 1) % count else []
        picks.append([slice(a, b, 1) for a, b in pairwise([*edges[::count], *last])])
    return product(*reversed(picks))


def slabs(shape: Shape, limit: int) -> Iterator[Region]:
    """Split an array in C order into contiguous parts of at most `limit` elements.

    >>> [[(s.start, s.stop) for s in part] for part in slabs((2, 5), 3)]
    [[(0, 1), (0, 3)], [(0, 1), (3, 5)], [(1, 2), (0, 3)], [(1, 2), (3, 5)]]
    """
    limit = max(limit, 1)
    axis, row = len(shape), 1
    while axis and row * shape[axis - 1] <= limit:
        axis -= 1
        row *= shape[axis]
    inner = tuple(slice(0, n, 1) for n in shape[axis:])
    if not axis:
        yield inner
        return
    step = max(limit // max(row, 1), 1)
    for index in np.ndindex(shape[: axis - 1]):
        for begin in range(0, shape[axis - 1], step):
            head = tuple(slice(i, i + 1, 1) for i in index)
            yield (*head, slice(begin, min(begin + step, shape[axis - 1]), 1), *inner)
