"""The projection of a request on chunks: which chunks, which part of each, and where it goes.

Axes are projected one by one, so that the work grows with the number of chunks along each axis.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product, starmap
from typing import Any, NamedTuple

import numpy as np

from zarrdask.formats.grids.axis import Axis, ChunkPart
from zarrdask.formats.grids.grouping import grouped
from zarrdask.formats.indexing.selection import Pick, Region, whole_region


class Points(NamedTuple):
    """A pointwise request: one 1-d array of positions for each axis; the result is 1-d."""

    coordinates: tuple[np.ndarray, ...]


class Regions(NamedTuple):
    """Several regions, each of which is read into a block of its own; None stands for all elements.

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
    columns = [zip(*axis, strict=True) for axis in parts]
    indices, insides, outsides, wholes = starmap(product, zip(*columns, strict=True))
    positions: Iterable[Any] = outsides if is_region else map(numpy_index, outsides)
    picks: Iterable[Any] = insides
    # Of a row through larger chunks, no part is a whole chunk.
    if all(any(part.whole for part in axis) for axis in parts):
        picks = [None if all(whole) else pick for whole, pick in zip(wholes, insides, strict=True)]
    return Projection(list(indices), list(picks), list(positions))


def _project_points(points: Points, axes: Sequence[Axis]) -> Projection:
    coordinates = points.coordinates
    numbers = [axis.number(c) for c, axis in zip(coordinates, axes, strict=True)]
    order, edges = grouped(numbers)
    if not len(order):
        return Projection([], [], [])
    firsts = order[edges[:-1]]
    indices = list(zip(*(n[firsts].tolist() for n in numbers), strict=True))
    within = [
        (c - axis.start(n))[order] for c, n, axis in zip(coordinates, numbers, axes, strict=True)
    ]
    spans = [slice(a, b) for a, b in pairwise(edges.tolist())]
    insides = [Points(tuple([c[span] for c in within])) for span in spans]
    return Projection(indices, insides, [order[span] for span in spans])


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
