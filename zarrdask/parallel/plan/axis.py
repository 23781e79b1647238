"""Blocks and stored units along one axis, compared by vectorised counting. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from zarrdask.errors import SelectionError
from zarrdask.formats.grids.axis import Axis, edges_of
from zarrdask.formats.grids.chunk_grid import Index


@dataclass(frozen=True)
class Pieces:
    """The pieces along an axis that source blocks are split into and planned blocks joined from."""

    #: The number of pieces.
    count: int = 0
    #: The number of pieces that are an entire source block.
    entire: int = 0
    #: The number of planned blocks, without empty ones.
    blocks: int = 0
    #: The number of planned blocks that are a single piece.
    single: int = 0
    #: The total length of the longest piece of each planned block, which need not move.
    kept: int = 0
    #: The length of the longest planned block that is joined from several pieces.
    joined: int = 0


@dataclass(frozen=True, eq=False)
class AxisPlan:
    """Blocks and units along one axis."""

    #: The lengths of the source blocks.
    source: tuple[int, ...]
    #: The lengths of the planned blocks, which are written by one task each.
    blocks: tuple[int, ...]
    #: The stored units.
    units: Axis
    #: The position of the first block in the stored axis.
    start: int
    #: Whether elements that the last unit holds beyond the end of the axis are kept.
    keeps: bool = False

    @cached_property
    def stop(self) -> int:
        """The end of the last block."""
        return self.start + sum(self.source)

    @cached_property
    def source_ends(self) -> np.ndarray:
        """The begin of each source block, and the end of the last one."""
        return edges_of(self.source, self.start)

    @cached_property
    def block_ends(self) -> np.ndarray:
        """The begin of each planned block, and the end of the last one."""
        return edges_of(self.blocks, self.start)

    @cached_property
    def source_edges(self) -> np.ndarray:
        """The boundaries of the source blocks, without empty blocks."""
        return np.unique(self.source_ends)

    @cached_property
    def block_edges(self) -> np.ndarray:
        """The boundaries of the planned blocks, without empty blocks."""
        return np.unique(self.block_ends)

    @cached_property
    def written(self) -> range:
        """The units that are written, as a whole or in part."""
        return self.units.numbers(slice(self.start, self.stop))

    def covered(self, unit: int) -> tuple[int, int]:
        """Return the begin and end of the written part of a unit."""
        begin, end = self.units.span(unit)
        return max(begin, self.start), min(end, self.stop)

    @cached_property
    def partial(self) -> tuple[int, ...]:
        """The units that are written in part: at most one at each end."""
        ends = {*self.written[:1], *self.written[-1:]}
        return tuple(
            unit
            for unit in sorted(ends)
            if self.covered(unit) != self.units.span(unit) or self.hangs_over(unit)
        )

    def hangs_over(self, unit: int) -> bool:
        """Whether a unit extends beyond the end of the axis, and its elements there are kept."""
        return self.keeps and self.units.start(unit + 1) > self.units.size

    @cached_property
    def merged(self) -> int:
        """The number of completely written units that several source blocks overlap."""
        inner = self.source_edges[1:-1]
        low = np.maximum(self.units.start(self.units.number(inner)), self.start)
        ends = [self.covered(unit)[0] for unit in self.partial]
        return len(np.setdiff1d(low[low < inner], ends))

    @cached_property
    def unit_length(self) -> int:
        """The length of the longest written unit."""
        first, end = self.units.start(self.written.start), self.units.start(self.written.stop)
        return self.units.part(slice(first, end, 1)).longest if self.written else 0

    @cached_property
    def pieces(self) -> Pieces:
        """The pieces of source blocks that the planned blocks consist of."""
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
        """Return the number of the planned block that writes a unit."""
        begin, _ = self.covered(unit)
        return int(np.searchsorted(self.block_ends, begin, "right")) - 1

    def sources(self, unit: int) -> range:
        """Return the numbers of the source blocks that overlap a unit."""
        begin, end = self.covered(unit)
        first = int(np.searchsorted(self.source_ends, begin, "right")) - 1
        return range(first, int(np.searchsorted(self.source_ends, end)))

    def boundaries_in(self, unit: int) -> list[int]:
        """Return the boundaries of source blocks within the written part of a unit."""
        begin, end = self.covered(unit)
        edges = self.source_edges
        within: list[int] = edges[(edges > begin) & (edges < end)].tolist()
        return within


# --------------------------------------------------------------------------------------------
# Units

#: The largest number of runs of equal lengths that a text lists for an axis.
_MAX_RUNS = 4
#: The largest number of block boundaries within a unit that a text lists.
_MAX_BOUNDARIES = 3

Kind = Literal["whole", "merged", "read-modify-write"]


@dataclass(frozen=True)
class Unit:
    """A stored unit, as a plan writes it.

    Attributes
    ----------
    index : tuple of int
        The index of the unit in the grid of the stored array.
    owner : tuple of int
        The index of the planned block that writes the unit, in one task.
    kind : {"whole", "merged", "read-modify-write"}
        Whether the unit is covered by one source block, by several, or only in part, so that its
        owner reads it, changes it and writes it back.
    sources : tuple of range
        The source blocks that overlap the unit, along each axis.
    why : str
        The reason for the kind.
    """

    index: Index
    owner: Index
    kind: Kind
    sources: tuple[range, ...]
    why: str


class KindCounts(NamedTuple):
    """The number of written units of each kind."""

    whole: int
    merged: int
    read_modify_write: int

    def labels(self, source_name: str) -> list[tuple[Kind, str]]:
        """Return the kinds that occur, each with its number and what it means.

        >>> KindCounts(1, 2, 0).labels("Dask block")
        [('whole', '1 whole'), ('merged', '2 merged from several Dask blocks')]
        """
        labels: list[tuple[Kind, str]] = []
        if self.whole or not sum(self):
            labels.append(("whole", f"{self.whole} whole"))
        if self.merged:
            labels.append(("merged", f"{self.merged} merged from several {source_name}s"))
        if self.read_modify_write:
            text = f"{self.read_modify_write} written in part (read, changed, written back)"
            labels.append(("read-modify-write", text))
        return labels


def count_kinds(axes: Sequence[AxisPlan]) -> KindCounts:
    """Return the number of units of each kind, for an array with these axes."""
    total = prod(len(axis.written) for axis in axes)
    complete = prod(len(axis.written) - len(axis.partial) for axis in axes)
    whole = prod(len(axis.written) - len(axis.partial) - axis.merged for axis in axes)
    return KindCounts(whole, complete - whole, total - complete)


def unit_at(axes: Sequence[AxisPlan], names: Sequence[str], source_name: str, index: Index) -> Unit:
    """Return a stored unit by its index in the grid of the stored array."""
    if len(index) != len(axes) or not all(
        number in axis.written for number, axis in zip(index, axes, strict=True)
    ):
        written = " x ".join(f"{a.written.start}..{a.written.stop - 1}" for a in axes if a.written)
        raise SelectionError(
            "nothing is written to this chunk or shard",
            key="index",
            found=index,
            expected=written or "none, as the array to be written is empty",
        )
    pairs = list(zip(axes, index, strict=True))
    owner = tuple(axis.owner(number) for axis, number in pairs)
    sources = tuple(axis.sources(number) for axis, number in pairs)
    parts, boundaries = [], []
    for name, (axis, number) in zip(names, pairs, strict=True):
        if number in axis.partial:
            parts.append(f"{describe_part(axis, number)} along {name}")
        if positions := axis.boundaries_in(number):
            texts = [*map(str, positions[:_MAX_BOUNDARIES])]
            if len(positions) > _MAX_BOUNDARIES:
                texts.append("...")
            boundaries.append(f"along {name} at {', '.join(texts)}")
    reasons = []
    if parts:
        reasons.append(f"it is written in part: {', '.join(parts)}")
    if boundaries:
        reasons.append(f"{source_name}s meet in it {', '.join(boundaries)}")
    kind: Kind = "read-modify-write" if parts else "merged" if boundaries else "whole"
    why = "; ".join(reasons) or f"it lies in one {source_name}"
    return Unit(index, owner, kind, sources, why)


def describe_part(axis: AxisPlan, unit: int, name: str = "") -> str:
    """Return a text for the part of a unit that is written along an axis."""
    (begin, end), (low, high) = axis.covered(unit), axis.units.span(unit)
    beyond = " (extends beyond the array)" if axis.hangs_over(unit) else ""
    return f"{begin}:{end} of {name}{low}:{high}{beyond}"


def describe_change(axis: AxisPlan) -> str:
    """Return a text for the change of blocks along an axis."""
    text = describe_lengths(axis.source)
    if axis.blocks == axis.source:
        text += " unchanged"
    else:
        text += f" become {describe_lengths(axis.blocks)}"
    for unit in axis.partial:
        text += f"; {describe_part(axis, unit, f'chunk or shard {unit}, ')}"
    return text


def describe_lengths(lengths: Sequence[int]) -> str:
    """Return a text for the lengths of blocks or units along an axis.

    >>> describe_lengths((64, 64, 22)), describe_lengths((1, 2, 3, 4, 5, 6, 7))
    ('2 x 64, 22', '1, 2, 3, ..., 7')
    """
    runs = [(length, sum(1 for _ in group)) for length, group in groupby(lengths)]
    texts = [f"{count} x {length}" if count > 1 else str(length) for length, count in runs]
    if len(texts) > _MAX_RUNS:
        texts = [*texts[: _MAX_RUNS - 1], "...", texts[-1]]
    return ", ".join(texts)
