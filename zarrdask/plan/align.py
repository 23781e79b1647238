"""Blocks of a Dask array <-> stored units."""

from itertools import pairwise
from math import prod

from zarrdask.grids import Shape

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


def offset_blocks(start: int, size: int, length: int) -> tuple[int, ...]:
    """Cut a stretch of an axis where multiples of a length lie.

    >>> offset_blocks(start=3, size=6, length=4)
    (1, 4, 1)
    """
    if not size:
        return (0,)
    first = min(-start % length or length, size)
    return (first, *(even(size - first, length) if size > first else ()))


def snap(blocks: tuple[int, ...], start: int, unit: int) -> tuple[int, ...]:
    """Move the boundaries of blocks to those of stored units, so that each unit has one writer.

    Parameters
    ----------
    blocks : tuple of int
        The lengths of the blocks along an axis.
    start, unit : int
        Where they begin in the stored axis, and the units' length.

    Returns
    -------
    tuple of int
        Lengths of the same sum; the blocks themselves if their boundaries lie right already.

    Examples
    --------
    >>> snap((50, 50, 50), start=0, unit=64)
    (64, 64, 22)
    >>> snap((64, 128), start=64, unit=64)
    (64, 128)
    """
    end = start + sum(blocks)
    edges = [start]
    at = start
    for length in blocks[:-1]:
        at += length
        # To the nearer boundary; a block that has none within is joined to its neighbour.
        near = (at + unit // 2) // unit * unit
        if edges[-1] < near < end:
            edges.append(near)
    edges.append(end)
    return tuple(b - a for a, b in pairwise(edges)) if end > start else blocks
