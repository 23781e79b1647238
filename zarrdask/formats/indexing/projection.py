"""The projection of a request on chunks: which chunks, which part of each, and where it goes.

Axes are projected one by one, so that the work grows with the number of chunks along each axis.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from zarrdask.formats.grids.axis import Axis, ChunkPart, Even
from zarrdask.formats.grids.grouping import grouped
from zarrdask.formats.indexing.selection import Pick, Region, whole_region


class Points:
    """A pointwise request; the result is 1-d.

    Parameters
    ----------
    coordinates : tuple of ndarray, optional
        One 1-d array of positions for each axis; by default computed from `offsets`.
    offsets : ndarray, optional
        The positions among the elements of an array in C order. It is faster to sort one array, and
        to take elements by it, than one for each axis.
    shape : tuple of int
        The shape of the array in which the points have these offsets.
    """

    __slots__ = ("_coordinates", "_offsets", "_shape")

    def __init__(
        self,
        coordinates: tuple[np.ndarray, ...] | None = None,
        offsets: np.ndarray | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        self._coordinates, self._offsets, self._shape = coordinates, offsets, shape

    @property
    def coordinates(self) -> tuple[np.ndarray, ...]:
        """The positions along each axis."""
        if self._coordinates is None:
            offsets: Any = self._offsets
            self._coordinates = np.unravel_index(offsets, self._shape)
        return self._coordinates

    def take(self, values: np.ndarray) -> np.ndarray:
        """Return the elements of an array at the points."""
        offsets = self._offsets
        if offsets is not None and values.shape == self._shape and values.flags.c_contiguous:
            return values.reshape(-1).take(offsets)
        elements: np.ndarray = values[self.coordinates]
        return elements


class Regions(NamedTuple):
    """Several regions, each read into a block of its own; None stands for all elements.

    The positions in the results (`Projection.outsides`) are lists of pairs: the number of a block
    and a NumPy index.
    """

    regions: tuple[Region | None, ...]


#: The elements to read or write of an array or chunk: the outer product of one pick for each axis,
#: or points.
Request = tuple[Pick, ...] | Points
#: A request for one block, or regions for several.
AnyRequest = Request | Regions


class Projection(NamedTuple):
    """The chunks that a request overlaps, as three lists with one entry for each chunk."""

    #: The index of the chunk.
    indices: list[tuple[int, ...]]
    #: The requested elements of the chunk, as a `Request` or `Regions`; None for all of them.
    insides: list[Any]
    #: The NumPy index of these elements in the result.
    outsides: list[Any]

    def some(self, start: int, stop: int) -> "Projection":
        """Return the entries from `start` to `stop`."""
        entries = slice(start, stop)
        return Projection(self.indices[entries], self.insides[entries], self.outsides[entries])

    def ordered(self, key: Callable[[tuple[int, ...]], Any]) -> "Projection":
        """Return the entries, sorted by a function of the chunk's index."""
        keys = list(map(key, self.indices))
        return self.at(sorted(range(len(keys)), key=keys.__getitem__))

    def at(self, positions: Sequence[int]) -> "Projection":
        """Return the entries at some positions."""
        return Projection(
            [self.indices[i] for i in positions],
            [self.insides[i] for i in positions],
            [self.outsides[i] for i in positions],
        )


def project(request: AnyRequest, axes: Sequence[Axis]) -> Projection:
    """Return the projection of a request on the chunks along each axis."""
    if isinstance(request, Points):
        return _project_points(request, axes)
    if isinstance(request, Regions):
        return _project_regions(request, axes)
    parts = [axis.parts(pick) for pick, axis in zip(request, axes, strict=True)]
    return _product(parts, is_region=all(isinstance(pick, slice) for pick in request))


def project_each(regions: Iterable[Region], axes: Sequence[Axis]) -> Iterator[Projection]:
    """Yield the projections of regions: what several have along an axis is projected once."""
    known = [dict[tuple[int, int, int], list[ChunkPart]]() for _ in axes]
    for region in regions:
        parts = []
        for pick, axis, seen in zip(region, axes, known, strict=True):
            key = pick.start, pick.stop, pick.step
            if key not in seen:
                seen[key] = axis.parts(pick)
            parts.append(seen[key])
        yield _product(parts, is_region=True)


def _product(parts: Sequence[list[ChunkPart]], *, is_region: bool) -> Projection:
    """Return the projection for the parts of chunks along each axis."""
    if not parts:
        return Projection([()], [None], [...])  # a 0-d array with the index () is a scalar
    if not all(parts):
        return Projection([], [], [])
    if max(map(len, parts)) == 1:  # A single chunk, as in most tasks.
        index, inside, outside, whole = zip(*[axis[0] for axis in parts], strict=True)
        place = outside if is_region else numpy_index(outside)
        return Projection([index], [None if all(whole) else inside], [place])
    # For each attribute of `ChunkPart` the values of each axis; all combinations are chunks.
    columns = zip(*[zip(*axis, strict=True) for axis in parts], strict=True)
    chunks, insides, outsides, wholes = columns
    indices, positions = list(product(*chunks)), product(*outsides)
    if all(map(all, wholes)):
        picks: list[Any] = [None] * len(indices)
    elif all(map(any, wholes)):
        pairs = zip(product(*wholes), product(*insides), strict=True)
        picks = [None if all(whole) else pick for whole, pick in pairs]
    else:  # A row through larger chunks covers no whole chunk.
        picks = list(product(*insides))
    return Projection(indices, picks, list(positions if is_region else map(numpy_index, positions)))


def _project_points(points: Points, axes: Sequence[Axis]) -> Projection:
    coordinates = points.coordinates
    numbers = [axis.number(c) for c, axis in zip(coordinates, axes, strict=True)]
    order, edges = grouped(numbers)
    if not len(order):
        return Projection([], [], [])
    firsts = [n[order[edges[:-1]]] for n in numbers]
    indices = list(zip(*(n.tolist() for n in firsts), strict=True))
    spans = [slice(a, b) for a, b in pairwise(edges.tolist())]
    shape = tuple([axis.longest for axis in axes])
    kind = _offset_type(shape, axes)
    if kind is None:
        within = [
            (c - axis.start(n))[order]
            for c, n, axis in zip(coordinates, numbers, axes, strict=True)
        ]
        insides = [Points(tuple([c[span] for c in within])) for span in spans]
    else:
        # As if each chunk began at 0, which one number for each chunk makes up for.
        offsets = _offsets(coordinates, shape, kind).take(order)
        starts = [axis.start(n) for n, axis in zip(firsts, axes, strict=True)]
        origins = _offsets(starts, shape, kind)
        pairs = zip(spans, origins, strict=True)
        insides = [Points(None, offsets[span] - origin, shape) for span, origin in pairs]
    return Projection(indices, insides, [order[span] for span in spans])


def _offset_type(shape: tuple[int, ...], axes: Sequence[Axis]) -> type[np.signedinteger] | None:
    """Return the type for offsets in chunks of one shape; None if chunks or numbers are others."""
    largest = 0
    for axis, length in zip(axes, shape, strict=True):
        if not isinstance(axis, Even):
            return None
        largest = largest * length + axis.size
    return np.int32 if largest < 2**31 else np.int64 if largest < 2**62 else None


def _offsets(
    coordinates: Sequence[np.ndarray], shape: tuple[int, ...], kind: type[np.signedinteger]
) -> np.ndarray:
    """Return the offsets of positions in an array of some shape, in C order."""
    offsets = coordinates[0].astype(kind)
    for each, length in zip(coordinates[1:], shape[1:], strict=True):
        offsets *= length
        offsets += each.astype(kind, copy=False)
    return offsets


def _project_regions(request: Regions, axes: Sequence[Axis]) -> Projection:
    """Return each chunk once, with the parts of it that all regions need."""
    # The parts of each chunk, and where they go.
    parts: dict[tuple[int, ...], tuple[list[Any], list[tuple[int, Any]]]] = {}
    for number, region in enumerate(request.regions):
        whole = whole_region(tuple(axis.size for axis in axes)) if region is None else region
        for index, inside, outside in zip(*project(whole, axes), strict=True):
            if index not in parts:
                parts[index] = [inside], [(number, outside)]
            else:
                insides, positions = parts[index]
                insides.append(inside)
                positions.append((number, outside))
    return Projection(
        list(parts),
        [Regions(tuple(insides)) for insides, _ in parts.values()],
        [positions for _, positions in parts.values()],
    )


def numpy_index(request: Request) -> tuple[Any, ...]:
    """Return a request as an index of an ndarray."""
    if isinstance(request, Points):
        return request.coordinates
    for pick in request:
        if not isinstance(pick, slice):
            break
    else:
        return request
    ranges = (range(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in request)
    return np.ix_(*ranges)


def permute(request: AnyRequest, axes: tuple[int, ...]) -> AnyRequest:
    """Return the request for the transposed array, whose axis i is axis ``axes[i]`` of this one."""
    if isinstance(request, Points):
        return Points(tuple(request.coordinates[i] for i in axes))
    if isinstance(request, Regions):
        return Regions(
            tuple(r if r is None else tuple(r[i] for i in axes) for r in request.regions)
        )
    return tuple(request[i] for i in axes)
