"""Regions that tasks own: joined units, and the pieces of another grid that they overlap. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, gcd, log
from typing import Any, NamedTuple

import numpy as np

from zarrdask.formats.grids.axis import Axis, Even, Uneven
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.selection import Region

#: The least ratio of two successive lengths that are tried.
_STEP = 1.25
#: The largest number of regions that uneven units are joined to, one after another.
MAX_JOINED = 20_000


@dataclass(frozen=True, eq=False)
class Cutting:
    """An array that is cut into regions along each axis."""

    #: The boundaries along each axis, from 0 to its length.
    edges: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, axes: Sequence[Axis]) -> "Cutting":
        """Return the chunks along axes, clipped to the array."""
        return cls(tuple(axis.edges for axis in axes))

    def __reduce__(self) -> tuple[Any, ...]:
        # There may be millions of boundaries, most often at equal distances.
        return Cutting.of, (tuple(map(_axis_between, self.edges)),)

    @property
    def counts(self) -> Index:
        """The number of regions along each axis."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def size(self) -> int:
        """The number of regions."""
        return int(np.prod([1, *self.counts], dtype=object))

    @property
    def longest(self) -> Index:
        """The greatest length of a region along each axis."""
        return tuple(int(np.diff(edges).max(initial=0)) for edges in self.edges)

    def region(self, number: int) -> Region:
        """Return a region by its number in C order."""
        return self.at(self.index(number))

    def index(self, number: int) -> Index:
        """Return the index of a region by its number in C order."""
        return tuple(int(i) for i in np.unravel_index(number, self.counts)) if self.edges else ()

    def number(self, index: Index) -> int:
        """Return the number of a region in C order, by its index."""
        return int(np.ravel_multi_index(index, self.counts)) if self.edges else 0

    def numbers(self, region: Region) -> list[int]:
        """Return the numbers of the regions that overlap another one."""
        return [self.number(index) for index, _ in self.overlapping(region)]

    def at(self, index: Index) -> Region:
        """Return a region by its index."""
        return tuple(
            slice(int(edges[i]), int(edges[i + 1]), 1)
            for edges, i in zip(self.edges, index, strict=True)
        )

    def overlapping(self, region: Region) -> Iterator[tuple[Index, Region]]:
        """Yield the regions that overlap another one: the index of each, and the overlap."""
        axes = []
        for edges, pick in zip(self.edges, region, strict=True):
            first = int(np.searchsorted(edges, pick.start, "right")) - 1
            last = int(np.searchsorted(edges, pick.stop, "left"))
            near = np.clip(edges[first : last + 1], pick.start, pick.stop).tolist()
            axes.append([(first + i, slice(near[i], near[i + 1], 1)) for i in range(last - first)])
        for pairs in product(*axes):
            yield tuple(number for number, _ in pairs), tuple(part for _, part in pairs)


def _axis_between(edges: np.ndarray) -> Axis:
    size, chunk = int(edges[-1]), int(edges[1]) if len(edges) > 1 else 0
    even = Even(size, chunk)
    return even if np.array_equal(edges, even.edges) else Uneven(size, edges)


@dataclass(frozen=True, eq=False)
class Choice:
    """Regions along one axis that a plan may choose."""

    #: The boundaries of the regions.
    edges: np.ndarray
    #: The greatest length of a region.
    longest: int
    #: The total length of the parts of the other grid's pieces that each region overlaps. A part
    #: that several regions overlap counts for each of them.
    covered: int
    #: The number of these pieces.
    overlapped: int
    #: The number of objects that hold these pieces.
    held: int

    @property
    def count(self) -> int:
        """The number of regions."""
        return len(self.edges) - 1


class ReadEdges(NamedTuple):
    """Boundaries along an axis, by which a read is divided.

    Attributes
    ----------
    pieces : ndarray
        The boundaries of the pieces of the source.
    parts : ndarray
        The boundaries of the smallest parts of pieces that can be read without the rest; a part
        may be the whole piece.
    objects : ndarray
        The boundaries of the stored objects that hold the pieces; an object may hold one piece.
    """

    pieces: np.ndarray
    parts: np.ndarray
    objects: np.ndarray

    @classmethod
    def whole(cls, pieces: np.ndarray) -> "ReadEdges":
        """Return the boundaries of pieces that are objects, and read as a whole."""
        return cls(pieces, pieces, pieces)


def choice(edges: np.ndarray, read: ReadEdges) -> Choice:
    """Return regions along an axis, measured by the boundaries of what is read.

    >>> regions = choice(np.array([0, 6, 10]), ReadEdges.whole(np.array([0, 4, 8, 10])))
    >>> regions.longest, regions.covered, regions.overlapped
    (6, 14, 4)
    """
    overlapped, held = (
        int((last - first).sum())
        for first, last in (_overlapped(edges, each) for each in (read.pieces, read.objects))
    )
    first, last = _overlapped(edges, read.parts)
    covered = int((read.parts[last] - read.parts[first]).sum())
    return Choice(edges, int(np.diff(edges).max(initial=0)), covered, overlapped, held)


def _overlapped(edges: np.ndarray, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first piece that each region overlaps, and the one after the last."""
    first = np.searchsorted(pieces, edges[:-1], "right") - 1
    return first, np.searchsorted(pieces, edges[1:], "left")


def choices(units: Axis, read: ReadEdges, limit: int) -> list[Choice]:
    """Return ways to join the units of an axis to regions, given what is read."""
    edges, size, pieces = units.edges, units.size, read.pieces
    if len(edges) <= 2:
        return [choice(edges, read)]
    longest = int(np.diff(edges).max())
    typical = int(np.diff(pieces).max(initial=1))
    near = _lengths(longest, typical, size)
    far = [n * longest for n in geometric(size // longest)]
    lengths = sorted({longest, size, *_thin(near, limit // 2), *_thin(far, limit // 2)})
    by_count: dict[int, Axis] = {}
    for length in lengths:
        joined = units.join(length, MAX_JOINED)
        by_count.setdefault(joined.count, joined)
    return [choice(joined.edges, read) for joined in by_count.values()]


def _lengths(unit: int, piece: int, size: int) -> list[int]:
    """Return lengths whose multiples lie at boundaries of pieces, or just beyond them."""
    both = unit * piece // gcd(unit, piece)
    targets = [
        *(n * both for n in geometric(size // both)),
        *(n * piece for n in geometric(size // piece)),
    ]
    return sorted({ceil(n / unit) * unit for n in targets if n < size})


def geometric(limit: int) -> Iterator[int]:
    """Yield integers from 1 to a limit in an approximately geometric progression."""
    number = 1
    while number <= limit:
        yield number
        number = max(number + 1, int(number * _STEP))


def _thin(lengths: Sequence[int], limit: int) -> Iterable[int]:
    """Return at most `limit` of sorted lengths, evenly spaced by their logarithms."""
    if len(lengths) <= limit:
        return lengths
    marks = np.linspace(log(lengths[0]), log(lengths[-1]), max(limit, 2))
    numbers = np.unique(np.searchsorted(np.log(lengths), marks - 1e-9))
    return [lengths[min(int(number), len(lengths) - 1)] for number in numbers]


def pieces_between(one: np.ndarray, other: np.ndarray) -> int:
    """Return the number of pieces that two sets of boundaries cut an axis into together."""
    few, many = sorted((one, other), key=len)
    common = np.count_nonzero(many[np.searchsorted(many, few)] == few)
    return len(one) + len(other) - int(common) - 1
