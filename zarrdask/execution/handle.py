"""The regions of stored arrays that tasks read and write."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from zarrdask.chunks.read import read_region, read_regions
from zarrdask.chunks.stored import StoredChunks
from zarrdask.chunks.write import Beyond, write_region
from zarrdask.execution.locks import among_workers
from zarrdask.indexing.projection import project
from zarrdask.indexing.regions import moved
from zarrdask.indexing.selection import Region, Selection, basic, pick_size, region_shape
from zarrdask.runtime.cancellation import write_named
from zarrdask.runtime.locks import ChunkLocks
from zarrdask.runtime.turns import Pace
from zarrdask.storage.in_flight import Requests

#: Of each thread that writes a bundle, the functions that write regions, by the names of writes.
_JOINED = threading.local()
#: Of each thread, the attribute `sources`: what it requests of them before it reads it.
_AHEAD = threading.local()


class Source:
    """A region of a stored array that tasks read: an array-like that Dask slices.

    Parameters
    ----------
    stored : StoredChunks
        The stored array.
    region : tuple of slice
        The region, with positive steps and within the shape.
    token : str
        A string that identifies the array in its current version.
    axes : tuple of int, optional
        The axes of the stored array that this array has, by default all. Of each other axis, the
        region has one element.
    """

    __slots__ = (
        "__weakref__",
        "axes",
        "dtype",
        "metadata",
        "ndim",
        "region",
        "shape",
        "stored",
        "token",
    )

    def __init__(
        self, stored: StoredChunks, region: Region, token: str, axes: tuple[int, ...] | None = None
    ) -> None:
        self.stored = stored
        self.region = region
        self.token = token
        self.axes = tuple(range(len(region))) if axes is None else axes
        self.shape = region_shape(tuple(region[axis] for axis in self.axes))
        self.ndim = len(self.shape)
        self.metadata = stored.metadata
        self.dtype = self.metadata.dtype

    @property
    def is_far(self) -> bool:
        """Whether the store has latency."""
        return self.stored.units.capabilities.has_latency

    def place(self, region: Region) -> Region:
        """Return the region of the stored array that is a region of this array."""
        place = list(self.region)
        for axis, pick in zip(self.axes, region, strict=True):
            place[axis] = compose_axis(place[axis], pick)
        return tuple(place)

    def keys(self, region: Region) -> list[str]:
        """Return the keys of the units that hold a region of this array."""
        return _keys(self.stored, self.place(basic(region, self.shape).slices))

    def view(self, selection: Selection) -> "Source":
        """Return the selected part of this array, before new axes and reversals."""
        axes = tuple(self.axes[axis] for axis in selection.kept)
        return Source(self.stored, self.place(selection.slices), self.token, axes)

    def __getitem__(self, index: Any) -> np.ndarray:
        selection = basic(index, self.shape)
        values = self._read(self.place(selection.slices))
        values = values.reshape(selection.shape)
        return values if selection.plain else values[selection.finish]

    def _read(self, region: Region) -> np.ndarray:
        """Return a region of the stored array, which this thread may have requested before."""
        ahead = vars(_AHEAD).get("sources", {}).get(self)
        values = None if ahead is None else ahead.read(region)
        return read_region(self.stored, region) if values is None else values

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "zarrdask", self.token, _bounds(self.region), self.axes

    def __reduce__(self) -> tuple[Any, ...]:
        return _source, (self.stored, _bounds(self.region), self.axes)


def source_of(item: Any) -> Source | None:
    """Return a source, also one whose elements an object decodes one by one."""
    inner = getattr(item, "source", None)
    return item if isinstance(item, Source) else inner if isinstance(inner, Source) else None


class _Ahead:
    """Regions of an array that are requested before they are read, one after another.

    In a store with latency the requests for several of them are in flight together then.
    """

    def __init__(self, chunks: StoredChunks, regions: Iterable[Region]) -> None:
        self._next = deque(regions)
        self._values = read_regions(chunks, tuple(self._next))

    def read(self, region: Region) -> np.ndarray | None:
        """Return a region, or None if another one is the next."""
        if not self._next or self._next[0] != region:
            return None
        self._next.popleft()
        return next(self._values)


@contextmanager
def reading_ahead(reads: Iterable[tuple[Source, Region]]) -> Iterator[None]:
    """Request what this thread is going to read of stores with latency: regions of sources.

    Of each source, the regions are in the order in which they are read.
    """
    regions = defaultdict[Source, list[Region]](list)
    for source, region in reads:
        regions[source].append(source.place(basic(region, source.shape).slices))
    outer = vars(_AHEAD).get("sources", {})
    own = {source: _Ahead(source.stored, each) for source, each in regions.items()}
    _AHEAD.sources = {**outer, **own}
    try:
        yield
    finally:
        _AHEAD.sources = outer


def _keys(chunks: StoredChunks, region: Region) -> list[str]:
    units = project(region, chunks.metadata.grid.axes)
    return [chunks.key(index) for index in units.indices]


def _bounds(region: Region) -> tuple[tuple[int, int, int], ...]:
    return tuple((s.start, s.stop, s.step) for s in region)


def _source(
    stored: StoredChunks, bounds: tuple[tuple[int, int, int], ...], axes: tuple[int, ...]
) -> Source:
    # The token names graphs, which are not built in tasks.
    return Source(stored, tuple(slice(*b) for b in bounds), "", axes)


def compose(outer: Region, inner: Region) -> Region:
    """Return the region of an array that is the region `inner` of its region `outer`.

    >>> compose((slice(10, 20, 2),), (slice(1, 4, 2),))
    (slice(12, 17, 4),)
    """
    return tuple(map(compose_axis, outer, inner))


def compose_axis(outer: slice, inner: slice) -> slice:
    """Return the slice of an axis that is the slice `inner` of its slice `outer`."""
    start = outer.start + inner.start * outer.step
    step = outer.step * inner.step
    count = pick_size(inner)
    return slice(start, start + (count - 1) * step + 1 if count else start, step)


class Target:
    """A region of a stored array that tasks write.

    Parameters
    ----------
    stored : StoredChunks
        The stored array.
    start : tuple of int
        The position of the written array in the stored array.
    empty : bool
        Whether units that hold only the fill value are stored.
    name : str
        The unique name of the write.
    beyond : {"keep", "fill"}
        Whether elements that units hold beyond the end of the array are kept, or become the fill
        value; see `write_region`.
    """

    __slots__ = ("_write", "beyond", "empty", "name", "start", "stored")

    def __init__(
        self,
        stored: StoredChunks,
        start: tuple[int, ...],
        *,
        empty: bool,
        name: str,
        beyond: Beyond,
    ) -> None:
        self._write = write_named(name)
        self.stored = stored
        self.start = start
        self.empty = empty
        self.name = name
        self.beyond = beyond

    def place(self, block: tuple[slice, ...]) -> Region:
        """Return the region of the stored array that a block of the written array covers."""
        return moved(block, self.start)

    def keys(self, block: tuple[slice, ...]) -> list[str]:
        """Return the keys of the units that hold a block of the written array."""
        return _keys(self.stored, self.place(block))

    def write(self, values: np.ndarray, block: tuple[slice, ...]) -> int:
        """Write a block, and return the number of units that were stored."""
        write = vars(_JOINED).get(self.name) or self._writer()
        values = np.asarray(values).astype(self.stored.metadata.dtype, copy=False)
        with self._write.block():
            return write(self.place(block), values)

    def _writer(self, requests: Requests | None = None) -> Callable[[Region, np.ndarray], int]:
        """Return the function that writes a region of the stored array."""
        chunks = self.stored
        locks = ChunkLocks(chunks.store, among_workers())
        return partial(
            write_region,
            chunks,
            empty=self.empty,
            beyond=self.beyond,
            locks=locks,
            requests=requests,
        )

    @contextmanager
    def joining(self, requests: Requests) -> Iterator[None]:
        """Let the blocks that this thread writes have their locks in common.

        In a store with latency, their requests join `requests`: the blocks are stored when the
        context of these is left, which must come first.
        """
        joined, is_far = vars(_JOINED), self.stored.units.capabilities.has_latency
        with self._write.block() if is_far else nullcontext():
            joined[self.name] = self._writer(requests if is_far else None)
            try:
                yield
            finally:
                del joined[self.name]

    @property
    def pace(self) -> Pace:
        """The pace of the threads of this process that write small blocks."""
        return self._write.pace

    def abort(self) -> None:
        """Stop writing blocks in this process, and wait for those that are being written."""
        self._write.abort()

    def read(self, block: tuple[slice, ...]) -> np.ndarray:
        """Return a written block as it is stored."""
        return read_region(self.stored, self.place(block))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        chunks = self.stored
        documents = self.stored.documents
        where = chunks.store.token, chunks.prefix, documents, self.start
        return "zarrdask", *where, self.empty, self.name, self.beyond

    def __reduce__(self) -> tuple[Any, ...]:
        return _target, (self.stored, self.start, self.empty, self.name, self.beyond)


def _target(
    stored: StoredChunks, start: tuple[int, ...], empty: Any, name: str, beyond: Beyond
) -> Target:
    return Target(stored, start, empty=empty, name=name, beyond=beyond)
