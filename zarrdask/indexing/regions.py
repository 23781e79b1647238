"""Regions cut into the parts that are read or written at a time. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from zarrdask.grids.base import Axis, Shape
from zarrdask.indexing.selection import Region


def moved(region: Region, by: Shape) -> Region:
    """Return a region that begins so much later."""
    return tuple(slice(p.start + n, p.stop + n, 1) for p, n in zip(region, by, strict=True))


def within(part: Region, region: Region) -> Region:
    """Return a part of a region as seen from there."""
    return moved(part, tuple(-pick.start for pick in region))


def view(values: np.ndarray, region: Region) -> np.ndarray:
    """Return a region of an array: an array also where there are no axes, no scalar."""
    index: Any = (*region, ...)
    result: np.ndarray = values[index]
    return result


def tiles(
    region: Region, axes: Sequence[Axis], start: Shape, limit: int, min_chunk_size: int = 1
) -> Iterator[Region]:
    """Cut a region at the boundaries of chunks; yield several together, of so many elements.

    Parameters
    ----------
    region : tuple of slice
    axes : sequence of (int or ndarray of int)
        The chunks' length along each axis, or the boundaries between them.
    start : tuple of int
        Where the region's origin lies among the chunks.
    limit : int
        Elements, unless a chunk has more.
    min_chunk_size : int
        For how many elements a chunk counts at least, however little of it lies in the region.

    Examples
    --------
    >>> found = tiles((slice(0, 4, 1), slice(1, 9, 1)), (2, 4), (0, 0), 16)
    >>> [(a.start, a.stop, b.start, b.stop) for a, b in found]
    [(0, 2, 1, 8), (0, 2, 8, 9), (2, 4, 1, 8), (2, 4, 8, 9)]
    """
    cut = [cut_axis(*of) for of in zip(axes, region, start, strict=True)]
    longest = prod(max(map(_length, pairwise(edges)), default=0) for edges in cut)
    budget = limit // max(longest, min_chunk_size, 1)
    joined = []
    # The last axes first: what lies together in memory is read together.
    for edges in reversed(cut):
        count = max(min(len(edges) - 1, budget), 1)
        budget //= count
        last = edges[-1:] if (len(edges) - 1) % count else []
        joined.append([slice(a, b, 1) for a, b in pairwise([*edges[::count], *last])])
    return product(*reversed(joined))


def _length(pair: tuple[int, int]) -> int:
    return pair[1] - pair[0]


def cut_axis(axis: Axis, pick: slice, origin: int = 0) -> list[int]:
    """Return where a slice is cut by chunks along an axis, with both its ends.

    Parameters
    ----------
    origin : int
        Where the slice's origin lies among the chunks.
    """
    begin, end = pick.start + origin, pick.stop + origin
    if isinstance(axis, int):
        inner = np.arange((begin // axis + 1) * axis, end, axis) if axis else np.empty(0, int)
    else:
        low, high = np.searchsorted(axis, [begin, end], "right")
        inner = axis[low:high]
        inner = inner[inner < end]
    return [pick.start, *(inner - origin).tolist(), pick.stop] if end > begin else [pick.start]


def slabs(shape: Shape, limit: int) -> Iterator[Region]:
    """Cut an array in C order into parts that lie together, of so many elements at most.

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
