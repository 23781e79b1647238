"""The content of a drawing of a grid: its units, their sizes and their colours. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

#: The greatest and the least length of a unit, and the lengths of an axis and of a gap, in pixels.
_MAX_UNIT, _MIN_UNIT, _MAX_AXIS, _GAP = 56, 16, 440, 34
#: The approximate width of a character in pixels, and the widths of others in wide fonts.
_CHARACTER = 6.2
_WIDTHS = {**dict.fromkeys("0123456789", 7.0), ",": 3.5}


class Slot(NamedTuple):
    """An interval of an axis: a unit, or (if `unit` is None) a gap for units that are omitted."""

    begin: int
    end: int
    unit: int | None


class Cell(NamedTuple):
    """A written unit.

    Attributes
    ----------
    colour : tuple of int
        The number of the owner along the vertical and the horizontal axis.
    kind : {"whole", "merged", "read-modify-write"}
        How the unit is written.
    label : str
        The name of the owner.
    title : str
        The text that is shown when the mouse points at the unit.
    """

    colour: tuple[int, int]
    kind: str
    label: str
    title: str


@dataclass(frozen=True)
class Strip:
    """A drawn axis.

    Attributes
    ----------
    name : str
        The name of the axis.
    slots : tuple of Slot
        Adjacent intervals that cover the axis.
    sources : tuple of (int, int)
        The begin and end of each visible source block.
    edges : tuple of int
        The boundaries of the visible written blocks; always with the first and the last of all.
    room : int
        The greatest length of all units together, in pixels, if they are not very many.
    """

    name: str
    slots: tuple[Slot, ...]
    sources: tuple[tuple[int, int], ...]
    edges: tuple[int, ...]
    room: int = _MAX_AXIS

    @cached_property
    def offsets(self) -> tuple[float, ...]:
        """The begin of each slot, and the end of the last one, in pixels."""
        lengths = [slot.end - slot.begin for slot in self.slots if slot.unit is not None]
        longest = min(max(self.room / max(len(lengths), 1), _MIN_UNIT), _MAX_UNIT)
        scale = longest / max([*lengths, 1])
        offsets = [0.0]
        for begin, end, unit in self.slots:
            width = _GAP if unit is None else max((end - begin) * scale, _MIN_UNIT)
            offsets.append(offsets[-1] + width)
        return tuple(offsets)

    def at(self, position: int) -> float:
        """Return the offset of a position from the beginning of the axis, in pixels."""
        number = max(bisect_right(self.slots, position, key=lambda slot: slot.begin) - 1, 0)
        begin, end, _ = self.slots[number]
        low, high = self.offsets[number : number + 2]
        return low + (high - low) * min((position - begin) / max(end - begin, 1), 1)

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The begin and end of each interval between gaps."""
        groups = groupby(self.slots, lambda slot: slot.unit is not None)
        runs = (list(slots) for is_drawn, slots in groups if is_drawn)
        return tuple((slots[0].begin, slots[-1].end) for slots in runs)

    def shown(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the visible parts of an interval."""
        for low, high in self.runs:
            if max(low, begin) < min(high, end):
                yield max(low, begin), min(high, end)

    def is_shown(self, position: int) -> bool:
        """Whether a position is visible."""
        return any(low <= position <= high for low, high in self.runs)

    def ticks(self, *, vertical: bool) -> list[int]:
        """Return the boundaries between units that have room for their number."""
        ticks: list[int] = []
        drawn = {edge for slot in self.slots if slot.unit is not None for edge in slot[:2]}
        for position in sorted(drawn):
            room = 14 if vertical else text_width(str(position)) + 8
            if not ticks or self.at(position) - self.at(ticks[-1]) >= room:
                ticks.append(position)
        return ticks


@dataclass(frozen=True)
class Picture:
    """The stored units of an array along a horizontal axis, and a vertical one if there are two.

    Attributes
    ----------
    title : str
        The heading.
    across : Strip
        The horizontal axis.
    down : Strip or None
        The vertical axis.
    cells : mapping of (int, int) to Cell
        The written units, by their numbers along the vertical and the horizontal axis.
    legend : tuple of (str, str)
        A kind of unit, or a kind of line (``"source"``, ``"block"``), and its meaning.
    notes : tuple of str
        Lines of text below the legend.
    """

    title: str
    across: Strip
    down: Strip | None
    cells: Mapping[tuple[int, int], Cell]
    legend: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def text_width(text: str) -> float:
    """Return the approximate width of a text in pixels."""
    return sum(_WIDTHS.get(character, _CHARACTER) for character in text)
