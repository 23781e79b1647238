"""What a drawing of a grid shows: which units, how wide, in which colours. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

#: In pixels: a unit at most, at least, and the units of an axis together; and a gap.
_UNIT, _LEAST, _ALL, _GAP = 56, 16, 440, 34
#: A character, about.
_LETTER = 6.2


class Slot(NamedTuple):
    """A part of an axis: a unit, or (if `unit` is None) units that are not drawn."""

    begin: int
    end: int
    unit: int | None


class Cell(NamedTuple):
    """A unit that is written.

    Attributes
    ----------
    colour : tuple of int
        What tells its owner from those around, along the axis down and the axis across.
    kind : {"whole", "merged", "read-modify-write"}
    label : str
        Its owner's name.
    title : str
        What is said when it is pointed at.
    """

    colour: tuple[int, int]
    kind: str
    label: str
    title: str


@dataclass(frozen=True)
class Strip:
    """An axis, as it is drawn.

    Attributes
    ----------
    name : str
    slots : tuple of Slot
        Side by side.
    sources : tuple of (int, int)
        Where the blocks of the source begin and end that can be seen.
    edges : tuple of int
        Where the blocks that are written begin and end; the first and the last of all, always.
    """

    name: str
    slots: tuple[Slot, ...]
    sources: tuple[tuple[int, int], ...]
    edges: tuple[int, ...]

    @cached_property
    def places(self) -> tuple[float, ...]:
        """Where slots begin, and where the last one ends, in pixels."""
        lengths = [slot.end - slot.begin for slot in self.slots if slot.unit is not None]
        unit = min(max(_ALL / max(len(lengths), 1), _LEAST), _UNIT)
        scale = unit / max([*lengths, 1])
        found = [0.0]
        for begin, end, number in self.slots:
            width = _GAP if number is None else max((end - begin) * scale, _LEAST)
            found.append(found[-1] + width)
        return tuple(found)

    def at(self, position: int) -> float:
        """Return where a position lies, in pixels."""
        number = max(bisect_right(self.slots, position, key=lambda slot: slot.begin) - 1, 0)
        begin, end, _ = self.slots[number]
        low, high = self.places[number : number + 2]
        return low + (high - low) * min((position - begin) / max(end - begin, 1), 1)

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The stretches that are drawn, between gaps: positions."""
        found = []
        for drawn, group in groupby(self.slots, lambda slot: slot.unit is not None):
            slots = list(group)
            if drawn:
                found.append((slots[0].begin, slots[-1].end))
        return tuple(found)

    def shown(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what is drawn of a stretch."""
        for low, high in self.runs:
            if max(low, begin) < min(high, end):
                yield max(low, begin), min(high, end)

    def inside(self, position: int) -> bool:
        """Whether a position is drawn."""
        return any(low <= position <= high for low, high in self.runs)

    def ticks(self, *, upright: bool) -> list[int]:
        """Return the boundaries between units that have room for their number."""
        found: list[int] = []
        drawn = {at for slot in self.slots if slot.unit is not None for at in slot[:2]}
        for position in sorted(drawn):
            room = 14 if upright else wide(str(position)) + 8
            if not found or self.at(position) - self.at(found[-1]) >= room:
                found.append(position)
        return found


@dataclass(frozen=True)
class Picture:
    """Stored units of an array: one axis across, and one down if there are two.

    Attributes
    ----------
    title : str
    across : Strip
    down : Strip or None
    cells : mapping of (int, int) to Cell
        By the numbers of the units, down and across; what is not written has none.
    legend : tuple of (str, str)
        Kinds of cells, or of lines (``"source"``, ``"block"``); and what they are.
    notes : tuple of str
        What else is to be said.
    """

    title: str
    across: Strip
    down: Strip | None
    cells: Mapping[tuple[int, int], Cell]
    legend: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def wide(text: str) -> float:
    """Return how wide a text is, about, in pixels."""
    return len(text) * _LETTER
