"""The stored units that a plan writes: how many there are of each kind, and why. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Literal, NamedTuple

from zarrdask.errors import SelectionError
from zarrdask.grids.base import Index
from zarrdask.plan.axis import AxisPlan

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
            "nothing is written to this unit",
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
    (begin, end), (low, high) = axis.covered(unit), axis.span(unit)
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
        text += f"; {describe_part(axis, unit, f'unit {unit}, ')}"
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
