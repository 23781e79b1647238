"""What other rechunkers move, reckoned by the algorithms that they publish; nothing is run.

rechunker goes through one array of intermediate chunks, cubed through several. Both copy in passes:
a task reads a block from chunks of one shape, and writes it to chunks of another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from benchmarks.rows import Shape
from zarrdask.formats.grids.axis import Even
from zarrdask.parallel.plan.owned_regions import ReadEdges, choice, pieces_between

#: What cubed holds of a block: two arrays, a buffer each to read and to write, and one more.
_COPIES = 5
#: cubed's intermediate chunks have at least this part of the memory that its plan has.
_PART = 20
#: More passes than this are never tried.
_MOST = 100


class Work(NamedTuple):
    """What is asked for: chunks of one shape become chunks of another, in so many bytes."""

    shape: Shape
    itemsize: int
    source: Shape
    target: Shape
    memory: int

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True)
class Copy:
    """A pass: tasks of a shape read chunks of a second one, and write chunks of a third."""

    tasks: Shape
    read: Shape
    written: Shape


class Counted(NamedTuple):
    """What copies do.

    Attributes
    ----------
    moved : int
        Bytes of all chunks that are read and written, decoded. A chunk counts whole for each task
        that meets it, as it is read whole; and one that a task writes in part is read first.
    requests : int
        Chunks that are read and written.
    tasks : int
    again : int
        How often a chunk of the source is read, at most.
    """

    moved: int
    requests: int
    tasks: int
    again: int


class TooLittleMemoryError(ValueError):
    """A chunk alone has more bytes than a task may hold."""


# ---- what copies do


def count(work: Work, copies: Sequence[Copy]) -> Counted:
    """Count what copies do."""
    found = [_count(work, copy) for copy in copies]
    moved, requests, tasks = (sum(one[at] for one in found) for at in range(3))
    axes = zip(work.shape, copies[0].tasks, work.source, strict=True)
    again = prod(int(_meeting(chunk, task, n).max(initial=0)) for n, task, chunk in axes)
    return Counted(moved, requests, tasks, again)


def _count(work: Work, copy: Copy) -> tuple[int, int, int]:
    """Return the bytes, requests and tasks of a copy."""
    covered, met = _touched(work.shape, copy.tasks, copy.read)
    stored, written = _touched(work.shape, copy.tasks, copy.written)
    whole, full = _whole(work.shape, copy.tasks, copy.written)
    elements = covered + stored + (stored - whole)
    tasks = prod(-(-n // length) for n, length in zip(work.shape, copy.tasks, strict=True))
    return elements * work.itemsize, met + written + (written - full), tasks


def _touched(shape: Shape, tasks: Shape, chunks: Shape) -> tuple[int, int]:
    """Return how many elements have the chunks that tasks meet, and how many these are."""
    axes = [
        choice(Even(n, task).edges, ReadEdges.whole(Even(n, chunk).edges))
        for n, task, chunk in zip(shape, tasks, chunks, strict=True)
    ]
    return prod(axis.covered for axis in axes), prod(axis.overlapped for axis in axes)


def _whole(shape: Shape, tasks: Shape, chunks: Shape) -> tuple[int, int]:
    """Return how many elements have the chunks that lie wholly in a task; how many these are."""
    elements = number = 1
    for n, task, chunk in zip(shape, tasks, chunks, strict=True):
        edges = Even(n, chunk).edges
        inside = edges[:-1] // task == (edges[1:] - 1) // task
        elements *= int(np.diff(edges)[inside].sum())
        number *= int(np.count_nonzero(inside))
    return elements, number


def _meeting(chunk: int, task: int, size: int) -> np.ndarray:
    """Return how many tasks meet each chunk along an axis."""
    edges = Even(size, chunk).edges
    found: np.ndarray = (edges[1:] - 1) // task - edges[:-1] // task + 1
    return found


# ---- rechunker


def rechunker(work: Work) -> list[Copy]:
    """Return the copies of rechunker: by way of chunks that fit in both what it reads and writes.

    Raises
    ------
    TooLittleMemoryError
    """
    read, written = _ends(work, work.memory)
    if read == written:
        return [Copy(read, work.source, work.target)]
    between = _common(read, written)
    return [Copy(read, work.source, between), Copy(written, between, work.target)]


def _ends(work: Work, memory: int) -> tuple[Shape, Shape]:
    """Return the blocks that are read, and those that are written, as large as memory allows."""
    if max(prod(work.source), prod(work.target)) * work.itemsize > memory:
        raise TooLittleMemoryError
    room = memory / work.itemsize
    written = joined(work.target, work.shape, room)
    pairs = zip(work.source, written, strict=True)
    return joined(work.source, tuple(max(pair) for pair in pairs), room), written


def joined(chunks: Shape, limits: Shape, room: float) -> Shape:
    """Join chunks from the last axis to the first, up to a limit each, to so many elements.

    An axis gets to its limit if the block then has fewer; or as many times longer as there is room.

    >>> joined((10, 10), (20, 100), 1500)
    (10, 100)
    >>> joined((10, 10), (100, 100), 350)
    (10, 30)
    """
    found = list(chunks)
    for axis in reversed(range(len(found))):
        if limits[axis] <= chunks[axis]:
            continue
        times = int(room / prod(found))
        found[axis] = limits[axis]
        if prod(found) >= room:
            found[axis] = min(chunks[axis] * times, limits[axis])
    return tuple(found)


def _common(one: Shape, other: Shape) -> Shape:
    return tuple(map(min, zip(one, other, strict=True)))


# ---- cubed


def cubed(work: Work) -> list[Copy]:
    """Return the copies of cubed: by way of several chunk shapes, so that no chunk is tiny.

    Raises
    ------
    TooLittleMemoryError
    """
    if work.source == work.target:
        return []
    memory = work.memory // _COPIES
    shapes = _steps(work, memory, min(memory // _PART, work.nbytes))
    stored, found = work.source, []
    for at, (read, written) in enumerate(pairwise(shapes)):
        last = at == len(shapes) - 2
        after = work.target if last else written
        if read == written:
            found.append(Copy(read, stored, after))
            stored = after
            continue
        between = _common(read, written)
        found.append(Copy(read, stored, between))
        stored = between
        if last:
            found.append(Copy(written, stored, after))
    return found


def _steps(work: Work, memory: int, least: int) -> list[Shape]:
    """Return the shapes of blocks, from those that are read to those that are written.

    There are as many as it takes for what two of them share to have the least bytes; or, if one
    more would make more pieces, as many as there are.
    """
    read, written = _ends(work, memory)
    before: tuple[int, list[Shape]] | None = None
    for passes in range(1, _MOST):
        axes = [list(spaced(*ends, passes - 1)) for ends in zip(read, written, strict=True)]
        between = list(zip(*axes, strict=True))
        # What an attempt with fewer passes has cut stays cut in the next ones.
        read = _aligned(work.shape, read, (between or [written])[0])
        shapes = [read, *between, written]
        smallest = min(prod(_common(*pair)) for pair in pairwise(shapes)) * work.itemsize
        pieces = sum(_pieces(work.shape, *pair) for pair in pairwise(shapes))
        if smallest >= least:
            return shapes
        if before is not None and pieces > before[0]:
            return before[1]
        before = pieces, shapes
    raise TooLittleMemoryError


def _aligned(shape: Shape, read: Shape, after: Shape) -> Shape:
    """Return blocks that end where the next pass's do, where they are longer."""
    axes = zip(shape, read, after, strict=True)
    return tuple(a if a <= b or a == n else a // b * b for n, a, b in axes)


def _pieces(shape: Shape, one: Shape, other: Shape) -> int:
    """Return into how many pieces two shapes of blocks cut an array together."""
    return prod(
        pieces_between(Even(n, a).edges, Even(n, b).edges)
        for n, a, b in zip(shape, one, other, strict=True)
    )


def spaced(start: int, stop: int, number: int) -> Iterator[int]:
    """Yield lengths between two, each about as many times as long as the one before it.

    Each is a whole multiple of the next shorter one.

    >>> list(spaced(24, 43800, 3)), list(spaced(1000, 1, 2))
    ([144, 1008, 6048], [100, 10])
    """
    lengths, length = [], 1
    for wanted in np.geomspace(*sorted((start, stop)), number + 2):
        length = max(int(wanted / length) * length, 1)
        lengths.append(length)
    yield from (lengths if start <= stop else lengths[::-1])[1:-1]
