"""Regions that tasks own: whole units, joined; and what they meet of another grid."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, gcd, log
from typing import Any

import numpy as np

from zarrdask.grids.base import Axis, Index
from zarrdask.indexing.selection import Region

#: By how much the lengths that are tried differ, at least.
_STEP = 1.25
#: Boundaries that are joined one by one.
_MANY = 20_000


def edges_within(axis: Axis, size: int) -> np.ndarray:
    """Return the boundaries of chunks along an axis, the last one where the array ends.

    >>> edges_within(4, 10).tolist(), edges_within(np.array([0, 3, 9, 12]), 10).tolist()
    ([0, 4, 8, 10], [0, 3, 9, 10])
    """
    if isinstance(axis, int):
        return np.append(np.arange(0, size, max(axis, 1), dtype=np.int64), size)
    return np.append(axis[axis < size], size).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Cutting:
    """An array cut into regions, by boundaries along each axis.

    Attributes
    ----------
    edges : tuple of ndarray of int64
        Along each axis, from 0 to its length.
    """

    edges: tuple[np.ndarray, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        # There may be millions of boundaries; most are as far apart as the first two.
        return _cutting, (tuple(map(_packed, self.edges)),)

    @property
    def counts(self) -> Index:
        """How many regions lie along each axis."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def size(self) -> int:
        """How many regions there are."""
        return int(np.prod([1, *self.counts], dtype=object))

    @property
    def longest(self) -> Index:
        """The greatest length along each axis."""
        return tuple(int(np.diff(edges).max(initial=0)) for edges in self.edges)

    def region(self, number: int) -> Region:
        """Return a region by its number, the last axis fastest."""
        return self.at(self.index(number))

    def index(self, number: int) -> Index:
        """Return where a region lies, by its number."""
        return tuple(int(i) for i in np.unravel_index(number, self.counts)) if self.edges else ()

    def number(self, index: Index) -> int:
        """Return the number of the region that lies there."""
        return int(np.ravel_multi_index(index, self.counts)) if self.edges else 0

    def at(self, index: Index) -> Region:
        """Return the region that lies there."""
        return tuple(
            slice(int(edges[i]), int(edges[i + 1]), 1)
            for edges, i in zip(self.edges, index, strict=True)
        )

    def meeting(self, region: Region) -> Iterator[tuple[Index, Region]]:
        """Yield the regions that have a part in another one: where they lie, and that part."""
        axes = []
        for edges, pick in zip(self.edges, region, strict=True):
            first = int(np.searchsorted(edges, pick.start, "right")) - 1
            last = int(np.searchsorted(edges, pick.stop, "left"))
            near = np.clip(edges[first : last + 1], pick.start, pick.stop).tolist()
            axes.append([(first + i, slice(near[i], near[i + 1], 1)) for i in range(last - first)])
        for found in product(*axes):
            yield tuple(at for at, _ in found), tuple(part for _, part in found)


def _packed(edges: np.ndarray) -> tuple[int, int] | np.ndarray:
    size, step = int(edges[-1]), int(edges[1]) if len(edges) > 1 else 0
    return (step, size) if np.array_equal(edges, edges_within(step, size)) else edges


def _cutting(packed: Sequence[tuple[int, int] | np.ndarray]) -> Cutting:
    return Cutting(tuple(edges_within(*p) if isinstance(p, tuple) else p for p in packed))


@dataclass(frozen=True, eq=False)
class Choice:
    """Regions along one axis that a plan may choose.

    Attributes
    ----------
    edges : ndarray of int64
        Their boundaries.
    longest : int
        The greatest length.
    covered : int
        Elements along the axis of all pieces of the other grid that regions meet; a piece that
        several regions meet counts for each.
    met : int
        How many such pieces there are.
    """

    edges: np.ndarray
    longest: int
    covered: int
    met: int

    @property
    def count(self) -> int:
        """How many regions there are."""
        return len(self.edges) - 1


def choice(edges: np.ndarray, pieces: np.ndarray) -> Choice:
    """Return regions, measured against the boundaries of pieces that are read.

    >>> found = choice(np.array([0, 6, 10]), np.array([0, 4, 8, 10]))
    >>> found.longest, found.covered, found.met
    (6, 14, 4)
    """
    first = np.searchsorted(pieces, edges[:-1], "right") - 1
    last = np.searchsorted(pieces, edges[1:], "left")
    return Choice(
        edges,
        int(np.diff(edges).max(initial=0)),
        int((pieces[last] - pieces[first]).sum()),
        int((last - first).sum()),
    )


def choices(units: Axis, size: int, pieces: np.ndarray, limit: int) -> list[Choice]:
    """Return ways to join the units of an axis to regions.

    Parameters
    ----------
    units : int or ndarray of int
        The units' length, or the boundaries between them.
    size : int
        The length of the axis.
    pieces : ndarray of int64
        The boundaries of what is read, from 0 to `size`.
    limit : int
        How many are returned at most; at least one unit a region, and all in one, are.
    """
    edges = edges_within(units, size)
    count = len(edges) - 1
    if count <= 1:
        return [choice(edges, pieces)]
    longest = int(np.diff(edges).max())
    typical = int(np.diff(pieces).max(initial=1))
    near = _lengths(longest, typical, size)
    far = _spread(longest, size)
    lengths = sorted({longest, size, *_thin(near, limit // 2), *_thin(far, limit // 2)})
    found: dict[int, np.ndarray] = {}
    for length in lengths:
        joined = joined_to(length, units, edges)
        found.setdefault(len(joined), joined)
    return [choice(joined, pieces) for joined in found.values()]


def _lengths(unit: int, piece: int, size: int) -> list[int]:
    """Return lengths whose boundaries lie on, or just beyond, those of pieces."""
    both = unit * piece // gcd(unit, piece)
    wanted = [
        *(n * both for n in geometric(size // both)),
        *(n * piece for n in geometric(size // piece)),
    ]
    return sorted({ceil(n / unit) * unit for n in wanted if n < size})


def _spread(unit: int, size: int) -> list[int]:
    return [n * unit for n in geometric(size // unit)]


def geometric(most: int) -> Iterator[int]:
    """Yield whole numbers from 1 to the greatest, each a good deal larger than the one before."""
    number = 1
    while number <= most:
        yield number
        number = max(number + 1, int(number * _STEP))


def _thin(lengths: Sequence[int], limit: int) -> Iterable[int]:
    """Return so many of sorted lengths, evenly by their logarithms."""
    if len(lengths) <= limit:
        return lengths
    marks = np.linspace(log(lengths[0]), log(lengths[-1]), max(limit, 2))
    places = np.unique(np.searchsorted(np.log(lengths), marks - 1e-9))
    return [lengths[min(int(at), len(lengths) - 1)] for at in places]


def joined_to(length: int, units: Axis, edges: np.ndarray) -> np.ndarray:
    """Join units to regions of at most a length, if no unit is longer; return the boundaries.

    Parameters
    ----------
    length : int
    units : int or ndarray of int
        The units' length, or the boundaries between them.
    edges : ndarray of int64
        The same as boundaries, within the axis.

    Examples
    --------
    >>> joined_to(7, 3, edges_within(3, 10)).tolist()
    [0, 6, 10]
    """
    size = int(edges[-1])
    if isinstance(units, int):
        return edges_within(length // units * units, size) if length < size else edges[[0, -1]]
    if length < np.diff(edges).max() or size > length * _MANY:
        return edges
    found = [0]
    while found[-1] < len(edges) - 1:
        found.append(int(np.searchsorted(edges, edges[found[-1]] + length, "right")) - 1)
    return edges[found]


def pieces_between(one: np.ndarray, other: np.ndarray) -> int:
    """Return into how many pieces two sets of boundaries cut an axis together."""
    few, many = sorted((one, other), key=len)
    common = np.count_nonzero(many[np.searchsorted(many, few)] == few)
    return len(one) + len(other) - int(common) - 1
