"""Which task writes which stored unit: the plan of a write, to be looked at. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from operator import index as as_integer
from typing import Any, Protocol

import numpy as np

from zarrdask.display.picture import Picture, Slot, Strip
from zarrdask.display.svg import html, svg
from zarrdask.display.words import byte_size, counted
from zarrdask.errors import SelectionError
from zarrdask.grids.base import Axis, Index, Shape
from zarrdask.indexing.selection import Region
from zarrdask.plan import drawing
from zarrdask.plan.align import Chunks, shorten, snap
from zarrdask.plan.axis import AxisPlan, Kind, Unit

#: How many runs of lengths are told of an axis.
_FEW = 4


class Target(Protocol):
    """What a plan has to know of a stored array; `ArrayMetadata` does."""

    @property
    def shape(self) -> Shape:
        """In elements."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""

    @property
    def write_axes(self) -> tuple[Axis, ...]:
        """The units that must have one writer."""

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """One an axis."""


@dataclass(frozen=True, eq=False)
class WritePlan:
    """How the blocks of a Dask array become stored units: which task writes which, and why.

    A unit is what one stored object holds: a chunk, or a shard. (Of the v3 draft's sharding
    transformer: all chunks that share an object.) Each has exactly one owner.

    Attributes
    ----------
    axes : tuple of AxisPlan
        Along each axis; the axes are independent.
    dtype, stored_dtype : numpy.dtype
        Of the Dask array, and of the stored one.
    names : tuple of str
        Of the axes.
    blocks_are : str
        What the blocks of the source are called.

    See Also
    --------
    zarrdask.plan_write : Makes one.
    """

    axes: tuple[AxisPlan, ...]
    dtype: np.dtype[Any]
    stored_dtype: np.dtype[Any]
    names: tuple[str, ...]
    blocks_are: str = "Dask block"

    @property
    def shape(self) -> Shape:
        """What is written, in elements."""
        return tuple(axis.stop - axis.start for axis in self.axes)

    @property
    def region(self) -> Region:
        """Where to, in the stored array."""
        return tuple(slice(axis.start, axis.stop, 1) for axis in self.axes)

    @property
    def source(self) -> Chunks:
        """The lengths of the Dask array's blocks."""
        return tuple(axis.source for axis in self.axes)

    @property
    def blocks(self) -> Chunks:
        """The lengths of the blocks that are written, one task each."""
        return tuple(axis.blocks for axis in self.axes)

    @property
    def nbytes(self) -> int:
        """The size of the Dask array."""
        return prod(self.shape) * self.dtype.itemsize

    # ----------------------------------------------------------------------------------------
    # Units

    @property
    def units(self) -> int:
        """How many stored units are written."""
        return prod(len(axis.met) for axis in self.axes)

    @property
    def whole(self) -> int:
        """How many of them come from one block of the source."""
        return prod(len(axis.met) - len(axis.partial) - axis.merged for axis in self.axes)

    @property
    def merged(self) -> int:
        """How many are merged from several blocks of the source."""
        return prod(len(axis.met) - len(axis.partial) for axis in self.axes) - self.whole

    @property
    def read_modify_write(self) -> int:
        """How many are covered in part: read, changed and written by their owner."""
        return self.units - self.whole - self.merged

    def owner(self, index: Sequence[int] | int) -> Index:
        """Return the block of the plan that writes a stored unit.

        Raises
        ------
        SelectionError
            If nothing is written to such a unit.
        """
        return self.unit(index).owner

    def unit(self, index: Sequence[int] | int) -> Unit:
        """Return what becomes of a stored unit.

        Parameters
        ----------
        index : sequence of int
            Which one: in the stored array's grid, not in the region.

        Raises
        ------
        SelectionError
            If nothing is written to such a unit.
        """
        found = tuple(map(as_integer, index if isinstance(index, Sequence) else [index]))
        if len(found) != len(self.axes) or not all(
            number in axis.met for number, axis in zip(found, self.axes, strict=True)
        ):
            met = " x ".join(f"{a.met.start}..{a.met.stop - 1}" for a in self.axes if a.met)
            raise SelectionError(
                "nothing is written to this unit", key="index", found=found, expected=met or "none"
            )
        pairs = list(zip(self.axes, found, strict=True))
        sources = tuple(axis.sources(number) for axis, number in pairs)
        kind, why = self._kind(found)
        return Unit(found, tuple(axis.owner(number) for axis, number in pairs), kind, sources, why)

    def _kind(self, index: Index) -> tuple[Kind, str]:
        named = list(zip(self.names, self.axes, index, strict=True))
        parts, meets = [], []
        for name, axis, number in named:
            if number in axis.partial:
                parts.append(f"{_part(axis, number)} along {name}")
            if where := axis.meeting(number):
                meets.append(f"along {name} at {where}")
        met = f"{self.blocks_are}s meet in it {', '.join(meets)}"
        if parts:
            only = f"only a part of it is written: {', '.join(parts)}"
            return "read-modify-write", f"{only}; {met}" if meets else only
        return ("merged", met) if meets else ("whole", f"it lies in one {self.blocks_are}")

    # ----------------------------------------------------------------------------------------
    # What it costs

    @property
    def tasks(self) -> int:
        """How many tasks write: one a block."""
        return prod(map(len, self.blocks))

    @property
    def extra_tasks(self) -> int:
        """How many tasks cut and join blocks before: none if the boundaries lie right already.

        One for each piece of a block, and one for each block of several pieces. They are fewer
        where Dask joins many pieces in several steps, or does some of it together with others.
        """
        pieces = [axis.pieces for axis in self.axes]
        cut = prod(p.count for p in pieces) - prod(p.entire for p in pieces)
        return cut + prod(p.blocks for p in pieces) - prod(p.single for p in pieces)

    @property
    def moved(self) -> int:
        """How many bytes go from a block of the source to another one's place.

        That is, of each block that is written, all but the part that it has most of from one
        block of the source. No other choice of boundaries between units moves less.
        """
        kept = prod(axis.pieces.kept for axis in self.axes)
        return (prod(self.shape) - kept) * self.dtype.itemsize

    @property
    def block_bytes(self) -> int:
        """The size of the largest block that is written."""
        return prod(map(max, self.blocks)) * self.dtype.itemsize

    @property
    def unit_bytes(self) -> int:
        """The size of the largest unit that is written to, decoded."""
        return prod(axis.unit_length for axis in self.axes) * self.stored_dtype.itemsize

    @property
    def peak(self) -> int:
        """The most bytes that a task holds.

        It holds its block; if it joins that from pieces, also these, which are as large together;
        if the types differ, also the block as it is stored. To write, it holds three times a unit:
        as it is put together, before a codec and after it. Where units are read back, four times.
        What a codec uses within, and values that lie outside of the array (text, objects), are
        not counted.
        """
        longest = list(map(max, self.blocks))
        # A block of which one axis is joined of pieces; the others are as long as any is.
        joined = max(
            (
                prod(longest[:at]) * axis.pieces.joined * prod(longest[at + 1 :])
                for at, axis in enumerate(self.axes)
            ),
            default=0,
        )
        values = max(prod(longest), 2 * joined) * self.dtype.itemsize
        if self.dtype != self.stored_dtype:
            values += prod(longest) * self.stored_dtype.itemsize
        copies = 4 if self.read_modify_write else 3
        return values + copies * self.unit_bytes

    # ----------------------------------------------------------------------------------------
    # To look at

    def svg(self, axes: Sequence[int] | None = None) -> str:
        """Return a drawing: units, in the colours of their owners, and the blocks of the source.

        Parameters
        ----------
        axes : sequence of int, optional
            One or two, to be drawn down and across. By default the two along which most happens.

        Raises
        ------
        SelectionError
            If they aren't one or two of the axes.
        """
        return svg(self.picture(axes))

    def _repr_html_(self) -> str:
        return html(self.picture())

    def __repr__(self) -> str:
        kinds = f"{self.whole} whole, {self.merged} merged, {self.read_modify_write} partial"
        return f"<zarrdask.WritePlan {self.shape}, {self.tasks} tasks, {self.units} units: {kinds}>"

    def __str__(self) -> str:
        facts = [
            ("array", self._what()),
            ("units", f"{self.units}: {', '.join(text for _, text in self._kinds())}"),
            ("tasks", self._tasks()),
            ("moved", self._moved()),
            ("memory", self._memory()),
            *((name, _changes(axis)) for name, axis in zip(self.names, self.axes, strict=True)),
        ]
        wide = max(len(name) for name, _ in facts)
        return "\n".join(f"{name:<{wide}}  {text}" for name, text in facts)

    def picture(self, axes: Sequence[int] | None = None) -> Picture:
        """Return what `svg` draws."""
        drawn = drawing.choose(self.axes, axes)
        strips = [drawing.strip(self.axes[i], self.names[i]) for i in drawn.axes]
        flat = Strip("", (Slot(0, 1, 0),), (), (0, 1))
        *above, across = strips or [flat]
        lines = (("block", "blocks that are written, one task each"), ("source", "Dask blocks"))
        return Picture(
            title=self._what(),
            across=across,
            down=above[0] if above else None,
            cells=drawing.cells(drawn, strips, self.axes, self.unit),
            legend=(*self._kinds(), *lines),
            notes=tuple(self._notes(drawn)),
        )

    def _notes(self, drawn: drawing.Drawn) -> Iterator[str]:
        yield self._tasks()
        yield self._moved()
        yield self._memory()
        for i in drawn.axes:
            left = self.axes[i].last + 1 - len(drawing.shown(self.axes[i]))
            if left:
                yield f"{left} more units along {self.names[i]}"
        others = [i for i in range(len(self.axes)) if i not in drawn.axes]
        if others:
            yield ", ".join(f"unit {drawn.at[i]} along {self.names[i]}" for i in others)

    def _what(self) -> str:
        types = " as ".join(dict.fromkeys(map(str, (self.dtype, self.stored_dtype))))
        stored = tuple(axis.size for axis in self.axes)
        place = "" if stored == self.shape else f" into {stored}"
        units = " x ".join(_lengths(axis.unit_lengths) for axis in self.axes)
        return f"{self.shape} {types}{place}, in units of {units or 1}"

    def _kinds(self) -> Iterator[tuple[str, str]]:
        """Yield the kinds of units that there are, and how many."""
        if self.whole or not self.units:
            yield "whole", f"{self.whole} whole"
        if self.merged:
            yield "merged", f"{self.merged} merged from several Dask blocks"
        if self.read_modify_write:
            yield "read-modify-write", f"{self.read_modify_write} in part: read, changed, written"

    def _tasks(self) -> str:
        extra = self.extra_tasks
        before = f"{extra} more cut and join blocks before" if extra else "blocks stay as they are"
        return f"{counted(self.tasks, 'task')} write; {before}"

    def _moved(self) -> str:
        return f"{byte_size(self.moved)} of {byte_size(self.nbytes)} move to another block"

    def _memory(self) -> str:
        sizes = f"block {byte_size(self.block_bytes)}, unit {byte_size(self.unit_bytes)}"
        return f"at most {byte_size(self.peak)} a task ({sizes})"


def _changes(axis: AxisPlan) -> str:
    """Return in words what becomes of the blocks along an axis."""
    text = _lengths(axis.source)
    text += " stay" if axis.blocks == axis.source else f" become {_lengths(axis.blocks)}"
    for unit in axis.partial:
        text += f"; {_part(axis, unit, f'unit {unit}, ').rstrip(',')}"
    return text


def _part(axis: AxisPlan, unit: int, name: str = "") -> str:
    """Return in words what of a unit is written."""
    (begin, end), (low, high) = axis.covered(unit), axis.span(unit)
    beyond = ", which goes on beyond the array," if axis.hangs_over(unit) else ""
    return f"{begin}:{end} of {name}{low}:{high}{beyond}"


def _lengths(lengths: Sequence[int]) -> str:
    """Return lengths in words.

    >>> _lengths((64, 64, 22)), _lengths((1, 2, 3, 4, 5, 6, 7))
    ('2 x 64, 22', '1, 2, 3, ..., 7')
    """
    runs = [(n, sum(1 for _ in group)) for n, group in groupby(lengths)]
    texts = [f"{count} x {n}" if count > 1 else str(n) for n, count in runs]
    return ", ".join(texts if len(texts) <= _FEW else [*texts[: _FEW - 1], "...", texts[-1]])


def plan_writes(
    chunks: Chunks,
    dtype: np.dtype[Any],
    target: Target,
    region: Region,
    *,
    block_size: int,
    keeps: bool = False,
) -> WritePlan:
    """Return how blocks become stored units.

    Parameters
    ----------
    chunks : tuple of tuple of int
        The lengths of the blocks along each axis.
    dtype : numpy.dtype
        Of the blocks.
    target : Target
        The stored array: its metadata.
    region : tuple of slice
        Where in it, without steps; as long as the blocks are together.
    block_size : int
        In bytes. Where blocks have to be joined to many times their size, because a unit has
        more of an axis than they, they are cut between units along the others: down to this, or
        to twice the largest block that there was. A block of one unit may be larger.
    keeps : bool
        Whether what units hold beyond the end of the array is kept, as in an array that is there:
        then those are read, changed and written. Of a new array it becomes the fill value.

    Notes
    -----
    Along each axis the boundaries of blocks are moved to those of units (see
    `zarrdask.plan.align.snap`). Blocks that lie right already stay as they are.
    """
    units, start = target.write_axes, tuple(pick.start for pick in region)
    blocks = tuple(map(snap, chunks, start, units))
    if blocks != chunks:
        largest = prod(map(max, chunks))
        room = max(block_size // max(dtype.itemsize, 1), 2 * largest)
        blocks = shorten(blocks, start, units, room)
    names = target.dimension_names or (None,) * len(units)
    return WritePlan(
        tuple(map(AxisPlan, chunks, blocks, units, target.shape, start, (keeps,) * len(units))),
        dtype,
        target.dtype,
        tuple(name or f"axis {i}" for i, name in enumerate(names)),
    )
