"""The tasks of a pass: each reads a region, and stores it as chunks, shards or packed pieces.

A process runs as many tasks at a time as the plan says, so that it stays within the memory limit.
Within a task several threads may read and write.

A pass connects a source to a target by a buffer: the target allocates it in the layout in which it
writes, and the source fills it, tile by tile.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, product
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.write import Beyond
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer, Range
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.regions import moved, slabs, tiles, view, within
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.parallel.execution.forks import changing_region
from zarrdask.parallel.execution.workspace import Slot, slots
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.parallel.plan.strategies import Stage
from zarrdask.parallel.rewrite.copying.move import move_inner, move_units
from zarrdask.runtime import buffers
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.adapters.forks import Changes
from zarrdask.storage.base import Store

#: Called with the number of bytes that were read or written.
CountBytes = Callable[[int], None]
#: The most encoded units that one thread moves between two reports of progress.
_MAX_UNITS_PER_REPORT = 64


class TaskContext(NamedTuple):
    """The memory, the threads and the counter of bytes that a task works with.

    Each thread reads up to `slab` bytes at a time, unless a single piece is larger.
    """

    dtype: np.dtype[Any]
    slab: int
    slot: Slot
    counter: CountBytes | None = None

    def add(self, region: Region) -> None:
        """Count the bytes of a region that was read or written."""
        if self.counter is not None:
            self.counter(prod(region_shape(region)) * self.dtype.itemsize)

    def scratch(self, shape: Shape) -> np.ndarray:
        """Return an array for this thread alone, valid until the thread asks for the next."""
        # A task with one thread may run in another thread than the task before.
        user = 0 if self.slot.threads == 1 else threading.get_ident()
        return self.slot.array(user, shape, self.dtype)


# --------------------------------------------------------------------------------------------
# Buffers between source and target


@dataclass(frozen=True, eq=False)
class WholeBuffer:
    """A region as one array: `values` are its elements."""

    region: Region
    values: np.ndarray

    def view(self, tile: Region) -> np.ndarray:
        """Return the memory of a tile."""
        return view(self.values, within(tile, self.region))

    def put(self, tile: Region, values: np.ndarray) -> None:
        """Copy the values of a tile into the buffer."""
        self.view(tile)[...] = values


class PieceBuffer:
    """A region as pieces, one after another in memory: one for each region of the next pass.

    The memory has one dimension; `pieces` are views of it by the index of their reader.
    """

    def __init__(self, region: Region, readers: Cutting, memory: np.ndarray) -> None:
        self._readers = readers
        self.pieces: dict[Shape, np.ndarray] = {}
        self._regions: dict[Shape, Region] = {}
        start = 0
        for index, piece in readers.overlapping(region):
            shape = region_shape(piece)
            self._regions[index] = piece
            self.pieces[index] = memory[start : start + prod(shape)].reshape(shape)
            start += prod(shape)

    def view(self, tile: Region) -> None:
        """Return None: a tile may lie in several pieces."""

    def put(self, tile: Region, values: np.ndarray) -> None:
        """Copy the values of a tile into the pieces that it overlaps."""
        for index, part in self._readers.overlapping(tile):
            inside = within(part, self._regions[index])
            self.pieces[index][inside] = values[within(part, tile)]


#: The memory that holds a region between reading and writing.
RegionBuffer = WholeBuffer | PieceBuffer


class RegionReader(Protocol):
    """The source of a pass."""

    def read(self, region: Region, buffer: RegionBuffer, context: TaskContext) -> None:
        """Read a region into a buffer."""


# --------------------------------------------------------------------------------------------
# Sources and targets


@dataclass(frozen=True, eq=False)
class ArrayTiles:
    """A region of a stored array, read by the first pass or written by the last, tile by tile.

    `empty` and `beyond` are as in `write_region`; `casting` is the rule for casts. `parts` is the
    shape of the parts of chunks that are read without the rest, if they are.
    """

    region: ArrayRegion
    empty: bool = False
    beyond: Beyond = "keep"
    casting: Casting = Casting.EXACT
    parts: Shape | None = None

    def read(self, region: Region, buffer: RegionBuffer, context: TaskContext) -> None:
        """Read a region into a buffer."""

        def read_tile(tile: Region) -> None:
            memory = buffer.view(tile)
            out = context.scratch(region_shape(tile)) if memory is None else memory
            values = self.region.read(tile, out=out)
            if memory is None:
                buffer.put(tile, values)
            context.add(tile)

        grid, limit = self.region.metadata.read_grid, context.slab // max(context.dtype.itemsize, 1)
        # Such a store returns whole chunks or parts, and several at once: so even a tile that
        # overlaps only a small part of a chunk costs the memory of what is returned.
        is_copied = self.region.costs.copies > 1
        least = least_read(grid.chunk_shape, region, self.parts) if is_copied else 1
        context.slot.each(read_tile, tiles(region, grid.axes, self.region.start, limit, least))

    @contextmanager
    def changing(self) -> Iterator[tuple["ArrayTiles", list[Changes]]]:
        """Yield the target of one task, and a list that holds its changes after the block."""
        with changing_region(self.region) as (region, changes):
            yield replace(self, region=region), changes

    def write(self, region: Region, source: RegionReader, context: TaskContext) -> int:
        """Write what a source has of a region to chunks or shards; return how many are stored."""
        values = context.slot.array("region", region_shape(region), context.dtype)
        buffer = WholeBuffer(region, values)
        source.read(region, buffer, context)
        return self.store(region, buffer, context)

    def store(self, region: Region, buffer: WholeBuffer, context: TaskContext) -> int:
        """Write a region from a buffer to chunks or shards; return how many are stored."""

        def write_unit(unit: Region) -> int:
            region = self.region
            values = self.casting.cast(buffer.view(unit), region.dtype, region.stored)
            stored = region.write(values, unit, empty=self.empty, beyond=self.beyond)
            context.add(unit)
            return stored

        axes = self.region.metadata.grid.axes
        return sum(context.slot.each(write_unit, tiles(region, axes, self.region.start, 1)))


@dataclass(frozen=True, eq=False)
class PackedRegions:
    """Temporary objects between two passes: one for each region of the pass that writes them.

    An object holds its region as pieces, one after another: the intersections with the regions of
    the next pass, each in C order, in the order of these regions. So the boundaries of the regions
    alone say where each piece lies, and the next pass reads byte ranges. `owners` are the regions
    of the pass that writes, `readers` of the pass that reads.
    """

    store: Store
    prefix: str
    owners: Cutting
    readers: Cutting
    #: The advice if an object is missing.
    advice: str = "begin again with restart=True"

    def key(self, index: Shape) -> str:
        """Return the key of a region's object."""
        return f"{self.prefix}{'.'.join(map(str, index)) or '0'}"

    def read(self, region: Region, buffer: RegionBuffer, context: TaskContext) -> None:
        """Read a region of the next pass into a buffer."""

        def read_piece(owner: tuple[Shape, Region]) -> None:
            index, piece = owner
            key, itemsize = self.key(index), context.dtype.itemsize
            rows = list(slabs(region_shape(piece), context.slab // itemsize))
            sizes = [prod(region_shape(row)) * itemsize for row in rows]
            starts = accumulate(sizes, initial=self._offset(index, piece) * itemsize)
            ranges = list(zip(starts, sizes, strict=False))
            for row, (start, size), data in zip(rows, ranges, self._data(key, ranges), strict=True):
                if data is None or len(data) != size:
                    raise StoreError(
                        "a temporary object of an earlier pass is missing or cut off; "
                        f"{self.advice}",
                        key=key,
                        found=None if data is None else f"{len(data)} bytes",
                        expected=f"{size} bytes from byte {start} on",
                    )
                part = moved(row, tuple(pick.start for pick in piece))
                buffer.put(part, np.frombuffer(data, context.dtype).reshape(region_shape(row)))
                context.add(part)

        context.slot.each(read_piece, self.owners.overlapping(region))

    def _data(self, key: str, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        """Yield byte ranges of an object, one at a time in memory."""
        if not self.store.capabilities.concurrent:
            yield from self.store.get_ranges(key, ranges, buffers.THREAD.scratch)
            return
        # All ranges would be in flight together; fetch one at a time to bound memory.
        for byte_range in ranges:
            yield from self.store.get_ranges(key, [byte_range], Scratch())

    def _offset(self, index: Shape, piece: Region) -> int:
        """Return how many elements of a region's object come before a piece."""
        owner, offset = self.owners.at(index), 0
        for axis, (pick, whole) in enumerate(zip(piece, owner, strict=True)):
            before = region_shape(piece[:axis])
            after = region_shape(owner[axis + 1 :])
            offset += prod(before) * (pick.start - whole.start) * prod(after)
        return offset

    def write(self, region: Region, source: RegionReader, context: TaskContext) -> int:
        """Store what a source has of a region as one object."""
        memory = context.slot.array("region", (prod(region_shape(region)),), context.dtype)
        source.read(region, PieceBuffer(region, self.readers, memory), context)
        [(index, _)] = self.owners.overlapping(region)
        self.store.set(self.key(index), memory.view(np.uint8).data)
        context.add(region)
        return 1

    @contextmanager
    def changing(self) -> Iterator[tuple["PackedRegions", list[Changes]]]:
        """Yield the target: other processes can see the store of temporary objects."""
        yield self, []


def least_read(chunk_shape: Shape, region: Region, parts: Shape | None) -> int:
    """Return the number of elements that are read of a chunk that a region overlaps.

    >>> least_read((8, 10), (slice(2, 3, 1), slice(0, 10, 1)), (2, 10))
    40
    """
    whole = prod(chunk_shape)
    if parts is None or 2 * prod(map(min, chunk_shape, region_shape(region))) > whole:
        return whole
    axes = zip(chunk_shape, region_shape(region), parts, strict=True)
    return prod(min(chunk, -(-length // part) * part + part) for chunk, length, part in axes)


# --------------------------------------------------------------------------------------------
# Passes


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass over an array. Called with the number of a region, it rewrites that region."""

    stage: Stage
    source: RegionReader
    target: ArrayTiles | PackedRegions
    #: The data type of the values between source and target.
    dtype: np.dtype[Any]

    @property
    def regions(self) -> Cutting:
        """The regions, one for each task."""
        return self.stage.regions

    def __call__(self, number: int, count: CountBytes | None = None) -> int | Changes:
        """Rewrite a region, and return how many objects were stored, or the changes of a fork.

        `count` is called with bytes that were read and written: together twice the bytes of the
        region.
        """
        region, costs, threads = self.regions.region(number), self.stage.costs, self.stage.threads
        free = slots(costs.at_once, threads)
        slot = free.get()
        try:
            context = TaskContext(self.dtype, costs.slab, slot, count)
            with self.target.changing() as (target, changes):
                if self.stage.moves:
                    stored = self._move(region, context, target)
                else:
                    stored = target.write(region, self.source, context)
            return changes[0] if changes else stored
        finally:
            free.put(slot)

    def _move(self, region: Region, context: TaskContext, to: ArrayTiles | PackedRegions) -> int:
        """Copy the encoded units of a region of the target, or of the shards that are unpacked."""
        source, target = (end.region.stored for end in (self.source, to))  # type: ignore[attr-defined]
        move = move_units if self.stage.moves == "units" else move_inner
        unpacks_shards = self.stage.moves == "inner" and target.metadata.shard is None
        owner = source if unpacks_shards else target
        axes = zip(owner.metadata.grid.axes, region, strict=True)
        indices = list(product(*(axis.numbers(pick) for axis, pick in axes)))
        nbytes = 2 * prod(region_shape(region)) * self.dtype.itemsize
        size = max(1, min(_MAX_UNITS_PER_REPORT, -(-len(indices) // self.stage.threads)))

        def move_batch(start: int) -> int:
            units = move(source, target, indices[start : start + size]).units
            stop = min(start + size, len(indices))
            if context.counter is not None:
                context.counter(nbytes * stop // len(indices) - nbytes * start // len(indices))
            return units

        return sum(context.slot.each(move_batch, range(0, len(indices), size)))
