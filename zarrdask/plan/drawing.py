"""From a plan to its picture: which units are drawn, and what is said of them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from zarrdask.display.picture import Cell, Slot, Strip
from zarrdask.errors import SelectionError
from zarrdask.grids.base import Index
from zarrdask.plan.axis import AxisPlan, Unit

#: Units that are drawn of an axis: at most, and where some are left out.
_MOST, _SOME = 20, 16
#: Boundaries that are drawn of an axis.
_FINEST = 150


class Drawn(NamedTuple):
    """What is drawn of an array of any number of axes.

    Attributes
    ----------
    axes : tuple of int
        None, one or two: the last is drawn across, the one before it down.
    at : tuple of int
        Which unit along all other axes.
    """

    axes: tuple[int, ...]
    at: Index


def choose(axes: Sequence[AxisPlan], wanted: Sequence[int] | None) -> Drawn:
    """Return what to draw: the two axes along which most happens, and typical units of others.

    Raises
    ------
    SelectionError
        If the axes that are wanted aren't one or two of those that there are.
    """
    count = len(axes)
    if wanted is None:
        # Of equal ones the last: they are what pictures show.
        order = sorted(range(count), key=lambda i: (*_interest(axes[i]), i), reverse=True)
        return Drawn(tuple(sorted(order[:2])), tuple(map(_typical, axes)))
    chosen = tuple(i % count for i in wanted if -count <= i < count)
    if len(chosen) != len(wanted) or len({*chosen}) != len(wanted) or not 1 <= len(wanted) <= 2:
        raise SelectionError(
            "not axes to draw",
            key="axes",
            found=tuple(wanted),
            expected=f"one or two of {count} axes",
        )
    return Drawn(chosen, tuple(map(_typical, axes)))


def _interest(axis: AxisPlan) -> tuple[bool, bool]:
    return bool(axis.merged or axis.partial), len(axis.met) > 1


def _typical(axis: AxisPlan) -> int:
    """Return a unit that is whole along an axis, if one of the first is; else the first."""
    for unit in axis.met[:_MOST]:
        if unit not in axis.partial and not axis.meeting(unit):
            return unit
    return axis.met.start


def strip(axis: AxisPlan, name: str) -> Strip:
    """Return an axis as it is drawn."""
    units = shown(axis)
    slots = [Slot(0, axis.span(units[0])[0], None)] if units and units[0] else []
    for unit in units:
        begin, end = axis.span(unit)
        if slots and slots[-1].end < begin:
            slots.append(Slot(slots[-1].end, begin, None))
        slots.append(Slot(begin, end, unit))
    if not slots or slots[-1].end < axis.size:
        slots.append(Slot(slots[-1].end if slots else 0, axis.size, None))
    bare = Strip(name, tuple(slots), (), (axis.start, axis.stop))
    edges = {int(at) for run in bare.runs for at in _between(axis.block_edges, *run)}
    return Strip(
        name,
        bare.slots,
        tuple(dict.fromkeys(pair for run in bare.runs for pair in _sources(axis, *run))),
        tuple(sorted({axis.start, axis.stop, *edges})),
    )


def _between(edges: np.ndarray, low: int, high: int) -> list[int]:
    found = edges[np.searchsorted(edges, low) : np.searchsorted(edges, high, "right")]
    return [int(at) for at in found[:_FINEST]]


def _sources(axis: AxisPlan, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield where the blocks of the source begin and end that lie in a stretch."""
    edges = axis.source_edges
    first = max(int(np.searchsorted(edges, low, "right")) - 1, 0)
    found = edges[first : int(np.searchsorted(edges, high)) + 1]
    # More than can be drawn: some of them look the same.
    return pairwise(found[:: max(len(found) // _FINEST, 1)].tolist())


def shown(axis: AxisPlan) -> list[int]:
    """Return the units that are drawn: all, or those around what is written, or some of these."""
    if axis.last < _MOST:
        return list(range(axis.last + 1))
    first, last = (axis.met[0], axis.met[-1]) if axis.met else (0, 0)
    low, high = max(first - 1, 0), min(last + 1, axis.last)
    if high - low < _MOST:
        return list(range(low, high + 1))
    found = {low, first, first + 1, last - 1, last, high}
    for unit in _candidates(axis, first):
        if len(found) >= _SOME:
            break
        if low <= unit <= high:
            found.add(unit)
    # Where one alone is left out, it may as well be drawn.
    return sorted(found | {unit + 1 for unit in found if unit + 2 in found})


def _candidates(axis: AxisPlan, first: int) -> Iterator[int]:
    """Yield units that are worth to be drawn: where blocks meet, and then from the first on."""
    for edge in axis.block_edges[1 : _MOST + 1].tolist():
        if edge < axis.stop:
            number = axis.number(edge)
            yield from range(number - 2, number + 2)
    yield from range(first, first + _MOST)


def cells(
    drawn: Drawn, strips: Sequence[Strip], axes: Sequence[AxisPlan], look: Callable[[Index], Unit]
) -> dict[tuple[int, int], Cell]:
    """Return the units of a picture that something is written to."""
    if not all(axis.met for axis in axes):
        return {}
    found = {}
    numbers = [
        [slot.unit for slot in strip.slots if slot.unit is not None and slot.unit in axes[i].met]
        for strip, i in zip(strips, drawn.axes, strict=True)
    ]
    for place in product(*numbers):
        index = list(drawn.at)
        for axis, number in zip(drawn.axes, place, strict=True):
            index[axis] = number
        unit = look(tuple(index))
        owner = tuple(unit.owner[axis] for axis in drawn.axes)
        title = f"unit {unit.index}, task {unit.owner}: {unit.kind}, {unit.why}"
        label = ", ".join(map(str, unit.owner))
        found[_pair(place)] = Cell(_pair(owner), unit.kind, label, title)
    return found


def _pair(found: Sequence[int]) -> tuple[int, int]:
    """Return numbers along the axis down and the axis across; 0 where there is none."""
    down, across = [0, 0, *found][-2:]
    return down, across
