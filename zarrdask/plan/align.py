"""Align the blocks of a Dask array with stored units. Pure."""

from collections.abc import Sequence
from math import prod

import numpy as np

from zarrdask.grids.base import Axis, Shape
from zarrdask.indexing.projection import axis_parts, chunk_number, chunk_start
from zarrdask.indexing.selection import pick_size

Chunks = tuple[tuple[int, ...], ...]


def even(size: int, length: int) -> tuple[int, ...]:
    """Cut an axis into blocks of one length; the last one may be shorter."""
    count, rest = divmod(size, length) if length else (0, 0)
    return (length,) * count + ((rest,) if rest else ()) or (0,)


def auto_block(shape: Shape, unit: Shape, inner: Shape, itemsize: int, limit: int) -> Shape:
    """Return the default shape of the blocks that tasks read.

    Notes
    -----
    Whole units are joined, along the leading axes first: units that are stacked along the leading
    axis are decoded in place, without a copy. A unit above the limit is a block of its own; one of
    more than four times the limit is cut along its inner chunks.

    Examples
    --------
    >>> auto_block((256, 1024, 1024), (64, 64, 64), (64, 64, 64), 4, 2**24)
    (256, 256, 64)
    """
    if _clipped_size(unit, shape) * itemsize > 4 * limit:
        unit = inner
    room = limit // max(_clipped_size(unit, shape) * itemsize, 1)
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


def _clipped_size(unit: Shape, shape: Shape) -> int:
    """Return the number of elements of a unit, without those outside the array."""
    return prod(min(n, size) if size else n for n, size in zip(unit, shape, strict=True))


def join(axes: Sequence[Axis], block: Shape) -> tuple[Axis, ...]:
    """Join units to blocks along each axis: as many as fit into a length, at least one.

    Examples
    --------
    >>> join((4, np.array([0, 1, 3, 6, 7])), (8, 3))
    (8, array([0, 3, 6, 7]))
    """
    return tuple(
        length if isinstance(axis, int) else join_edges(axis, length)
        for axis, length in zip(axes, block, strict=True)
    )


def join_edges(edges: np.ndarray, length: int) -> np.ndarray:
    """Join units with these boundaries, as `join` does along one axis."""
    numbers, last = [0], len(edges) - 1
    while numbers[-1] < last:
        end = int(np.searchsorted(edges, edges[numbers[-1]] + length, "right")) - 1
        numbers.append(max(end, numbers[-1] + 1))
    joined: np.ndarray = edges[numbers].astype(np.int64, copy=False)
    return joined


def blocks_of(pick: slice, axis: Axis) -> tuple[int, ...]:
    """Return the number of selected elements in each unit that a slice overlaps.

    >>> blocks_of(slice(2, 9, 1), 4), blocks_of(slice(0, 7, 2), np.array([0, 1, 3, 7]))
    ((2, 4, 1), (1, 1, 2))
    """
    if isinstance(axis, int) and pick.step == 1:
        return offset_blocks(pick.start, pick.stop - pick.start, axis)
    return tuple(pick_size(part.outside) for part in axis_parts(pick, axis)) or (0,)


def offset_blocks(start: int, size: int, length: int) -> tuple[int, ...]:
    """Cut an interval of an axis at the multiples of a length.

    >>> offset_blocks(start=3, size=6, length=4)
    (1, 4, 1)
    """
    if not size:
        return (0,)
    first = min(-start % length or length, size)
    return (first, *(even(size - first, length) if size > first else ()))


def snap(blocks: tuple[int, ...], start: int, axis: Axis) -> tuple[int, ...]:
    """Move the boundaries of blocks to those of stored units, so that each unit has one writer.

    A unit that several blocks overlap goes to the block with the largest part of it; of equal parts
    to the first. This moves the fewest elements, only between neighbours, and no block extends
    beyond the units that it overlapped before.

    Blocks whose boundaries all are boundaries of units are returned as they are.

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
    splits_unit = low < inner
    if not splits_unit.any():
        return blocks
    moved = _owner_edges(inner[splits_unit], low[splits_unit], high[splits_unit])
    new_edges = np.concatenate([[start, end], inner[~splits_unit], moved])
    return tuple(np.diff(np.unique(new_edges)).tolist())


def _owner_edges(cuts: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the boundaries of split units at which their owners begin or end.

    Parameters
    ----------
    cuts : ndarray of int
        The positions at which blocks meet within a unit, ascending.
    low, high : ndarray of int
        The begin and end of the unit for each position.
    """
    #     low    cut   cut    high
    #      |------|-----|-------|        The owner of a unit is the block with its longest piece.
    lows, first = np.unique(low, return_index=True)
    highs = high[first]
    begins = np.sort(np.concatenate([lows, cuts]))
    unit = np.searchsorted(lows, begins, "right") - 1
    ends = np.minimum(np.append(begins[1:], highs[-1]), highs[unit])
    first_pieces = np.searchsorted(begins, lows)
    longest = np.maximum.reduceat(ends - begins, first_pieces)
    best = np.flatnonzero(ends - begins == longest[unit])
    _, once = np.unique(unit[best], return_index=True)
    owner = best[once]
    return np.concatenate([lows[begins[owner] > lows], highs[ends[owner] < highs]])


def edges_of(lengths: Sequence[int], start: int = 0) -> np.ndarray:
    """Return the begin of each length, and the end of the last one.

    >>> edges_of((2, 3), 5)
    array([ 5,  7, 10])
    """
    return start + np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])


def bounds_of(
    positions: np.ndarray, axis: Axis, start: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the begin and end of the units that contain positions, clipped to an interval.

    >>> bounds_of(np.array([50, 64]), 64, 10, 100)
    (array([10, 64]), array([ 64, 100]))
    """
    if isinstance(axis, int):
        length = min(axis, end) or 1  # Longer units would overflow.
        low = positions // length * length
        high = low + length
    else:
        number = np.searchsorted(axis, positions, "right")
        low, high = axis[number - 1], axis[number]
    return np.maximum(low, start), np.minimum(high, end)


def shorten(
    blocks: Chunks, start: Sequence[int], axes: Sequence[Axis], max_elements: int
) -> Chunks:
    """Cut blocks between stored units, the leading axis first, until they have few elements.

    Examples
    --------
    >>> shorten(((4, 2), (60, 60)), (0, 0), (4, 20), 200)
    ((4, 2), (40, 20, 40, 20))
    """
    shortened = list(blocks)
    for number, (first, axis) in enumerate(zip(start, axes, strict=True)):
        longest = [max(lengths) for lengths in shortened]
        if prod(longest) <= max_elements:
            break
        max_length = max_elements // max(prod(longest) // longest[number], 1)
        shortened[number] = _cut(shortened[number], first, axis, max_length)
    return tuple(shortened)


def _cut(blocks: tuple[int, ...], start: int, axis: Axis, max_length: int) -> tuple[int, ...]:
    """Cut blocks between units, to the greatest length or the length of one unit."""
    lengths = []
    for length in blocks:
        end = start + length
        while end - start > max_length:
            cut = chunk_start(chunk_number(start + max_length, axis), axis)
            if cut <= start:
                cut = min(chunk_start(chunk_number(start, axis) + 1, axis), end)
            if cut == end:
                break
            lengths.append(cut - start)
            start = cut
        lengths.append(end - start)
        start = end
    return tuple(lengths)
