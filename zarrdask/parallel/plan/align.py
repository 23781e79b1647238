"""Align the blocks of a Dask array with stored units. Pure."""

from collections.abc import Sequence
from math import prod
from operator import mul

import numpy as np

from zarrdask.formats.grids.axis import Axis, edges_of
from zarrdask.formats.grids.chunk_grid import Shape

Chunks = tuple[tuple[int, ...], ...]


def auto_block(
    shape: Shape,
    unit: Shape,
    inner: Shape,
    itemsize: int,
    limit: int,
    depths: Shape | None = None,
) -> Shape:
    """Return the default shape of the blocks that tasks read.

    Notes
    -----
    Whole units are joined, along the leading axes first: units that are stacked along the leading
    axis are decoded directly into the block. If blocks overlap by `depths`, they are joined first
    where most is read twice. A unit above the limit is a block of its own; one of more than four
    times the limit is cut along its inner chunks.

    Examples
    --------
    >>> auto_block((256, 1024, 1024), (64, 64, 64), (64, 64, 64), 4, 2**24)
    (256, 256, 64)
    >>> auto_block((256, 4096, 4096), (1, 512, 512), (1, 512, 512), 4, 2**24, (0, 8, 8))
    (1, 2048, 2048)
    """
    if _clipped_size(unit, shape) * itemsize > 4 * limit:
        unit = inner
    room = limit // max(_clipped_size(unit, shape) * itemsize, 1)
    most = [max(-(-size // n), 1) if n else 1 for size, n in zip(shape, unit, strict=True)]
    counts = [1] * len(unit)
    if depths is not None:
        # The elements of the chunks that a block overlaps.
        halos = [-(-depth // max(n, 1)) * n for depth, n in zip(depths, inner, strict=True)]
        counts = _joined(most, [n / max(u, 1) for n, u in zip(halos, unit, strict=True)], room)
        room //= prod(counts)
    for axis, count in enumerate(counts):
        counts[axis] = max(min(most[axis], count * room), 1)
        room //= -(-counts[axis] // count)
    return tuple(map(mul, counts, unit))


def _joined(most: Sequence[int], halos: Sequence[float], room: int) -> list[int]:
    """Return how many units are joined along each axis, so that little is read twice.

    There are up to `most` along each axis, and `room` for so many together. `halos` are the units
    that blocks overlap at each end.
    """
    counts, axes = [1] * len(most), {axis for axis, halo in enumerate(halos) if halo}
    while axes:
        axis = max(sorted(axes), key=lambda axis: halos[axis] / counts[axis])
        count = min(2 * counts[axis], most[axis])
        if count == counts[axis] or prod(counts) // counts[axis] * count > room:
            axes.remove(axis)
        else:
            counts[axis] = count
    return counts


def _clipped_size(unit: Shape, shape: Shape) -> int:
    """Return the number of elements of a unit, without those outside the array."""
    return prod(min(n, size) if size else n for n, size in zip(unit, shape, strict=True))


def snap(blocks: tuple[int, ...], start: int, axis: Axis) -> tuple[int, ...]:
    """Move boundaries of blocks to boundaries of stored units: each unit has one writer.

    A unit that several blocks overlap goes to the block with the largest part of it, or to the
    first of equal ones. This moves the fewest elements, only between neighbours, and no block
    extends beyond the units that it overlapped before.

    Blocks whose boundaries all are boundaries of units are returned as they are.

    Examples
    --------
    >>> from zarrdask.formats.grids.axis import axis_of
    >>> snap((50, 50, 50), 0, axis_of(150, 64))
    (64, 64, 22)
    >>> snap((64, 128), 64, axis_of(256, 64))
    (64, 128)
    >>> snap((50, 50, 50), 0, axis_of(150, (10, 50, 90)))
    (60, 90)
    """
    edges = edges_of(blocks, start)
    end = int(edges[-1])
    inner = np.unique(edges[(edges > start) & (edges < end)])
    units = axis.number(inner)
    low = np.maximum(axis.start(units), start)
    splits_unit = low < inner
    if not splits_unit.any():
        return blocks
    high = np.minimum(axis.start(units + 1), end)
    moved = _owner_edges(inner[splits_unit], low[splits_unit], high[splits_unit])
    new_edges = np.concatenate([[start, end], inner[~splits_unit], moved])
    return tuple(np.diff(np.unique(new_edges)).tolist())


def _owner_edges(cuts: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the boundaries of split units at which their owners begin or end.

    Parameters
    ----------
    cuts : ndarray of int
        The boundaries of blocks within a unit, ascending.
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


def shorten(
    blocks: Chunks, start: Sequence[int], axes: Sequence[Axis], max_elements: int
) -> Chunks:
    """Cut blocks between stored units, the leading axis first, until they have few elements.

    Examples
    --------
    >>> from zarrdask.formats.grids.regular import RegularGrid
    >>> shorten(((4, 2), (60, 60)), (0, 0), RegularGrid((6, 120), (4, 20)).axes, 200)
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
            cut = axis.start(axis.number(start + max_length))
            if cut <= start:
                cut = min(axis.start(axis.number(start) + 1), end)
            if cut == end:
                break
            lengths.append(cut - start)
            start = cut
        lengths.append(end - start)
        start = end
    return tuple(lengths)
