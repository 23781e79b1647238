"""The blocks of the levels of a pyramid, each within one of the next level; and the passes. Pure.

A task computes the blocks of several levels, depth first: as soon as all parts of a block are
computed, its chunks or shards are stored, and it is reduced to a part of a block of the next level.
So a task holds one block of each level, however large the region is that it computes. The reduced
blocks of the coarsest level of a task are packed for the tasks of the next pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm, prod

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.tools.pyramids.levels import Level

#: The bytes that a block of the finest level should have, so that Python's work is small.
_BLOCK_BYTES = 2**22
#: The number of tasks for each thread, so that all threads end at about the same time.
_TASKS_PER_SLOT = 3


#: The first cell along each axis, and the one after the last.
Bounds = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BlockGrid:
    """The blocks of one level: regions of the array, by their length in cells of level 0.

    Only the parts of blocks in `bounds` count, a region of level 0, which begins and ends at the
    border of a cell of each level.
    """

    levels: tuple[Level, ...]
    steps: Shape
    bounds: tuple[tuple[int, int], ...]

    @property
    def counts(self) -> Shape:
        """The number of blocks along each axis."""
        return tuple(map(len, self._numbers))

    @property
    def size(self) -> int:
        """The number of blocks."""
        return prod(self.counts)

    @property
    def _numbers(self) -> list[range]:
        """The numbers of the blocks along each axis."""
        axes = zip(self.bounds, self.steps, strict=True)
        return [range(start // step, -(-stop // step)) for (start, stop), step in axes]

    def index(self, number: int) -> Index:
        """Return the index of a block by its number in C order."""
        within = np.unravel_index(number, self.counts) if self.counts else ()
        return tuple(numbers[int(i)] for numbers, i in zip(self._numbers, within, strict=True))

    def cutting(self, level: int) -> Cutting:
        """Return the blocks as regions of a level, without those that are empty there."""
        axes = zip(self._numbers, self._lengths(level), self._ends(level), strict=True)
        return Cutting(
            tuple(
                np.unique(np.clip(np.arange(each.start, each.stop + 1) * step, *ends))
                for each, step, ends in axes
            )
        )

    def region(self, index: Index, level: int) -> Region:
        """Return a block as a region of a level, which may be empty."""
        axes = zip(index, self._lengths(level), self._ends(level), strict=True)
        return tuple(
            slice(min(max(i * step, start), stop), min(max((i + 1) * step, start), stop), 1)
            for i, step, (start, stop) in axes
        )

    def shape(self, level: int) -> Shape:
        """Return the shape of the largest block in cells of a level."""
        axes = zip(self._lengths(level), self._ends(level), strict=True)
        return tuple(min(step, stop - start) for step, (start, stop) in axes)

    def inside(self, index: Index, outer: "BlockGrid") -> list[range]:
        """Return the numbers of the blocks within a block of a coarser grid, along each axis."""
        axes = zip(index, outer.steps, self.steps, self._numbers, strict=True)
        return [
            range(
                max(i * whole // step, numbers.start),
                min(-(-(i + 1) * whole // step), numbers.stop),
            )
            for i, whole, step, numbers in axes
        ]

    def _lengths(self, level: int) -> Shape:
        """Return the lengths of blocks in cells of a level, rounded up."""
        factors = self.levels[level].factors
        return tuple(-(-step // factor) for step, factor in zip(self.steps, factors, strict=True))

    def _ends(self, level: int) -> list[tuple[int, int]]:
        """Return the bounds in cells of a level."""
        return level_bounds(self.bounds, self.levels[0], self.levels[level])


def level_bounds(bounds: Bounds, first: Level, level: Level) -> list[tuple[int, int]]:
    """Return bounds of level 0 as bounds of another level; the end of an axis stays its end."""
    axes = zip(bounds, first.shape, level.shape, level.factors, strict=True)
    return [
        (min(start // n, length), length if stop >= size else min(stop // n, length))
        for (start, stop), size, length, n in axes
    ]


@dataclass(frozen=True)
class Sizes:
    """The levels and chunks that blocks are made for, and the memory and workers for the tasks.

    Attributes
    ----------
    levels : tuple of Level
        All levels.
    units : tuple of tuple of int
        The shape of a chunk or shard of each level; ones for a level that is not written.
    pieces : tuple of int
        The shape of the chunks that are read, which should lie in one block each.
    chunk_bytes : int
        The bytes of the largest chunk that is read.
    itemsize : int
        The size of a cell in bytes.
    memory : int
        The bytes that a process may hold.
    threads, processes : int
        The number of threads of a process, and of processes.
    bounds : tuple of (int, int)
        The region of level 0 that is computed, which begins and ends at the border of a cell of
        each level.
    packs : bool
        Whether values can be packed for another pass; Python objects can't.
    """

    levels: tuple[Level, ...]
    units: tuple[Shape, ...]
    pieces: Shape
    chunk_bytes: int
    itemsize: int
    memory: int
    threads: int
    processes: int
    bounds: Bounds
    packs: bool = True

    def grids(self, pieces: Shape) -> tuple[BlockGrid, ...]:
        """Return the blocks of each level, if those that are read lie in blocks of level 0."""
        steps = self._steps(0, pieces)
        while (larger := self._enlarged(steps)) != steps:
            steps = larger
        grids = [BlockGrid(self.levels, steps, self.bounds)]
        for number in range(1, len(self.levels)):
            steps = self._steps(number, steps)
            grids.append(BlockGrid(self.levels, steps, self.bounds))
        return tuple(grids)

    def _steps(self, number: int, inner: Shape) -> Shape:
        """Return the lengths of the blocks of a level, in which whole `inner` lengths lie."""
        level = self.levels[number]
        following = self.levels[min(number + 1, len(self.levels) - 1)]
        axes = zip(
            self.levels[0].shape,
            self.units[number],
            level.factors,
            following.factors,
            inner,
            strict=True,
        )
        return tuple(
            min(lcm(unit * factor, after, least), -(-max(length, 1) // least) * least)
            for length, unit, factor, after, least in axes
        )

    def _enlarged(self, steps: Shape) -> Shape:
        """Return greater lengths of the blocks of level 0, if these are too small."""
        grid = BlockGrid(self.levels, steps, self.bounds)
        limit = min(_BLOCK_BYTES, self.memory // (16 * self.threads))
        few = grid.size < 2 * _TASKS_PER_SLOT * self.threads * self.processes
        if few or 2 * self.block_bytes(grid, 0) > limit:
            return steps
        # The axes that are reduced come first, the last one before the others.
        factors = self.levels[-1].factors
        axes = [axis for axis, count in enumerate(grid.counts) if count > 1]
        axis = min(axes, key=lambda axis: (factors[axis] == 1, steps[axis], -axis))
        return (*steps[:axis], 2 * steps[axis], *steps[axis + 1 :])

    def block_bytes(self, grid: BlockGrid, level: int) -> int:
        """Return the bytes of a block at a level."""
        return prod(grid.shape(level)) * self.itemsize


@dataclass(frozen=True)
class Span:
    """The levels of one pass: each task computes the blocks of `first` in one block of `last`."""

    first: int
    last: int
    #: The bytes that a task holds, and the tasks that a process runs at a time.
    task_bytes: int
    at_once: int


@dataclass(frozen=True)
class Blocks:
    """The blocks of all levels, and the passes over them."""

    grids: tuple[BlockGrid, ...]
    spans: tuple[Span, ...]
    #: Whether each chunk of the source lies in one block, so that it is decoded once.
    is_aligned: bool

    @classmethod
    def plan(cls, sizes: Sizes) -> "Blocks":
        """Return the blocks that fit into memory; chunks of the source are split if they must be.

        Raises
        ------
        MetadataError
            If the memory is too small: the error names the smallest value that works.
        """
        least = 0
        # A chunk that is read in part is decoded before the part is copied.
        split = replace(sizes, pieces=(1,) * len(sizes.pieces), chunk_bytes=2 * sizes.chunk_bytes)
        for each in (sizes, split):
            grids = each.grids(each.pieces)
            top = len(grids) - 1
            passes = [(n, n) for n in range(len(grids))] if sizes.packs else [(0, top)]
            needed = max(_task_bytes(each, grids, first, last) for first, last in passes)
            if needed <= each.memory:
                return cls(grids, tuple(_spans(each, grids, top)), each.pieces == sizes.pieces)
            least = min(needed, least or needed)
        raise MetadataError(
            "max_mem is too small for the chunks or shards of these levels",
            key="max_mem",
            found=sizes.memory,
            expected=f"at least {least} bytes",
        )


def _spans(sizes: Sizes, grids: Sequence[BlockGrid], top: int) -> list[Span]:
    """Return the levels of each pass."""
    spans, first = list[Span](), 0
    while first <= top:
        ends = range(first if sizes.packs else top, top + 1)
        options = [_span(sizes, grids, first, last) for last in ends]
        wanted = _TASKS_PER_SLOT * sizes.threads * sizes.processes

        def parallel(span: Span, wanted: int = wanted) -> tuple[int, int, int]:
            count = min(grids[span.last].size, wanted)
            return span.at_once > 0, min(span.at_once * sizes.processes * 2, count), span.last

        spans.append(max(options, key=parallel))
        first = spans[-1].last + 1
    return spans


def _span(sizes: Sizes, grids: Sequence[BlockGrid], first: int, last: int) -> Span:
    needed = _task_bytes(sizes, grids, first, last)
    return Span(first, last, needed, min(sizes.memory // needed, sizes.threads))


def _task_bytes(sizes: Sizes, grids: Sequence[BlockGrid], first: int, last: int) -> int:
    """Return the bytes that a task holds: a block of each level, and what is encoded or decoded.

    The chunks of a shard are held twice: one by one, and as the shard.
    """
    held = sum(sizes.block_bytes(grids[number], number) for number in range(first, last + 1))
    if last + 1 < len(grids):
        held += sizes.block_bytes(grids[last], last + 1)
    units = zip(sizes.units[first : last + 1], sizes.levels[first : last + 1], strict=True)
    encoded = max(
        prod(min(n, length) for n, length in zip(unit, level.shape, strict=True))
        for unit, level in units
    )
    read = 0 if first else sizes.chunk_bytes
    return held + max(2 * encoded * sizes.itemsize, read) + 2**20
