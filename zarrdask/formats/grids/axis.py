"""The chunks along one axis of an array: all arithmetic with chunk boundaries. Pure.

Positions count elements from the start of the axis, and numbers count its chunks.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from zarrdask.formats.grids.grouping import grouped


class ChunkPart(NamedTuple):
    """The part of one chunk that a pick selects along one axis."""

    #: The number of the chunk.
    chunk: int
    #: The selected elements, counted from the start of the chunk.
    inside: slice | np.ndarray
    #: The index of these elements in the result: a slice or an array, as the pick is.
    outside: Any
    #: Whether `inside` selects every element of the chunk, in order.
    whole: bool


class Axis(ABC):
    """The chunks along one axis; the last ones may extend beyond its end, or lie outside it.

    `number` and `start` take an integer, or an array of them.
    """

    __slots__ = ()

    #: The length of the axis, in elements.
    size: int

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of chunks, without those outside the axis."""

    @property
    @abstractmethod
    def edges(self) -> np.ndarray:
        """The boundaries of the chunks, clipped to the axis (int64)."""

    @property
    @abstractmethod
    def lengths(self) -> tuple[int, ...]:
        """The lengths of all chunks, not clipped; a single one if all chunks have it."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """The length of the longest chunk, not clipped; at least 1 if chunks may differ."""

    @abstractmethod
    def number(self, position: Any) -> Any:
        """Return the number of the chunk that holds a position."""

    @abstractmethod
    def start(self, number: Any) -> Any:
        """Return the first position of a chunk; the number `count` returns the end of the last."""

    @abstractmethod
    def cut(self, pick: slice, origin: int = 0) -> list[int]:
        """Return the chunk boundaries within a slice of step 1, with both ends of the slice.

        `origin` is the position that the slice counts from.
        """

    @abstractmethod
    def parts(self, pick: slice | np.ndarray) -> list[ChunkPart]:
        """Split a pick (as in `Selection`) at the boundaries of the chunks."""

    @abstractmethod
    def join(self, length: int, limit: int | None = None) -> "Axis":
        """Join neighbouring chunks: as many as fit into a length, at least one.

        Uneven chunks stay as they are if there might be more than `limit` when they are joined.
        """

    def span(self, number: int) -> tuple[int, int]:
        """Return the begin and end of a chunk, clipped to the axis."""
        return self.start(number), min(self.start(number + 1), self.size)

    def numbers(self, pick: slice) -> range:
        """Return the numbers of the chunks between the ends of a slice."""
        if pick.start >= pick.stop:
            return range(0)
        return range(self.number(pick.start), self.number(pick.stop - 1) + 1)

    def blocks(self, pick: slice) -> tuple[int, ...]:
        """Return the number of selected elements in each chunk that a slice overlaps.

        >>> Even(9, 4).blocks(slice(2, 9, 1)), axis_of(7, (1, 2, 4)).blocks(slice(0, 7, 2))
        ((2, 4, 1), (1, 1, 2))
        """
        counts = (part.outside.stop - part.outside.start for part in self.parts(pick))
        return tuple(counts) or (0,)

    def part(self, pick: slice) -> "Axis":
        """Return the chunks of a slice of step 1, counted from where it begins."""
        return Uneven(pick.stop - pick.start, np.array(self.cut(pick)) - pick.start)

    def common(self, other: "Axis") -> "Axis":
        """Return the chunks between the boundaries that this axis and another one have."""
        return Uneven(self.size, np.intersect1d(self.edges, other.edges, assume_unique=True))

    def _position_parts(self, positions: np.ndarray) -> list[ChunkPart]:
        numbers = self.number(positions)
        order, edges = grouped([numbers])
        chunks = numbers[order[edges[:-1]]].tolist()
        inside = (positions - self.start(numbers))[order]
        spans = pairwise(edges.tolist())
        return [
            ChunkPart(chunk, inside[a:b], order[a:b], whole=False)
            for chunk, (a, b) in zip(chunks, spans, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Even(Axis):
    """Chunks of one length, which may be 0 if the axis has no elements.

    >>> axis = Even(10, 4)
    >>> axis.count, axis.edges.tolist(), axis.number(5), axis.start(1), axis.span(2)
    (3, [0, 4, 8, 10], 1, 4, (8, 10))
    """

    size: int
    chunk: int

    @property
    def count(self) -> int:
        return -(-self.size // self.chunk) if self.size else 0

    @property
    def edges(self) -> np.ndarray:
        chunk = max(min(self.chunk, self.size), 1)  # Longer chunks would overflow.
        edges = np.arange(-(-self.size // chunk) + 1, dtype=np.int64) * chunk
        edges[-1] = self.size
        return edges

    @property
    def lengths(self) -> tuple[int, ...]:
        return (self.chunk,)

    @property
    def longest(self) -> int:
        return self.chunk

    def number(self, position: Any) -> Any:
        return position // (self.chunk or 1)

    def start(self, number: Any) -> Any:
        return number * self.chunk

    def cut(self, pick: slice, origin: int = 0) -> list[int]:
        start, stop, chunk = pick.start, pick.stop, self.chunk
        if start >= stop:
            return [start]
        return [start, *range(chunk - (start + origin) % chunk + start, stop, chunk), stop]

    def parts(self, pick: slice | np.ndarray) -> list[ChunkPart]:
        """Split a pick (as in `Selection`) at the boundaries of the chunks.

            0 1 2|3 4 5|6      chunk 3, pick 2:7:2 -> 2 of chunk 0, 4 of 1, 6 of 2

        Examples
        --------
        >>> [(p.chunk, p.inside, p.outside) for p in Even(7, 3).parts(slice(2, 4, 1))]
        [(0, slice(2, 3, 1), slice(0, 1, 1)), (1, slice(0, 1, 1), slice(1, 2, 1))]
        """
        if not isinstance(pick, slice):
            return self._position_parts(pick)
        start, stop, step, chunk = pick.start, pick.stop, pick.step, self.chunk
        parts = []
        position, done = start, 0
        while position < stop:
            number = position // chunk
            begin = number * chunk
            end = min(begin + chunk, stop)
            count = -(-(end - position) // step)
            whole = step == 1 and position == begin and end == begin + chunk
            inside = slice(position - begin, end - begin, step)
            parts.append(ChunkPart(number, inside, slice(done, done + count, 1), whole))
            done += count
            position += count * step
        return parts

    def blocks(self, pick: slice) -> tuple[int, ...]:
        size, chunk = pick.stop - pick.start, self.chunk
        if pick.step != 1 or size <= 0:
            return Axis.blocks(self, pick)
        first = min(chunk - pick.start % chunk, size)
        count, rest = divmod(size - first, chunk)
        return (first, *(chunk,) * count, rest) if rest else (first, *(chunk,) * count)

    def join(self, length: int, limit: int | None = None) -> "Even":
        """Join neighbouring chunks: as many as fit into a length, at least one.

        >>> Even(10, 3).join(7), Even(10, 3).join(10)
        (Even(size=10, chunk=6), Even(size=10, chunk=12))
        """
        count = length // self.chunk if length < self.size else self.count
        return Even(self.size, max(count, 1) * self.chunk)

    def part(self, pick: slice) -> Axis:
        if pick.start % (self.chunk or 1):
            return Axis.part(self, pick)
        return Even(pick.stop - pick.start, self.chunk)

    def common(self, other: Axis) -> Axis:
        if isinstance(other, Even):
            return Even(self.size, lcm(self.chunk or 1, other.chunk or 1))
        return Axis.common(self, other)


@dataclass(frozen=True, slots=True, eq=False)
class Uneven(Axis):
    """Chunks between sorted boundaries, from 0 to the end of the last chunk (int64).

    >>> axis = Uneven(6, np.array([0, 1, 4, 8]))
    >>> axis.count, axis.edges.tolist(), axis.number(5), axis.start(1), axis.span(2)
    (3, [0, 1, 4, 6], 2, 1, (4, 6))
    """

    size: int
    boundaries: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Uneven):
            return NotImplemented
        return self.size == other.size and np.array_equal(self.boundaries, other.boundaries)

    def __hash__(self) -> int:
        return hash((self.size, self.boundaries.tobytes()))

    @property
    def count(self) -> int:
        return int(self.boundaries.searchsorted(self.size))

    @property
    def edges(self) -> np.ndarray:
        edges = self.boundaries[: self.count + 1].astype(np.int64)
        edges[-1] = self.size
        return edges

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(np.diff(self.boundaries).tolist())

    @property
    def longest(self) -> int:
        return int(np.diff(self.boundaries[: max(self.count, 1) + 1]).max(initial=1))

    def number(self, position: Any) -> Any:
        return _plain(self.boundaries.searchsorted(position, "right") - 1)

    def start(self, number: Any) -> Any:
        return _plain(self.boundaries[number])

    def cut(self, pick: slice, origin: int = 0) -> list[int]:
        begin, end = pick.start + origin, pick.stop + origin
        if begin >= end:
            return [pick.start]
        low = self.boundaries.searchsorted(begin, "right")
        inner = self.boundaries[low : self.boundaries.searchsorted(end)] - origin
        return [pick.start, *inner.tolist(), pick.stop]

    def parts(self, pick: slice | np.ndarray) -> list[ChunkPart]:
        """Split a pick (as in `Selection`) at the boundaries of the chunks.

        Examples
        --------
        >>> [(p.chunk, p.inside) for p in axis_of(6, (1, 3, 2)).parts(slice(2, 6, 1))]
        [(1, slice(1, 3, 1)), (2, slice(0, 2, 1))]
        """
        if not isinstance(pick, slice):
            return self._position_parts(pick)
        start, stop, step, edges = pick.start, pick.stop, pick.step, self.boundaries
        if start >= stop:
            return []
        first = int(edges.searchsorted(start, "right")) - 1
        near = edges[first : int(edges.searchsorted(stop)) + 1].tolist()
        parts = []
        position, done, number = start, 0, 0
        while position < stop:
            number = bisect_right(near, position, number) - 1
            begin, end = near[number], min(near[number + 1], stop)
            count = -(-(end - position) // step)
            whole = step == 1 and position == begin and end == near[number + 1]
            inside = slice(position - begin, end - begin, step)
            parts.append(ChunkPart(first + number, inside, slice(done, done + count, 1), whole))
            done += count
            position += count * step
        return parts

    def join(self, length: int, limit: int | None = None) -> "Uneven":
        """Join neighbouring chunks: as many as fit into a length, at least one.

        >>> axis_of(7, (1, 2, 3, 1)).join(3).edges.tolist()
        [0, 3, 6, 7]
        """
        boundaries, last = self.boundaries, self.count
        numbers = [0, last] if length >= self.size else [0]
        if limit is not None and self.size > length * limit:
            return self
        while numbers[-1] < last:
            end = int(boundaries.searchsorted(boundaries[numbers[-1]] + length, "right")) - 1
            numbers.append(min(max(end, numbers[-1] + 1), last))
        return Uneven(self.size, boundaries[numbers])


def _plain(found: Any) -> Any:
    """Return the result for one position as an integer of Python."""
    return found if found.ndim else found.item()


def edges_of(lengths: Sequence[int], start: int = 0) -> np.ndarray:
    """Return the begin of each length, and the end of the last one.

    >>> edges_of((2, 3), 5)
    array([ 5,  7, 10])
    """
    return start + np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])


def axis_of(size: int, lengths: int | Sequence[int]) -> Axis:
    """Return the chunks along an axis, of one length or of different lengths.

    >>> axis_of(6, 4)
    Even(size=6, chunk=4)
    >>> axis_of(6, (1, 4, 3))
    Uneven(size=6, boundaries=array([0, 1, 5, 8]))
    """
    if isinstance(lengths, int):
        return Even(size, int(lengths))
    boundaries = edges_of(lengths)
    boundaries.flags.writeable = False
    return Uneven(size, boundaries)
