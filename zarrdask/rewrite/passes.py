"""The tasks of a rewrite: each reads a region, and stores it as units, or packed for the next pass.

A process does as many at a time as the plan says, so that it holds no more than that allows;
several of its threads may read and write within a task.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from zarrdask.chunks.cast import as_stored
from zarrdask.chunks.read import read_region
from zarrdask.chunks.stored import StoredChunks
from zarrdask.chunks.write import Beyond, write_region
from zarrdask.errors import StoreError
from zarrdask.grids.base import Shape
from zarrdask.indexing.projection import axis_parts
from zarrdask.indexing.regions import moved, slabs, tiles, view, within
from zarrdask.indexing.selection import Region, region_shape
from zarrdask.plan.regions import Cutting
from zarrdask.rewrite.move import move_inner, move_units
from zarrdask.runtime.threads import on_each
from zarrdask.runtime.workspace import Slot, slots
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, Range

T = TypeVar("T")
R = TypeVar("R")
#: What is done with a part of a region.
Put = Callable[[Region, np.ndarray], None]
#: Called with the number of bytes that were read or written.
Count = Callable[[int], None]
#: Encoded units that are moved between two reports.
_MOVED = 64


def ignore(nbytes: int) -> None:
    """Count nothing."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A region of a stored array, from or to which all is rewritten.

    Attributes
    ----------
    chunks : Chunks
        The array.
    start : tuple of int
        Where the region begins in it.
    empty : bool
        Whether units that hold only the fill value are stored.
    beyond : {"keep", "fill"}
        As in `write_region`.
    """

    chunks: StoredChunks
    start: Shape
    empty: bool = False
    beyond: Beyond = "keep"

    def load(self, region: Region, values: np.ndarray, do: "Work") -> None:
        """Read a region into an array."""

        def read(tile: Region) -> None:
            out = view(values, within(tile, region))
            read_region(self.chunks, moved(tile, self.start), out=out)
            do.add(tile)

        do.each(read, self._tiles(region, do))

    def each(self, region: Region, put: Put, do: "Work") -> None:
        """Read a region in parts, and hand them on."""

        def read(tile: Region) -> None:
            values = do.scratch(region_shape(tile))
            put(tile, read_region(self.chunks, moved(tile, self.start), out=values))
            do.add(tile)

        do.each(read, self._tiles(region, do))

    def _tiles(self, region: Region, do: "Work") -> Iterator[Region]:
        """Return a region in parts: whole pieces, of about as many bytes as a thread may read."""
        grid, limit = self.chunks.metadata.read_grid, do.slab // max(do.dtype.itemsize, 1)
        # Chunks that are asked for together are in memory together, however little of them is met.
        least = 1 if self.chunks.units.seekable else prod(grid.chunk_shape)
        return tiles(region, grid.axes, self.start, limit, least)

    def save(self, regions: Cutting, number: int, source: "Loads", do: "Work") -> int:
        """Read a region, and store its units; return how many there are then."""
        metadata, region = self.chunks.metadata, regions.region(number)
        values = do.array("region", region_shape(region))
        source.load(region, values, do)

        def write(unit: Region) -> int:
            part = as_stored(view(values, within(unit, region)), self.chunks)
            place = moved(unit, self.start)
            stored = write_region(self.chunks, place, part, empty=self.empty, beyond=self.beyond)
            do.add(unit)
            return stored

        return sum(do.each(write, tiles(region, metadata.write_axes, self.start, 1)))


@dataclass(frozen=True, eq=False)
class Packed:
    """What one pass leaves to the next: an object for each region, with pieces one after another.

    The pieces are what the regions of the next pass have of it, each in C order, in the order of
    these regions. So where a piece lies follows from the boundaries alone.

    Attributes
    ----------
    store : Store
    prefix : str
        Of the keys: "" or ends with "/".
    owners : Cutting
        The regions of the pass that writes.
    readers : Cutting
        Those of the pass that reads.
    """

    store: Store
    prefix: str
    owners: Cutting
    readers: Cutting

    def key(self, index: Shape) -> str:
        """Return the key of a region's object."""
        return f"{self.prefix}{'.'.join(map(str, index)) or '0'}"

    def load(self, region: Region, values: np.ndarray, do: "Work") -> None:
        """Read a region of the next pass into an array."""

        def put(part: Region, found: np.ndarray) -> None:
            values[within(part, region)] = found

        self.each(region, put, do)

    def each(self, region: Region, put: Put, do: "Work") -> None:
        """Read a region of the next pass in parts, and hand them on.

        Raises
        ------
        StoreError
            If an object is absent, or too short: the error names its key.
        """

        def read(found: tuple[Shape, Region]) -> None:
            index, piece = found
            key, itemsize = self.key(index), do.dtype.itemsize
            axis_parts = list(slabs(region_shape(piece), do.slab // itemsize))
            ranges = _ranges(self._offset(index, piece), axis_parts, itemsize)
            start = tuple(pick.start for pick in piece)
            values = self._parts(key, ranges)
            for part, wanted, data in zip(axis_parts, ranges, values, strict=True):
                if data is None or len(data) != wanted[1]:
                    raise _gone(key, data, wanted)
                put(moved(part, start), np.frombuffer(data, do.dtype).reshape(region_shape(part)))
                do.add(part)

        do.each(read, self.owners.meeting(region))

    def _parts(self, key: str, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        """Yield parts of an object, one at a time in memory."""
        if self.store.seekable:
            yield from self.store.get_ranges(key, ranges, Scratch())
            return
        # What is asked for together far away comes together.
        for each in ranges:
            yield from self.store.get_ranges(key, [each], Scratch())

    def _offset(self, index: Shape, part: Region) -> int:
        """Return how many elements of a region's object come before a piece."""
        owner, found = self.owners.at(index), 0
        for at, (pick, whole) in enumerate(zip(part, owner, strict=True)):
            before = region_shape(part[:at])
            after = region_shape(owner[at + 1 :])
            found += prod(before) * (pick.start - whole.start) * prod(after)
        return found

    def save(self, regions: Cutting, number: int, source: "Source", do: "Work") -> int:
        """Read a region, and store it in pieces."""
        region = regions.region(number)
        buffer = do.array("region", (prod(region_shape(region)),))
        pack(region, self.readers, source, buffer, do)
        self.store.set(self.key(regions.index(number)), buffer.view(np.uint8).data)
        do.add(region)
        return 1


def pack(
    region: Region, readers: Cutting, source: "Source", buffer: np.ndarray, do: "Work"
) -> dict[Shape, np.ndarray]:
    """Read a region into a buffer, as pieces one after another; return these by their readers."""
    pieces, at = {}, 0
    for index, piece in readers.meeting(region):
        shape = region_shape(piece)
        pieces[index] = piece, buffer[at : at + prod(shape)].reshape(shape)
        at += prod(shape)

    def put(tile: Region, values: np.ndarray) -> None:
        for index, part in readers.meeting(tile):
            piece, place = pieces[index]
            place[within(part, piece)] = values[within(part, tile)]

    source.each(region, put, do)
    return {index: place for index, (_, place) in pieces.items()}


def _ranges(start: int, rows: Sequence[Region], itemsize: int) -> list[Range]:
    """Return where slabs lie in an object, one after another, in bytes."""
    found, at = [], start * itemsize
    for row in rows:
        size = prod(region_shape(row)) * itemsize
        found.append((at, size))
        at += size
    return found


def _gone(key: str, data: Any, wanted: Range) -> StoreError:
    return StoreError(
        "what an earlier pass left here is gone, or cut off; begin anew with restart=True",
        key=key,
        found=None if data is None else f"{len(data)} bytes",
        expected=f"{wanted[1]} bytes from {wanted[0]}",
    )


class Loads(Protocol):
    """What a region can be read from into an array."""

    def load(self, region: Region, values: np.ndarray, do: "Work") -> None:
        """Read a region into an array."""


Source = Stored | Packed


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass over an array: called with the number of a region, it does that.

    Attributes
    ----------
    regions : Cutting
    source, target : Stored or Packed
    dtype : numpy.dtype
        Of the values on the way.
    threads : int
        How many read or write at a time.
    slab : int
        Bytes that each reads at a time, if no piece is larger.
    at_once : int
        How many tasks a process does at a time.
    """

    regions: Cutting
    source: Source
    target: Source
    dtype: np.dtype[Any]
    threads: int
    slab: int
    at_once: int = 1

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def __call__(self, number: int, count: Count = ignore) -> int:
        """Rewrite a region, and return how many objects were stored.

        Parameters
        ----------
        number : int
            The number of the region.
        count : callable
            Called with bytes that were read, and bytes that were written: twice all of the region.
        """
        free = slots(self.at_once, self.threads)
        slot = free.get()
        try:
            work = Work(self.dtype, self.slab, slot, count)
            return self.target.save(self.regions, number, self.source, work)
        finally:
            free.put(slot)


class Work(NamedTuple):
    """A task of a pass.

    Attributes
    ----------
    dtype, slab
        As in `Pass`.
    slot : Slot
    counter : callable
        As in `Pass.__call__`.
    """

    dtype: np.dtype[Any]
    slab: int
    slot: Slot
    counter: Count = ignore

    def add(self, region: Region) -> None:
        """Count a region that was read or written."""
        self.counter(prod(region_shape(region)) * self.dtype.itemsize)

    def array(self, user: str | int, shape: Shape) -> np.ndarray:
        """Return an array of the values; see `Slot.array`."""
        return self.slot.array(user, shape, self.dtype)

    def scratch(self, shape: Shape) -> np.ndarray:
        """Return an array of the values that this thread alone uses, for a moment."""
        # A task with one thread may have another one than the task before.
        user = 0 if self.slot.threads == 1 else threading.get_ident()
        return self.slot.array(user, shape, self.dtype)

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Do the work on each item; see `Slot.each`."""
        return self.slot.each(work, items)


@dataclass(frozen=True, eq=False)
class Moving:
    """A pass that moves encoded bytes: called with the number of a region, it does that.

    Attributes
    ----------
    regions : Cutting
        Of whole units of the target, or whole shards of the source that are opened.
    source, target : Chunks
    way : {"units", "inner"}
        As in `zarrdask.rewrite.move.way_between`.
    threads : int
    """

    regions: Cutting
    source: StoredChunks
    target: StoredChunks
    way: Literal["units", "inner"]
    threads: int
    at_once: ClassVar[int] = 1

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.target.metadata.dtype.itemsize

    def __call__(self, number: int, count: Count = ignore) -> int:
        """Copy the units of a region, and return how many there are then.

        Parameters are those of `Pass.__call__`.
        """
        move = move_units if self.way == "units" else move_inner
        picks = self.regions.region(number)
        opens = self.way == "inner" and self.target.metadata.shard is None
        owner = self.source if opens else self.target
        axes = zip(owner.metadata.grid.axes, picks, strict=True)
        indices = list(product(*([p.chunk for p in axis_parts(pick, axis)] for axis, pick in axes)))
        nbytes = 2 * prod(region_shape(picks)) * self.itemsize
        size = max(1, min(_MOVED, -(-len(indices) // self.threads)))

        def some(start: int) -> int:
            units = move(self.source, self.target, indices[start : start + size]).units
            end = min(start + size, len(indices))
            count(nbytes * end // len(indices) - nbytes * start // len(indices))
            return units

        return sum(on_each(some, range(0, len(indices), size), self.threads))
