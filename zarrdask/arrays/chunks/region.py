"""Regions of stored arrays: what tasks carry to read and write arrays."""

import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.read import read_region, read_regions
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.write import Beyond, write_region
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.projection import project
from zarrdask.formats.indexing.regions import compose_axis
from zarrdask.formats.indexing.selection import (
    Region,
    Selection,
    basic,
    finished,
    pick_size,
    region_shape,
    whole_region,
)
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.in_flight import Requests
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.capabilities import StoreCosts
from zarrdask.storage.locks.chunk_locks import ChunkLocks


class _Thread(threading.local):
    """The next read of a thread."""

    def __init__(self) -> None:
        #: The reads that were planned together, by the array-like that is read.
        self.planned: dict[ArrayRegion, _Planned] = {}


_THREAD = _Thread()


class ArrayRegion:
    """A region of a stored array, which reads and writes it: an array-like that Dask slices.

    It pickles to a few hundred bytes.

    Parameters
    ----------
    stored : StoredChunks
        The stored array.
    region : tuple of slice, optional
        The region, with positive steps and within the shape; by default all of the array.
    axes : tuple of int, optional
        The axes of the stored array that this array has, by default all. Along each other axis, the
        region has one element.
    token : str, optional
        A string that identifies the array in its current version. It names Dask graphs, which are
        not built in tasks.
    """

    __slots__ = ("__weakref__", "axes", "ndim", "region", "shape", "stored", "token")

    def __init__(
        self,
        stored: StoredChunks,
        region: Region | None = None,
        axes: tuple[int, ...] | None = None,
        token: str = "",
    ) -> None:
        self.stored = stored
        self.region = whole_region(stored.metadata.shape) if region is None else region
        self.token = token
        self.axes = tuple(range(len(self.region))) if axes is None else axes
        self.shape: Shape = tuple([pick_size(self.region[axis]) for axis in self.axes])
        self.ndim = len(self.axes)

    @property
    def metadata(self) -> ArrayMetadata:
        """The metadata of the stored array."""
        return self.stored.metadata

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the elements."""
        return self.stored.metadata.dtype

    @property
    def fill(self) -> Any:
        """The element that stands for those beyond the ends of the array."""
        return self.stored.metadata.fill

    @property
    def costs(self) -> StoreCosts:
        """What requests to the store cost."""
        return self.stored.costs

    @property
    def chunks(self) -> Shape | None:
        """The shape of the chunks that are decoded, if the region begins with whole ones.

        Packages that choose blocks read this attribute; None if the chunks differ in shape.
        """
        grid = self.metadata.read_grid
        picks = [self.region[axis] for axis in self.axes]
        lengths = [grid.chunk_shape[axis] for axis in self.axes]
        is_even = grid.is_regular and all(
            pick.step == 1 and length and pick.start % length == 0
            for pick, length in zip(picks, lengths, strict=True)
        )
        return tuple(lengths) if is_even else None

    # ---- parts

    def in_array(self, part: Region) -> Region:
        """Return the region of the stored array that is a region of this array."""
        picks = list(self.region)
        for axis, pick in zip(self.axes, part, strict=True):
            picks[axis] = compose_axis(picks[axis], pick)
        return tuple(picks)

    def select(self, selection: Selection) -> "ArrayRegion":
        """Return the selected part of this array, before new axes and reversals."""
        axes = tuple([self.axes[axis] for axis in selection.kept])
        return ArrayRegion(self.stored, self.in_array(selection.slices), axes, self.token)

    def regions(self, part: Region) -> list[Region]:
        """Return the regions of the stored array that are read for a part, in order."""
        return [self.in_array(part)]

    def keys(self, part: Region) -> list[str]:
        """Return the keys of the units that hold a region of this array."""
        axes, regions = self.metadata.grid.axes, self.regions(basic(part, self.shape).slices)
        return [self.stored.key(i) for region in regions for i in project(region, axes).indices]

    def narrowed(self, part: Region) -> "ArrayRegion":
        """Return the source with which a task reads a region of this array, of that shape."""
        region = self.in_array(part)
        reader = self.stored.elements
        needed = None if reader is None else reader.part(region)
        if needed is None:
            return ArrayRegion(self.stored, region, self.axes, self.token)
        stored, region, axes = needed
        if stored.is_shared != self.stored.is_shared:
            stored = replace(stored, is_shared=self.stored.is_shared)
        return ArrayRegion(stored, region, tuple([axes[axis] for axis in self.axes]), self.token)

    def as_stored(self) -> "ArrayRegion":
        """Return the region as it is stored, if a derived class changes it."""
        return ArrayRegion(self.stored, self.region, self.axes, self.token)

    # ---- elements

    def __getitem__(self, index: Any) -> np.ndarray:
        planned = _THREAD.planned.get(self)
        values = None if planned is None else planned.take(index)
        if values is None:
            selection = basic(index, self.shape)
            values = finished(self.elements(self.read(selection.slices)), selection)
        return values

    def read(self, part: Region, *, out: np.ndarray | None = None) -> np.ndarray:
        """Return a region of this array, read in this thread; in `out`, if that is given."""
        values = read_region(self.stored, self.in_array(part), out=out)
        return values if self.ndim == len(self.region) else values.reshape(region_shape(part))

    def read_each(self, parts: Sequence[Region]) -> Iterator[np.ndarray]:
        """Yield regions of this array, whose reads are planned together, in this thread.

        The requests for several of them are in flight together if the store is remote.
        """
        is_whole = self.ndim == len(self.region) and self.shape == self.metadata.shape
        regions = parts if is_whole else [self.in_array(part) for part in parts]
        values = read_regions(self.stored, regions)
        if self.ndim == len(self.region):
            return values
        pairs = zip(values, parts, strict=True)
        return (each.reshape(region_shape(part)) for each, part in pairs)

    def elements(self, stored: np.ndarray) -> np.ndarray:
        """Return stored elements as elements of this array, which a derived class may decode."""
        return stored

    def with_elements(self, part: "ArrayRegion") -> "ArrayRegion":
        """Return a selected part of this array with elements as this array has them."""
        return part

    def write(
        self,
        values: np.ndarray,
        part: Region,
        *,
        empty: bool,
        beyond: Beyond = "keep",
        threads: int | None = 1,
        locks: ChunkLocks | None = None,
        requests: Requests | None = None,
    ) -> int:
        """Write a region of this array; return how many units are stored: see `write_region`."""
        return write_region(
            self.stored,
            self.in_array(part),
            values,
            empty=empty,
            beyond=beyond,
            threads=threads,
            locks=locks,
            requests=requests,
        )

    # ---- other regions

    @property
    def canonical_location(self) -> str:
        """The canonical location of the array."""
        return self.stored.canonical_location

    @property
    def start(self) -> Shape:
        """The index of the first element in the stored array."""
        return tuple([pick.start for pick in self.region])

    def is_below(self, location: str) -> bool:
        """Whether the array is at a canonical location, or in the group at it."""
        return self.canonical_location.startswith(location)

    def overlaps(self, other: "ArrayRegion") -> bool:
        """Whether two regions may have elements in common. Steps are ignored.

        An array that was replaced by one with another number of dimensions overlaps all of it.
        """
        if self.canonical_location != other.canonical_location:
            return False
        return len(self.region) != len(other.region) or all(
            max(a.start, b.start) < min(a.stop, b.stop)
            for a, b in zip(self.region, other.region, strict=True)
        )

    def __str__(self) -> str:
        return f"[{', '.join(f'{pick.start}:{pick.stop}' for pick in self.region)}]"

    # ---- in graphs

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "zarrdask", self.token, _bounds(self.region), self.axes

    def __reduce__(self) -> tuple[Any, ...]:
        return _region, (self.stored, _bounds(self.region), self.axes)


def _bounds(region: Region) -> tuple[tuple[int, int, int], ...]:
    return tuple([(pick.start, pick.stop, pick.step) for pick in region])


def _region(
    stored: StoredChunks, bounds: tuple[tuple[int, int, int], ...], axes: tuple[int, ...]
) -> ArrayRegion:
    return ArrayRegion(stored, tuple(slice(*each) for each in bounds), axes)


class _Planned:
    """Parts of a region whose reads are planned together, and done one after another."""

    def __init__(self, source: ArrayRegion, indices: list[Any]) -> None:
        selections = [basic(index, source.shape) for index in indices]
        self._source = source
        self._next = deque(zip(indices, selections, strict=True))
        self._values = source.read_each([selection.slices for selection in selections])

    def take(self, index: Any) -> np.ndarray | None:
        """Return the elements of an index, or None if another one is the next."""
        if not self._next or self._next[0][0] != index:
            return None
        _, selection = self._next.popleft()
        return finished(self._source.elements(next(self._values)), selection)


@contextmanager
def planned_reads(reads: Iterable[tuple[ArrayRegion, Any]]) -> Iterator[None]:
    """Plan what this thread is going to read: parts of regions, by their indices in that order."""
    indices = defaultdict[ArrayRegion, list[Any]](list)
    for source, index in reads:
        indices[source].append(index)
    outer = _THREAD.planned
    own = {source: _Planned(source, each) for source, each in indices.items()}
    _THREAD.planned = {**outer, **own}
    try:
        with THIS_THREAD.counts.reported_together():
            yield
    finally:
        _THREAD.planned = outer
