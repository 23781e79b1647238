"""Blocks and stored units along one axis: who writes which, and why. By counting, not by loops."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from zarrdask.grids.base import Axis, Index
from zarrdask.indexing.projection import chunk_start
from zarrdask.plan.align import bounds_of, edges_of

#: How many of the places at which blocks meet are told.
_FEW = 3

Kind = Literal["whole", "merged", "read-modify-write"]


@dataclass(frozen=True)
class Unit:
    """A stored unit, as a plan writes it.

    Attributes
    ----------
    index : tuple of int
        Which one.
    owner : tuple of int
        The block of the plan that writes it: one task, and nobody else.
    kind : {"whole", "merged", "read-modify-write"}
        Whether it comes from one block of the source, from several, or is covered in part, so
        that its owner reads it, changes it and writes it.
    sources : tuple of range
        The blocks of the source that it comes from, along each axis.
    why : str
        What makes it so, in words.
    """

    index: Index
    owner: Index
    kind: Kind
    sources: tuple[range, ...]
    why: str


@dataclass(frozen=True)
class Pieces:
    """What blocks of a source are cut into, so that those of the plan can be made of it.

    Attributes
    ----------
    count : int
        The pieces.
    entire : int
        Those that are a block of the source as it is.
    blocks : int
        The plan's blocks, without those of length 0.
    single : int
        Those of one piece.
    kept : int
        Elements in the longest piece of each block, together: they can stay where they are.
    joined : int
        The length of the longest block of several pieces.
    """

    count: int = 0
    entire: int = 0
    blocks: int = 0
    single: int = 0
    kept: int = 0
    joined: int = 0


@dataclass(frozen=True, eq=False)
class AxisPlan:
    """Blocks and units along one axis.

    Attributes
    ----------
    source : tuple of int
        The lengths of the blocks that there are.
    blocks : tuple of int
        Those of the blocks that are written, one task each.
    units : int or ndarray of int
        The stored units' length, or the boundaries between them.
    size : int
        The length of the stored axis.
    start : int
        Where the blocks begin in it.
    keeps : bool
        Whether what the last unit holds beyond the end of the axis is kept.
    """

    source: tuple[int, ...]
    blocks: tuple[int, ...]
    units: Axis
    size: int
    start: int
    keeps: bool = False

    @cached_property
    def stop(self) -> int:
        """Where the blocks end."""
        return self.start + sum(self.source)

    @cached_property
    def source_ends(self) -> np.ndarray:
        """Where each block of the source begins, and where the last ends."""
        return edges_of(self.source, self.start)

    @cached_property
    def block_ends(self) -> np.ndarray:
        """Where each block of the plan begins, and where the last ends."""
        return edges_of(self.blocks, self.start)

    @cached_property
    def source_edges(self) -> np.ndarray:
        """The same, without blocks of length 0."""
        return np.unique(self.source_ends)

    @cached_property
    def block_edges(self) -> np.ndarray:
        """The same, without blocks of length 0."""
        return np.unique(self.block_ends)

    @cached_property
    def met(self) -> range:
        """The units that something is written to."""
        if self.start == self.stop:
            return range(0)
        return range(self.number(self.start), self.number(self.stop - 1) + 1)

    def number(self, position: int) -> int:
        """Return the unit that an element lies in."""
        if isinstance(self.units, int):
            return position // self.units
        return int(np.searchsorted(self.units, position, "right")) - 1

    @property
    def last(self) -> int:
        """The last unit of the stored axis; -1 if there is none."""
        return self.number(self.size - 1) if self.size else -1

    def span(self, unit: int) -> tuple[int, int]:
        """Return where a unit begins and ends, as far as the array goes."""
        return chunk_start(unit, self.units), min(chunk_start(unit + 1, self.units), self.size)

    def covered(self, unit: int) -> tuple[int, int]:
        """Return what of a unit is written."""
        begin, end = self.span(unit)
        return max(begin, self.start), min(end, self.stop)

    @cached_property
    def partial(self) -> tuple[int, ...]:
        """The units of which a part is written: none, or those at one end or at both."""
        ends = {*self.met[:1], *self.met[-1:]}
        return tuple(
            unit
            for unit in sorted(ends)
            if self.covered(unit) != self.span(unit) or self.hangs_over(unit)
        )

    def hangs_over(self, unit: int) -> bool:
        """Whether a unit goes on beyond the end of the axis, and what it holds there is kept."""
        return self.keeps and chunk_start(unit + 1, self.units) > self.size

    @cached_property
    def merged(self) -> int:
        """How many units that are written in full are made of several blocks of the source."""
        inner = self.source_edges[1:-1]
        low, _ = bounds_of(inner, self.units, self.start, self.stop)
        ends = [self.covered(unit)[0] for unit in self.partial]
        return len(np.setdiff1d(low[low < inner], ends))

    @cached_property
    def unit_length(self) -> int:
        """The length of the longest unit that is written to."""
        if isinstance(self.units, int):
            return self.units if self.met else 0
        return int(np.diff(self.units[self.met.start : self.met.stop + 1]).max(initial=0))

    @property
    def unit_lengths(self) -> tuple[int, ...]:
        """The lengths of the units; of those that are equal, one."""
        if isinstance(self.units, int):
            return (self.units,)
        return tuple(np.diff(self.units).tolist())

    @cached_property
    def pieces(self) -> Pieces:
        """What the source is cut into."""
        if self.start == self.stop:
            return Pieces()
        edges = np.union1d(self.source_edges, self.block_edges)
        lengths = np.diff(edges)
        first = np.searchsorted(edges, self.block_edges)
        several = np.diff(first) > 1
        return Pieces(
            count=len(lengths),
            entire=int((np.diff(np.searchsorted(edges, self.source_edges)) == 1).sum()),
            blocks=len(several),
            single=int((~several).sum()),
            kept=int(np.maximum.reduceat(lengths, first[:-1]).sum()),
            joined=int(np.diff(self.block_edges)[several].max(initial=0)),
        )

    def owner(self, unit: int) -> int:
        """Return the block that writes a unit."""
        begin, _ = self.covered(unit)
        return int(np.searchsorted(self.block_ends, begin, "right")) - 1

    def sources(self, unit: int) -> range:
        """Return the blocks of the source that a unit is made of."""
        begin, end = self.covered(unit)
        first = int(np.searchsorted(self.source_ends, begin, "right")) - 1
        return range(first, int(np.searchsorted(self.source_ends, end)))

    def meeting(self, unit: int) -> str:
        """Return where in a unit blocks of the source meet, in words; "" if nowhere."""
        begin, end = self.covered(unit)
        edges = self.source_edges
        found = edges[(edges > begin) & (edges < end)].tolist()
        return ", ".join([*map(str, found[:_FEW]), *(["..."] if len(found) > _FEW else [])])
