"""Which bytes of a decoded chunk hold the requested elements, and at which offsets. Pure."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrdask.formats.byte_ranges import Buffer, Range
from zarrdask.formats.indexing.projection import Points, Request
from zarrdask.formats.indexing.selection import pick_size

#: The bytes that are read in the time that it takes to read one more range of an open file, or of
#: bytes in memory.
RANGE_BYTES = 2**15
#: Points are sorted if each by itself would take at most so many times as long as the chunk.
_SPREAD = 4


class PartLayout(NamedTuple):
    """A part of the bytes of a chunk: ranges, one after another, and the elements in them.

    Attributes
    ----------
    ranges : list of (int, int)
        The start and the length of each range, sorted; they do not overlap.
    shape, strides : sequence of int
        The shape and the strides, in bytes, of an array in these bytes.
    index : optional
        The NumPy index of the requested elements in this array; None if they are all of it.
    """

    ranges: list[Range]
    shape: Sequence[int]
    strides: Sequence[int]
    index: Any = None

    @property
    def nbytes(self) -> int:
        """The size of all ranges."""
        return sum(length for _, length in self.ranges)

    def elements(self, dtype: np.dtype[Any], data: Buffer) -> np.ndarray:
        """Return the requested elements, given the bytes of all ranges."""
        # Not by as_strided, which does not support all dtypes.
        values: np.ndarray = np.ndarray(self.shape, dtype, data, 0, self.strides)
        return values if self.index is None else values[self.index]


def part_layout(
    request: Request, strides: Sequence[int], whole: int, overhead: int = RANGE_BYTES
) -> PartLayout | None:
    """Return the layout of a small part of a chunk; None if the whole takes hardly longer.

    Parameters
    ----------
    request : Request
        The elements, with axes in the order of the stored bytes.
    strides : sequence of int
        The strides of the chunk in bytes; the last is the size of an element, if there is one.
    whole : int
        The size of the chunk in bytes. The part has at most half of them.
    overhead : int
        The number of bytes that are read in the time that each range takes.

    Examples
    --------
    >>> part_layout((slice(2, 4, 1), slice(0, 3, 2)), (10, 1), 100, overhead=8).ranges
    [(20, 13)]
    >>> part_layout((slice(2, 4, 1), slice(0, 3, 2)), (1000, 1), 10000, overhead=8).ranges
    [(2000, 3), (3000, 3)]
    """
    if isinstance(request, Points):
        return _of_points(request, strides, whole, overhead)
    start, counts, steps, positions = 0, list[int](), list[int](), dict[int, np.ndarray]()
    for pick, stride in zip(request, strides, strict=True):
        if isinstance(pick, slice):
            low, step = pick.start, pick.step
            count = pick.stop - low if step == 1 else pick_size(pick)
        else:
            # Positions of an array are read with all between them.
            low, step = int(pick.min()), 1
            count = int(pick.max()) - low + 1
            positions[len(counts)] = pick - low
        start += low * stride
        counts.append(count)
        steps.append(step * stride)
    # The bytes from the first to the last element along some of the last axes are one range.
    size, number, axis = (strides[-1] if strides else whole), prod(counts), len(counts)
    best, least = (size, number, axis), number * (overhead + size)
    while axis and number > 1:
        axis -= 1
        number //= counts[axis]
        size += (counts[axis] - 1) * steps[axis]
        cost = number * (overhead + size)
        if cost <= least:
            best, least = (size, number, axis), cost
    size, number, axis = best
    if 2 * size * number > whole or least > whole:
        return None
    index = None
    if positions:
        index = np.ix_(*(positions.get(each, range(n)) for each, n in enumerate(counts)))
    if number == 1:
        return PartLayout([(start, size)], counts, steps, index)
    starts, at, own = np.array([start]), size, [0] * axis
    for outer in range(axis):
        starts = np.add.outer(starts, np.arange(counts[outer]) * steps[outer]).reshape(-1)
    for outer in reversed(range(axis)):
        own[outer] = at
        at *= counts[outer]
    ranges = [(start, size) for start in starts.tolist()]
    return PartLayout(ranges, counts, [*own, *steps[axis:]], index)


def _of_points(
    points: Points, strides: Sequence[int], whole: int, overhead: int
) -> PartLayout | None:
    """Return the layout for points; those that are near each other are in one range."""
    size, number = strides[-1] if strides else whole, len(points.coordinates[0])
    # To sort many points takes longer than what is saved, unless they are next to each other.
    if 2 * size * number > whole or number * overhead > _SPREAD * whole:
        return None
    offsets = np.zeros(number, np.int64)
    for coordinates, stride in zip(points.coordinates, strides, strict=True):
        offsets += coordinates * stride
    sorted_offsets = np.sort(offsets)
    gaps = np.flatnonzero(np.diff(sorted_offsets) > overhead + size)
    starts = sorted_offsets[np.append(0, gaps + 1)]
    lengths = sorted_offsets[np.append(gaps, number - 1)] + size - starts
    total = int(lengths.sum())
    if 2 * total > whole or total + overhead * len(starts) > whole:
        return None
    shifts = starts - (np.cumsum(lengths) - lengths)
    within = offsets - shifts[np.searchsorted(starts, offsets, "right") - 1]
    ranges = list(zip(starts.tolist(), lengths.tolist(), strict=True))
    return PartLayout(ranges, (total // size,), (size,), within // size)
