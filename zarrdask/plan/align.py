"""Blocks of a Dask array <-> stored units."""

from collections.abc import Sequence
from math import prod

import numpy as np

from zarrdask.grids.base import Axis, Shape
from zarrdask.indexing.projection import axis_parts
from zarrdask.indexing.selection import pick_size

Chunks = tuple[tuple[int, ...], ...]


def even(size: int, length: int) -> tuple[int, ...]:
    """Cut an axis into equal lengths, the last as long as is left."""
    count, rest = divmod(size, length) if length else (0, 0)
    return (length,) * count + ((rest,) if rest else ()) or (0,)


def auto_block(shape: Shape, unit: Shape, inner: Shape, itemsize: int, limit: int) -> Shape:
    """Return the shape of the blocks that a task reads.

    Parameters
    ----------
    shape, unit, inner : tuple of int
        Of the array, of its stored units, and of the smallest part that is read by itself.
    itemsize, limit : int
        In bytes: of one element, and what a block should reach but hardly exceed.

    Notes
    -----
    Whole units are joined, the trailing axis last: a block of units stacked along the leading
    axis is decoded in place, with no copy. A unit above the limit is a block of its own, and
    one far above it (4 times) is cut along its inner chunks.

    Examples
    --------
    >>> auto_block((256, 1024, 1024), (64, 64, 64), (64, 64, 64), 4, 2**24)
    (256, 256, 64)
    """
    whole = tuple(min(n, size) if size else n for n, size in zip(unit, shape, strict=True))
    if prod(whole) * itemsize > 4 * limit and inner != unit:
        unit = inner
        whole = tuple(min(n, size) if size else n for n, size in zip(unit, shape, strict=True))
    room = limit // max(prod(whole) * itemsize, 1)
    counts = []
    for size, length in zip(shape, unit, strict=True):
        most = max(-(-size // length), 1) if length else 1
        count = max(min(most, room), 1)
        counts.append(count)
        room //= count
    return tuple(
        max(min(count * length, size), 1) if size else length
        for count, length, size in zip(counts, unit, shape, strict=True)
    )


def join(axes: Sequence[Axis], block: Shape) -> tuple[Axis, ...]:
    """Return how blocks lie along each axis: whole units, no longer than a length if one fits.

    Parameters
    ----------
    axes : sequence of (int or ndarray of int)
        The units' lengths, or the boundaries between them.
    block : tuple of int
        Lengths, as `auto_block` gives for the largest unit.

    Examples
    --------
    >>> join((4, np.array([0, 1, 3, 6, 7])), (8, 3))
    (8, array([0, 3, 6, 7]))
    """
    return tuple(
        length if isinstance(axis, int) else _join(axis, length)
        for axis, length in zip(axes, block, strict=True)
    )


def _join(edges: np.ndarray, length: int) -> np.ndarray:
    found, last = [0], len(edges) - 1
    at = 0
    while at < last:
        end = int(np.searchsorted(edges, edges[at] + length, "right")) - 1
        at = max(end, at + 1)
        found.append(int(edges[at]))
    return np.array(found, np.int64)


def blocks_of(pick: slice, axis: Axis) -> tuple[int, ...]:
    """Return how much of a pick lies in each of the units along an axis that it meets.

    >>> blocks_of(slice(2, 9, 1), 4), blocks_of(slice(0, 7, 2), np.array([0, 1, 3, 7]))
    ((2, 4, 1), (1, 1, 2))
    """
    if isinstance(axis, int) and pick.step == 1:
        return offset_blocks(pick.start, pick.stop - pick.start, axis)
    return tuple(pick_size(part.outside) for part in axis_parts(pick, axis)) or (0,)


def offset_blocks(start: int, size: int, length: int) -> tuple[int, ...]:
    """Cut a stretch of an axis where multiples of a length lie.

    >>> offset_blocks(start=3, size=6, length=4)
    (1, 4, 1)
    """
    if not size:
        return (0,)
    first = min(-start % length or length, size)
    return (first, *(even(size - first, length) if size > first else ()))


def snap(blocks: tuple[int, ...], start: int, axis: Axis) -> tuple[int, ...]:
    """Move the boundaries of blocks to those of stored units, so that each unit has one writer.

    A unit in which blocks meet goes to the block that has most of it, of equals the first. So the
    least moves, only neighbours exchange something, and no block reaches farther than the units
    that it meets.

    Parameters
    ----------
    blocks : tuple of int
        The lengths of the blocks along an axis.
    start : int
        Where they begin in the stored axis.
    axis : int or ndarray of int
        The units' length, or the boundaries between them.

    Returns
    -------
    tuple of int
        Lengths of the same sum; the blocks themselves if their boundaries lie right already.

    Examples
    --------
    >>> snap((50, 50, 50), 0, 64)
    (64, 64, 22)
    >>> snap((64, 128), 64, 64)
    (64, 128)
    >>> snap((50, 50, 50), 0, np.array([0, 10, 60, 150]))
    (60, 90)
    """
    edges = edges_of(blocks, start)
    end = int(edges[-1])
    inner = np.unique(edges[(edges > start) & (edges < end)])
    low, high = bounds_of(inner, axis, start, end)
    meets = low < inner
    if not meets.any():
        return blocks
    found = np.concatenate(
        [[start, end], inner[~meets], _edges(inner[meets], low[meets], high[meets])]
    )
    return tuple(np.diff(np.unique(found)).tolist())


def _edges(cuts: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the boundaries, of units that are cut, at which their owners end or begin.

    Parameters
    ----------
    cuts : ndarray of int
        Where blocks meet, ascending.
    low, high : ndarray of int
        Where the unit of each begins and ends.
    """
    #     low    cut   cut    high
    #      |------|-----|-------|        the pieces of a unit; the longest is its owner's
    lows, first = np.unique(low, return_index=True)
    highs = high[first]
    begins = np.sort(np.concatenate([lows, cuts]))
    unit = np.searchsorted(lows, begins, "right") - 1
    ends = np.minimum(np.append(begins[1:], highs[-1]), highs[unit])
    at = np.searchsorted(begins, lows)
    longest = np.maximum.reduceat(ends - begins, at)
    best = np.flatnonzero(ends - begins == longest[unit])
    _, once = np.unique(unit[best], return_index=True)
    owner = best[once]
    return np.concatenate([lows[begins[owner] > lows], highs[ends[owner] < highs]])


def edges_of(lengths: Sequence[int], start: int = 0) -> np.ndarray:
    """Return where each of the lengths begins, and where the last one ends.

    >>> edges_of((2, 3), 5)
    array([ 5,  7, 10])
    """
    return start + np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])


def bounds_of(
    positions: np.ndarray, axis: Axis, start: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the units begin and end that positions lie in; no farther than a stretch.

    >>> bounds_of(np.array([50, 64]), 64, 10, 100)
    (array([10, 64]), array([ 64, 100]))
    """
    if isinstance(axis, int):
        length = min(axis, end) or 1  # so that nothing overflows, whatever the length
        low = positions // length * length
        high = low + length
    else:
        number = np.searchsorted(axis, positions, "right")
        low, high = axis[number - 1], axis[number]
    return np.maximum(low, start), np.minimum(high, end)


def shorten(blocks: Chunks, start: Sequence[int], axes: Sequence[Axis], room: int) -> Chunks:
    """Cut blocks between stored units, the leading axis first, until they have few elements.

    Parameters
    ----------
    blocks : tuple of tuple of int
        As `snap` gives for each axis.
    start : sequence of int
        Where they begin along each axis.
    axes : sequence of (int or ndarray of int)
        The units.
    room : int
        How many elements. A block of one unit may have more.

    Examples
    --------
    >>> shorten(((4, 2), (60, 60)), (0, 0), (4, 20), 200)
    ((4, 2), (40, 20, 40, 20))
    """
    found = list(blocks)
    for number, (first, axis) in enumerate(zip(start, axes, strict=True)):
        longest = [max(lengths) for lengths in found]
        if prod(longest) <= room:
            break
        most = room // max(prod(longest) // longest[number], 1)
        found[number] = _cut(found[number], first, axis, most)
    return tuple(found)


def _cut(blocks: tuple[int, ...], start: int, axis: Axis, most: int) -> tuple[int, ...]:
    """Cut the blocks that are longer than a length: as many units as fit, at least one."""
    found = []
    for length in blocks:
        end = start + length
        while end - start > most:
            cut = _begin(start + most, axis)
            if cut <= start:
                cut = min(_end(start, axis), end)
            if cut == end:
                break
            found.append(cut - start)
            start = cut
        found.append(end - start)
        start = end
    return tuple(found)


def _begin(at: int, axis: Axis) -> int:
    """Return where the unit at a place begins."""
    if isinstance(axis, int):
        return at // axis * axis
    return int(axis[int(np.searchsorted(axis, at, "right")) - 1])


def _end(at: int, axis: Axis) -> int:
    """Return where the unit at a place ends."""
    if isinstance(axis, int):
        return at // axis * axis + axis
    return int(axis[np.searchsorted(axis, at, "right")])
