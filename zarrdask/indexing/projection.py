"""The projection of a request on chunks: which chunks, which part of each, and where it goes.

Axes are projected one by one, so that the work grows with the number of chunks along each axis.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np

from zarrdask.grids.base import Axis
from zarrdask.indexing.selection import Pick


class Part(NamedTuple):
    """The part of one chunk that a pick selects along one axis."""

    #: The index of the chunk along the axis.
    chunk: int
    #: The selected elements, counted from the start of the chunk.
    inside: Pick
    #: The place of these elements in the result.
    outside: Pick
    #: Whether `inside` selects every element of the chunk, in order.
    whole: bool


class Points(NamedTuple):
    """A pointwise request: one 1-d array of positions for each axis; the result is 1-d."""

    coordinates: tuple[np.ndarray, ...]


#: The elements to read or write of an array or chunk: the outer product of one pick for each axis,
#: or points.
Request = tuple[Pick, ...] | Points


class Projection(NamedTuple):
    """The chunks that a request touches, as three lists with one entry for each chunk."""

    #: The index of the chunk.
    indices: list[tuple[int, ...]]
    #: The requested elements of the chunk; None for all of them.
    insides: list[Request | None]
    #: The NumPy index of the place in the result.
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


def project(request: Request, axes: Sequence[Axis]) -> Projection:
    """Return the projection of a request on the chunks along each axis."""
    if isinstance(request, Points):
        return _project_points(request, axes)
    if not request:
        return Projection([()], [None], [...])  # a 0-d array with the index () is a scalar
    parts = [axis_parts(pick, axis) for pick, axis in zip(request, axes, strict=True)]
    if not all(parts):
        return Projection([], [], [])
    if all(len(axis) == 1 for axis in parts):  # A single chunk, as in most tasks.
        index, inside, outside, whole = zip(*[axis[0] for axis in parts], strict=True)
        return Projection([index], [None if all(whole) else inside], [numpy_index(outside)])
    # For each attribute of `Part` the values of each axis, of which all combinations are chunks.
    columns = [zip(*axis, strict=True) for axis in parts]
    indices, insides, outsides, wholes = starmap(product, zip(*columns, strict=True))
    places: Iterable[Any] = outsides
    if not all(isinstance(pick, slice) for pick in request):
        places = map(numpy_index, outsides)
    return Projection(
        list(indices),
        [None if all(whole) else inside for whole, inside in zip(wholes, insides, strict=True)],
        list(places),
    )


def _project_points(points: Points, axes: Sequence[Axis]) -> Projection:
    coordinates = points.coordinates
    numbers = np.stack([chunk_number(c, axis) for c, axis in zip(coordinates, axes, strict=True)])
    order = np.lexsort(numbers[::-1])
    ordered = numbers[:, order]
    edges = np.nonzero((np.diff(ordered, axis=1) != 0).any(axis=0))[0] + 1
    groups = np.split(order, edges) if len(order) else []
    indices = [tuple(int(n) for n in numbers[:, group[0]]) for group in groups]
    insides: list[Request | None] = [
        Points(
            tuple(
                c[group] - chunk_start(i, axis)
                for c, i, axis in zip(coordinates, index, axes, strict=True)
            )
        )
        for group, index in zip(groups, indices, strict=True)
    ]
    return Projection(indices, insides, list(groups))


def chunk_number(position: Any, axis: Axis) -> Any:
    """Return the number of the chunk that holds a position along an axis; or those of several."""
    if isinstance(axis, int):
        return position // max(axis, 1)
    return axis.searchsorted(position, "right") - 1


def chunk_start(number: int, axis: Axis) -> int:
    """Return the first position of a chunk along an axis."""
    return number * axis if isinstance(axis, int) else int(axis[number])


def numpy_index(request: Request) -> tuple[Any, ...]:
    """Return a request as an index of an ndarray."""
    if isinstance(request, Points):
        return request.coordinates
    if all(isinstance(pick, slice) for pick in request):
        return request
    ranges = (range(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in request)
    return np.ix_(*ranges)


def permute(request: Request, axes: tuple[int, ...]) -> Request:
    """Return the request for the transposed array, whose axis i is axis ``axes[i]`` of this one."""
    if isinstance(request, Points):
        return Points(tuple(request.coordinates[i] for i in axes))
    return tuple(request[i] for i in axes)


def axis_parts(pick: Pick, axis: Axis) -> list[Part]:
    """Split a pick at the boundaries of the chunks of one axis.

    Parameters
    ----------
    pick : slice or ndarray of int
        The selected positions, as in `Selection`.
    axis : int or ndarray of int
        The chunk length, in elements, or the boundaries of the chunks.

        0 1 2|3 4 5|6      chunk 3, pick 2:7:2 -> 2 of chunk 0, 4 of 1, 6 of 2

    Examples
    --------
    >>> [(p.chunk, p.inside, p.outside) for p in axis_parts(slice(2, 4, 1), 3)]
    [(0, slice(2, 3, 1), slice(0, 1, 1)), (1, slice(0, 1, 1), slice(1, 2, 1))]
    >>> [(p.chunk, p.inside) for p in axis_parts(slice(2, 6, 1), np.array([0, 1, 4, 6]))]
    [(1, slice(1, 3, 1)), (2, slice(0, 2, 1))]
    """
    if not isinstance(pick, slice):
        return _position_parts(pick, axis)
    if not isinstance(axis, int):
        return _edge_parts(pick, axis)
    start, stop, step = pick.start, pick.stop, pick.step
    result = []
    position, done = start, 0
    while position < stop:
        number = position // axis
        begin = number * axis
        end = min(begin + axis, stop)
        count = -(-(end - position) // step)
        whole = step == 1 and position == begin and end == begin + axis
        inside = slice(position - begin, end - begin, step)
        result.append(Part(number, inside, slice(done, done + count, 1), whole))
        done += count
        position += count * step
    return result


def _edge_parts(pick: slice, edges: np.ndarray) -> list[Part]:
    """Split a slice at the given boundaries of chunks, whose lengths may differ."""
    start, stop, step = pick.start, pick.stop, pick.step
    if start >= stop:
        return []
    first = int(np.searchsorted(edges, start, "right")) - 1
    near = edges[first : int(np.searchsorted(edges, stop)) + 1].tolist()
    result = []
    position, done, number = start, 0, 0
    while position < stop:
        number = bisect_right(near, position, number) - 1
        begin, end = near[number], min(near[number + 1], stop)
        count = -(-(end - position) // step)
        whole = step == 1 and position == begin and end == near[number + 1]
        inside = slice(position - begin, end - begin, step)
        result.append(Part(first + number, inside, slice(done, done + count, 1), whole))
        done += count
        position += count * step
    return result


def _position_parts(pick: np.ndarray, axis: Axis) -> list[Part]:
    numbers = chunk_number(pick, axis)
    order = np.argsort(numbers, kind="stable")
    result = []
    edges = np.nonzero(np.diff(numbers[order]))[0] + 1
    for group in np.split(order, edges) if len(order) else []:
        number = int(numbers[group[0]])
        result.append(Part(number, pick[group] - chunk_start(number, axis), group, whole=False))
    return result
