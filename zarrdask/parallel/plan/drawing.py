"""The drawing of a plan: which units are drawn, and the text for each of them. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from zarrdask.display.picture import Cell, Picture, Slot, Strip
from zarrdask.errors import SelectionError
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.parallel.plan.axis import AxisPlan, Kind, count_kinds, unit_at

#: The largest number of units that are drawn along an axis, and the number that a selection of
#: the units of a longer axis may have.
_MAX_UNITS, _SELECTED_UNITS = 20, 16
#: The largest number of block boundaries that are drawn along an axis.
_MAX_BOUNDARIES = 150

#: The greatest length of the vertical axis, in pixels.
_MAX_HEIGHT = 260

#: How a unit is drawn: the index of its owner, its kind, and the texts in it and about it.
Description = tuple[Index, Kind, str, str]


class Projection(NamedTuple):
    """The part of an array with any number of axes that is drawn."""

    #: No axis, one or two: the last is drawn horizontally, the one before it vertically.
    axes: tuple[int, ...]
    #: The unit along each axis that is not drawn.
    position: Index


def axis_names(names: Sequence[str | None] | None, ndim: int) -> tuple[str, ...]:
    """Return the names of axes for drawings and texts; those without a name have a number.

    >>> axis_names(("time", None), 2), axis_names(None, 1)
    (('time', 'axis 1'), ('axis 0',))
    """
    labels = names or (None,) * ndim
    return tuple(name or f"axis {i}" for i, name in enumerate(labels))


def draw(
    axes: Sequence[AxisPlan],
    names: Sequence[str],
    source_name: str,
    drawn_axes: Sequence[int] | None = None,
) -> Picture:
    """Return a picture of the units of a plan, without a title."""

    def describe(index: Index) -> Description:
        unit = unit_at(axes, names, source_name, index)
        title = f"chunk or shard {index}, task {unit.owner}: {unit.kind}, {unit.why}"
        return unit.owner, unit.kind, ", ".join(map(str, unit.owner)), title

    legend = tuple(count_kinds(axes).labels(source_name))
    return replace(draw_units(axes, names, describe, drawn_axes), legend=legend)


def draw_units(
    axes: Sequence[AxisPlan],
    names: Sequence[str],
    describe: Callable[[Index], Description | None],
    drawn_axes: Sequence[int] | None = None,
) -> Picture:
    """Return a picture as `draw`, without a legend; None describes units that are left blank."""
    projection = choose(axes, drawn_axes)
    strips = [strip(axes[i], names[i]) for i in projection.axes]
    *above, across = strips or [Strip("", (Slot(0, 1, 0),), (), (0, 1))]
    return Picture(
        title="",
        across=across,
        down=replace(above[0], room=_MAX_HEIGHT) if above else None,
        cells=_cells(projection, strips, axes, describe),
        legend=(),
        notes=tuple(_notes(projection, axes, names)),
    )


def _notes(projection: Projection, axes: Sequence[AxisPlan], names: Sequence[str]) -> Iterator[str]:
    """Yield notes about what is not drawn: omitted units, and the position on other axes."""
    for i in projection.axes:
        omitted = axes[i].units.count - len(shown(axes[i]))
        if omitted:
            yield f"{omitted} more chunks or shards along {names[i]}"
    others = [i for i in range(len(axes)) if i not in projection.axes]
    if others:
        where = (f"index {projection.position[i]} along {names[i]}" for i in others)
        yield f"drawn: {', '.join(where)}"


def choose(axes: Sequence[AxisPlan], drawn_axes: Sequence[int] | None) -> Projection:
    """Return the axes to draw, on which blocks and units differ most, and a unit of the others."""
    count = len(axes)
    position = tuple(map(_typical_unit, axes))
    if drawn_axes is None:
        # The last axes win a tie, as in pictures of images.
        order = sorted(
            range(count),
            key=lambda i: (bool(axes[i].merged or axes[i].partial), len(axes[i].written) > 1, i),
            reverse=True,
        )
        return Projection(tuple(sorted(order[:2])), position)
    chosen = tuple(i % count for i in drawn_axes if -count <= i < count)
    if (
        len(chosen) != len(drawn_axes)
        or len({*chosen}) != len(drawn_axes)
        or not 1 <= len(drawn_axes) <= 2
    ):
        raise SelectionError(
            "these axes can't be drawn",
            key="axes",
            found=tuple(drawn_axes),
            expected=f"one or two of {count} axes",
        )
    return Projection(chosen, position)


def _typical_unit(axis: AxisPlan) -> int:
    """Return one of the first units that is whole along an axis; the first if there is none."""
    for unit in axis.written[:_MAX_UNITS]:
        if unit not in axis.partial and not axis.boundaries_in(unit):
            return unit
    return axis.written.start


def strip(axis: AxisPlan, name: str) -> Strip:
    """Return the drawing of an axis."""
    units = shown(axis)
    slots = [Slot(0, axis.units.span(units[0])[0], None)] if units and units[0] else []
    for unit in units:
        begin, end = axis.units.span(unit)
        if slots and slots[-1].end < begin:
            slots.append(Slot(slots[-1].end, begin, None))
        slots.append(Slot(begin, end, unit))
    if not slots or slots[-1].end < axis.units.size:
        slots.append(Slot(slots[-1].end if slots else 0, axis.units.size, None))
    bare = Strip(name, tuple(slots), (), (axis.start, axis.stop))
    ends = {axis.start, axis.stop}
    for low, high in bare.runs:
        edges = axis.block_edges
        within = edges[np.searchsorted(edges, low) : np.searchsorted(edges, high, "right")]
        ends.update(within[:_MAX_BOUNDARIES].tolist())
    sources = dict.fromkeys(pair for run in bare.runs for pair in _sources(axis, *run))
    return replace(bare, sources=tuple(sources), edges=tuple(sorted(ends)))


def _sources(axis: AxisPlan, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of the source blocks that overlap an interval."""
    edges = axis.source_edges
    first = max(int(np.searchsorted(edges, low, "right")) - 1, 0)
    within = edges[first : int(np.searchsorted(edges, high)) + 1]
    # Thinned out, if there are more than can be told apart.
    return pairwise(within[:: max(len(within) // _MAX_BOUNDARIES, 1)].tolist())


def shown(axis: AxisPlan) -> list[int]:
    """Return the units that are drawn: all, the units around written ones, or a selection."""
    if axis.units.count <= _MAX_UNITS:
        return list(range(axis.units.count))
    first, last = (axis.written[0], axis.written[-1]) if axis.written else (0, 0)
    low, high = max(first - 1, 0), min(last + 1, axis.units.count - 1)
    if high - low < _MAX_UNITS:
        return list(range(low, high + 1))
    selected = {low, first, first + 1, last - 1, last, high}
    for unit in _candidates(axis, first):
        if len(selected) >= _SELECTED_UNITS:
            break
        if low <= unit <= high:
            selected.add(unit)
    # A gap of a single unit is filled.
    return sorted(selected | {unit + 1 for unit in selected if unit + 2 in selected})


def _candidates(axis: AxisPlan, first: int) -> Iterator[int]:
    """Yield the units that are most worth drawing: at block boundaries, then the first ones."""
    for edge in axis.block_edges[1 : _MAX_UNITS + 1].tolist():
        if edge < axis.stop:
            number = axis.units.number(edge)
            yield from range(number - 2, number + 2)
    yield from range(first, first + _MAX_UNITS)


def _cells(
    projection: Projection,
    strips: Sequence[Strip],
    axes: Sequence[AxisPlan],
    describe: Callable[[Index], Description | None],
) -> dict[tuple[int, int], Cell]:
    """Return the drawn units that are written."""
    if not all(axis.written for axis in axes):
        return {}
    cells = {}
    numbers = [
        [
            slot.unit
            for slot in strip.slots
            if slot.unit is not None and slot.unit in axes[i].written
        ]
        for strip, i in zip(strips, projection.axes, strict=True)
    ]
    for position in product(*numbers):
        index = list(projection.position)
        for axis, number in zip(projection.axes, position, strict=True):
            index[axis] = number
        description = describe(tuple(index))
        if description is not None:
            owner, kind, label, title = description
            colour = _pair([owner[axis] for axis in projection.axes])
            cells[_pair(position)] = Cell(colour, kind, label, title)
    return cells


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    """Return the numbers along the vertical and the horizontal axis; 0 for a missing axis."""
    down, across = [0, 0, *numbers][-2:]
    return down, across
