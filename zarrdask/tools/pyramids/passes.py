"""The tasks of a pass over a pyramid: each computes the blocks of several levels, depth first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.regions import tiles, view, within
from zarrdask.formats.indexing.selection import Region, region_shape, whole_region
from zarrdask.parallel.execution.forks import changing_each
from zarrdask.parallel.execution.workspace import slots
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.parallel.plan.strategies import Stage
from zarrdask.parallel.rewrite.passes import (
    ArrayTiles,
    CountBytes,
    PackedRegions,
    RegionBuffer,
    RegionReader,
    TaskContext,
    WholeBuffer,
)
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.adapters.forks import Changes
from zarrdask.storage.memory import MemoryStore
from zarrdask.tools.pyramids.kernels import Reduction
from zarrdask.tools.pyramids.level_blocks import BlockGrid


def _move(
    source: StoredChunks, target: StoredChunks, buffer: WholeBuffer, context: TaskContext
) -> None:
    """Copy the encoded chunks or shards of a block, and decode them; each is fetched once."""
    grid = source.metadata.grid

    def move(tile: Region) -> None:
        axes = [axis.numbers(pick) for axis, pick in zip(grid.axes, tile, strict=True)]
        indices = list(product(*axes))
        values = source.units.get_many([source.key(index) for index in indices], Scratch())
        held = {
            index: bytes(value)
            for index, value in zip(indices, values, strict=True)
            if value is not None
        }
        target.units.set_many((target.key(index), value) for index, value in held.items())
        memory = MemoryStore({source.key(index): value for index, value in held.items()})
        region = ArrayRegion(replace(source, store=memory, is_stored=False))
        region.read(tile, out=buffer.view(tile))
        context.add(tile)

    limit = context.slab // max(context.dtype.itemsize, 1)
    context.slot.each(move, tiles(buffer.region, grid.axes, (0,) * len(grid.axes), limit))


@dataclass(frozen=True, eq=False)
class CastTiles:
    """A stored array whose values are read with the data type of `target`."""

    source: ArrayTiles
    target: StoredChunks
    casting: Casting

    def read(self, region: Region, buffer: RegionBuffer, context: TaskContext) -> None:
        """Read a region into a buffer."""
        dtype = self.source.region.dtype
        values = context.slot.array("source", region_shape(region), dtype)
        self.source.read(region, WholeBuffer(region, values), context._replace(dtype=dtype))
        buffer.put(region, self.casting.cast(values, self.target.metadata.dtype, self.target))


@dataclass(frozen=True, eq=False)
class HeldBlock:
    """A computed block of a Dask array, as the source of a task."""

    region: Region
    values: np.ndarray

    def read(self, region: Region, buffer: RegionBuffer, context: TaskContext) -> None:
        """Copy a part of the block into a buffer."""
        buffer.put(region, view(self.values, within(region, self.region)))
        context.add(region)


@dataclass(frozen=True, eq=False)
class PyramidPass:
    """One pass over a pyramid. Called with the number of a block, it computes that block."""

    stage: Stage
    #: The array that is read; None if tasks are given the blocks of a Dask array.
    source: RegionReader | None
    #: The blocks of each level of the pass by the number of the level.
    grids: Mapping[int, BlockGrid]
    #: How a level becomes the next one, by the number of the finer one.
    reductions: Mapping[int, Reduction]
    #: The arrays that are written, by their levels.
    targets: Mapping[int, StoredChunks]
    #: Where the reduced blocks of the coarsest level go; None if the pass is the last one.
    packed: PackedRegions | None
    dtype: np.dtype[Any]
    #: Whether chunks that hold only the fill value are stored.
    empty: bool
    #: The regions that are written, by their levels, if levels are written in part: the other cells
    #: of their chunks and shards keep their values.
    changed: Mapping[int, Region] | None = None
    #: The source, if its chunks or shards become level 0 without being encoded again.
    moved: StoredChunks | None = None
    #: The rule by which the blocks of a Dask array are cast.
    casting: Casting = Casting.EXACT

    @property
    def regions(self) -> Cutting:
        """The regions of the finest level of the pass, one for each task."""
        return self.stage.regions

    @property
    def first(self) -> int:
        """The finest level of the pass."""
        return min(self.grids)

    @property
    def last(self) -> int:
        """The coarsest level whose whole blocks the pass computes."""
        return max(self.grids)

    def __call__(self, number: int, count: CountBytes | None = None) -> Changes | None:
        """Compute a block of the coarsest level, and return the changes of a fork.

        `count` is called with bytes: in all, twice the bytes of the region of the finest level.
        """
        costs, threads = self.stage.costs, self.stage.threads
        free = slots(costs.at_once, threads)
        slot = free.get()
        try:
            context = TaskContext(self.dtype, costs.slab, slot, count)
            index = self.grids[self.last].index(number)
            with changing_each(self.targets.values()) as (targets, changes):
                self._compute(index, context, dict(zip(self.targets, targets, strict=True)))
            return Changes.joined(changes)
        finally:
            free.put(slot)

    def of_block(self, number: int, values: np.ndarray) -> Changes | None:
        """Compute a block, given its finest level: a task of a Dask graph."""
        region = self.regions.region(number)
        values = self.casting.cast_block(values, region_shape(region), self.dtype, "source")
        held = HeldBlock(region, values)
        return replace(self, source=held)(number)

    def _compute(
        self, index: Index, context: TaskContext, targets: Mapping[int, StoredChunks]
    ) -> None:
        """Compute a block of the coarsest level, and pass it on."""
        last = self.last
        values = self._block(last, index, context, targets)
        if self.packed is None:
            return
        region = self.grids[last].region(index, last + 1)
        if prod(region_shape(region)):
            reduced = context.slot.array("passed on", region_shape(region), self.dtype)
            self.reductions[last].reduce(values, reduced)
            [(owner, _)] = self.packed.owners.overlapping(region)
            self.packed.store.set(self.packed.key(owner), reduced.reshape(-1).view(np.uint8).data)

    def _block(
        self,
        level: int,
        index: Index,
        context: TaskContext,
        targets: Mapping[int, StoredChunks],
    ) -> np.ndarray:
        """Return a block of a level, and store its chunks or shards."""
        region = self.grids[level].region(index, level)
        values = context.slot.array(f"level {level}", region_shape(region), self.dtype)
        if level == self.first:
            if self.moved is not None:
                _move(self.moved, targets[level], WholeBuffer(region, values), context)
            elif self.source is not None:
                self.source.read(region, WholeBuffer(region, values), context)
            context.add(region)  # as it is written, in part or reduced
        else:
            inner = self.grids[level - 1]
            for child in product(*inner.inside(index, self.grids[level])):
                part = inner.region(child, level)
                finer = self._block(level - 1, child, context, targets)
                if prod(region_shape(part)):
                    inside: Any = (*within(part, region), ...)
                    self.reductions[level - 1].reduce(finer, values[inside])
        is_stored = self.moved is not None and level == self.first
        if level in targets and values.size and not is_stored:
            self._store(targets[level], level, region, values, context)
        return values

    def _store(
        self,
        target: StoredChunks,
        level: int,
        region: Region,
        values: np.ndarray,
        context: TaskContext,
    ) -> None:
        """Store the chunks or shards of a block, as far as they change."""
        whole = ArrayRegion(target, whole_region(target.metadata.shape))
        part = region if self.changed is None else _common(region, self.changed[level])
        tiles = ArrayTiles(whole, self.empty, "fill" if self.changed is None else "keep")
        if prod(region_shape(part)):
            values = view(values, within(part, region))
            tiles.store(part, WholeBuffer(part, values), context._replace(counter=None))


def _common(one: Region, other: Region) -> Region:
    """Return the intersection of two regions; empty axes have no length."""
    starts = [max(a.start, b.start) for a, b in zip(one, other, strict=True)]
    stops = [min(a.stop, b.stop) for a, b in zip(one, other, strict=True)]
    return tuple(slice(a, max(a, b), 1) for a, b in zip(starts, stops, strict=True))
