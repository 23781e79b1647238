"""Read regions of several arrays concurrently, with the requests of all in flight together."""

from collections import Counter, deque
from collections.abc import Generator, Iterable
from typing import NamedTuple

import numpy as np

from zarrdask import config
from zarrdask.arrays.chunks.parts import MAX_REQUEST_BYTES
from zarrdask.arrays.chunks.read import read_part, read_region, read_units
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.codecs.decode import Blocks
from zarrdask.formats.indexing.projection import AnyRequest, Projection, Regions, project
from zarrdask.runtime.progress import Show
from zarrdask.runtime.threads import completed, thread_count

#: How many requests the threads begin, for each that may be in flight.
_AHEAD = 2


class ArrayRead(NamedTuple):
    """Elements to read of an array, and the memory for them, as in `read`."""

    chunks: StoredChunks
    request: AnyRequest
    out: np.ndarray | Blocks

    @property
    def chunk_bytes(self) -> int:
        """The decoded size of a unit in bytes."""
        return max(self.chunks.metadata.pipeline.spec.nbytes, 1)


#: A read, and its number among all of them.
_Numbered = tuple[int, ArrayRead]


class _Piece(NamedTuple):
    """Some units of one of the reads, which one thread requests and decodes."""

    number: int
    read: ArrayRead
    projection: Projection


def read_together(reads: Iterable[ArrayRead]) -> Generator[int]:
    """Read regions of several arrays, and yield the number of each when it is complete.

    Chunks in remote stores are requested together and decoded by all threads, in any order. The
    other arrays are read before, one after another. The errors are as in
    `zarrdask.arrays.chunks.read.read_region`.
    """
    alone, joined = deque[_Numbered](), list[_Numbered]()
    for number, read in enumerate(reads):
        overlaps = read.chunks.costs.overlaps and read.chunks.elements is None
        (joined if overlaps else alone).append((number, read))
    if len(joined) == 1:
        alone.append(joined.pop())  # all threads read it, too
    return _read(alone, joined)


def _read(alone: deque[_Numbered], joined: list[_Numbered]) -> Generator[int]:
    # A read that is complete is not kept: its memory may be much of what there is.
    while alone:
        number, read = alone.popleft()
        read_alone(read)
        del read
        yield number
    pieces, threads = _divide(joined)
    joined.clear()
    left = Counter(piece.number for piece in pieces)
    for number in completed(_read_piece, pieces, threads):
        left[number] -= 1
        if not left[number]:
            yield number


def read_alone(read: ArrayRead, *, threads: int | None = None, show: Show | None = None) -> None:
    """Read elements of one array; the arguments are as in `read_region`."""
    chunks, request, out = read
    if isinstance(out, np.ndarray) and not isinstance(request, Regions):
        read_region(chunks, request, threads=threads, out=out, show=show)
    elif chunks.elements is not None:
        chunks.elements.read(request, out, threads=threads)
    else:
        projection = project(request, chunks.metadata.grid.axes)
        read_units(chunks, projection, out=out, threads=threads, show=show)


def _read_piece(piece: _Piece) -> int:
    with piece.read.chunks.measured("read"):
        read_part(piece.read.chunks, piece.projection, out=piece.read.out)
    return piece.number


def _divide(reads: list[_Numbered]) -> tuple[deque[_Piece], int]:
    """Return pieces of all reads, and the number of threads that read them.

    There are so many threads that enough requests are in flight, but not more than there is room
    for chunks that are decoded at the same time.
    """
    projections = [project(read.request, read.chunks.metadata.grid.axes) for _, read in reads]
    count, cores = sum(len(each.indices) for each in projections), thread_count(None)
    pieces = deque[_Piece]()
    for (number, read), each in zip(reads, projections, strict=True):
        size = max(min(-(-count // cores), MAX_REQUEST_BYTES // read.chunk_bytes), 1)
        # One without any chunk is complete when it is begun.
        for at in range(0, max(len(each.indices), 1), size):
            pieces.append(_Piece(number, read, each.some(at, at + size)))
    if not pieces:
        return pieces, 1
    requests, largest = config.get("requests"), max(read.chunk_bytes for _, read in reads)
    count_ahead = -(-_AHEAD * requests * len(pieces) // max(count, 1))
    room = max(MAX_REQUEST_BYTES // largest, cores)
    return pieces, min(max(count_ahead, cores), room, requests, len(pieces))
