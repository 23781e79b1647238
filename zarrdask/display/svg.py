"""Drawings as SVG text: a grid of stored units, who writes them, and the blocks they come from.

Colours are half transparent, and text is of a grey that can be read on white and on black.
"""

from collections.abc import Callable, Iterator
from html import escape
from itertools import product
from math import ceil
from zlib import crc32

from zarrdask.display.picture import Cell, Picture, Slot, Strip, wide

#: In pixels: left, top, right, bottom.
Box = tuple[float, float, float, float]

#: Of owners, in rows and columns: neighbours differ, and the colour-blind can tell them apart.
_COLOURS = (("#56b4e9", "#e69f00", "#009e73"), ("#cc79a7", "#f0e442", "#0072b2"))

_GREY = "#7d8590"

#: In pixels: how thick a ruler is, how far it stands from the grid, and what is too narrow.
_RULER, _SPACE, _FINE = 16, 5, 3

_MIDDLE = ' text-anchor="middle"'


def html(picture: Picture) -> str:
    """Return a picture to stand in a page: its text has the colour of the page's."""
    return f'<div style="overflow-x: auto">{_document(picture, "")}</div>'


def svg(picture: Picture) -> str:
    """Return a picture as a document of its own."""
    return _document(picture, f' color="{_GREY}"')


def _document(picture: Picture, colour: str) -> str:
    frame = _Frame(picture)
    parts = [
        *_rulers(frame),
        *_cells(frame),
        *_lines(frame),
        *_labels(frame),
        *_ticks(frame),
        *_gaps(frame),
        *_words(frame),
    ]
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{frame.width}" height="{frame.height}" '
        f'viewBox="0 0 {frame.width} {frame.height}" fill="currentColor"{colour} '
        'font-family="system-ui, sans-serif" font-size="11" role="img" '
        f'aria-label="{_safe(picture.title)}">\n'
        f"<defs>{''.join(_pattern(frame, kind) for kind in _HATCHES)}</defs>\n"
        f"{body}\n</svg>\n"
    )


#: The sizes of patterns, and their lines.
_HATCHES = {
    "merged": (8, "M-1 9L9 -1M-1 1L1 -1M7 9L9 7"),
    "read-modify-write": (5, "M0 0L5 5M5 0L0 5"),
}


def _pattern(frame: "_Frame", kind: str) -> str:
    step, path = _HATCHES[kind]
    # One of the two can be seen on any colour.
    lines = "".join(
        f'<path d="{path}" transform="translate({shift})" stroke="{colour}" stroke-opacity=".4"/>'
        for colour, shift in (("#000", 0), ("#fff", 1))
    )
    return (
        f'<pattern id="{frame.name}-{kind}" width="{step}" height="{step}" '
        f'patternUnits="userSpaceOnUse">{lines}</pattern>'
    )


class _Frame:
    """Where things go, in pixels."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        # Pictures may share a page: each has patterns of its own.
        self.name = f"z{crc32(repr(picture).encode(errors='replace')):08x}"
        self.flat = picture.down is None
        self.across = picture.across
        self.down = picture.down or Strip("", (Slot(0, 1, 0),), (), (0, 1))
        self.left = 8 if self.flat else 2 * _RULER + _SPACE
        self.top = 26 + 2 * _RULER + _SPACE
        self.right = self.left + self.across.places[-1]
        self.bottom = self.top + self.down.places[-1]
        # Words stand beside two axes, and below one.
        ticks = max([wide(str(at)) for at in self.down.ticks(upright=True)], default=0)
        self.words = (8, self.bottom + 34) if self.flat else (self.right + ticks + 28, self.top)
        texts = [28 + wide(text) for _, text in picture.legend] + [*map(wide, picture.notes)]
        below = 20 * len(picture.legend) + 16 * len(picture.notes)
        widest = self.words[0] + max(texts, default=0)
        self.width = ceil(max(widest, self.right + 20, 1.3 * wide(picture.title)) + 2)
        self.height = ceil(max(self.words[1] + below + 6, self.bottom + 18) + 4)

    def x(self, position: int) -> float:
        return self.left + self.across.at(position)

    def y(self, position: int) -> float:
        return self.top + self.down.at(position)

    def hatch(self, kind: str) -> str:
        """Return how a kind of units is filled, over its colour."""
        return f'fill="url(#{self.name}-{kind})"' if kind in _HATCHES else 'fill-opacity="0"'

    def box(self, first: tuple[Slot, Slot], last: tuple[Slot, Slot]) -> Box:
        """Return the box around units: the left upper one and the right lower one."""
        (top, left), (bottom, right) = first, last
        return self.x(left.begin), self.y(top.begin), self.x(right.end), self.y(bottom.end)

    def written(self, box: Box) -> Box:
        """Return what of a box something is written to."""
        left, top, right, bottom = box
        across, down = self.across.edges, self.down.edges
        return (
            max(left, self.x(across[0])),
            max(top, self.y(down[0])),
            min(right, self.x(across[-1])),
            min(bottom, self.y(down[-1])),
        )


def _rulers(frame: _Frame) -> Iterator[str]:
    """Yield the blocks of the source, along the axes."""
    low, high = frame.top - _SPACE - _RULER, frame.top - _SPACE
    yield _text(1, 13, frame.picture.title, ' font-size="13" font-weight="600"')
    yield _text(frame.left, low - _SPACE, frame.across.name)
    for left, right, length, shade in _spans(frame.across, frame.x):
        yield _box((left, low, right, high), f'fill-opacity="{shade}"/>')
        if wide(length) + 4 < right - left:
            yield _text((left + right) / 2, high - 4, length, _MIDDLE)
    if frame.flat:
        return
    low, high = frame.left - _SPACE - _RULER, frame.left - _SPACE
    yield _turned(low - _SPACE, frame.top, frame.down.name, ' text-anchor="end"')
    for top, bottom, length, shade in _spans(frame.down, frame.y):
        yield _box((low, top, high, bottom), f'fill-opacity="{shade}"/>')
        if wide(length) + 4 < bottom - top:
            yield _turned(high - 4, (top + bottom) / 2, length, _MIDDLE)


def _spans(strip: Strip, place: Callable[[int], float]) -> Iterator[tuple[float, float, str, str]]:
    """Yield where blocks of the source are drawn on a ruler, their lengths, and their shades."""
    last = float(-_FINE)
    for number, (begin, end) in enumerate(strip.sources):
        for low, high in strip.shown(begin, end):
            left, right = place(low), place(high)
            if right - last >= _FINE:
                last = right
                length = str(end - begin) if (low, high) == (begin, end) else ""
                yield left, right, length, ".18" if number % 2 else ".36"


def _cells(frame: _Frame) -> Iterator[str]:
    """Yield the units."""
    yield '<g stroke="currentColor" stroke-opacity=".5">'
    for slots in product(frame.down.slots, frame.across.slots):
        down, across = slots
        if down.unit is None or across.unit is None:
            continue
        box = frame.box(slots, slots)
        cell = frame.picture.cells.get((down.unit, across.unit))
        if cell is None:
            yield _box(box, 'fill="none" stroke-dasharray="1 3"/>')
        else:
            yield from _cell(frame, cell, box)
    yield "</g>"


def _cell(frame: _Frame, cell: Cell, box: Box) -> Iterator[str]:
    part = frame.written(box)
    colour = _COLOURS[cell.colour[0] % 2][cell.colour[1] % 3]
    if part != box:
        # What is read and kept is weak, what is written is strong.
        yield _box(box, f'fill="{colour}" fill-opacity=".15" stroke="none"/>')
    yield _box(part, f'fill="{colour}" fill-opacity=".6" stroke="none"/>')
    hatch = frame.hatch(cell.kind)
    yield _box(box, f"{hatch}><title>{_safe(cell.title)}</title></rect>")


def _lines(frame: _Frame) -> Iterator[str]:
    """Yield where blocks of the source meet, and where those that are written do."""
    across, down = frame.across, frame.down
    columns = list(across.shown(across.edges[0], across.edges[-1]))
    rows = list(down.shown(down.edges[0], down.edges[-1]))
    for sources, more in ((True, 'stroke-dasharray="5 3"'), (False, 'stroke-width="2.5"')):
        path = []
        for x in map(frame.x, _edges(across, frame.x, sources=sources)):
            path += [f"M{_n(x)} {_n(frame.y(a))}V{_n(frame.y(b))}" for a, b in rows]
        for y in map(frame.y, _edges(down, frame.y, sources=sources)):
            path += [f"M{_n(frame.x(a))} {_n(y)}H{_n(frame.x(b))}" for a, b in columns]
        yield f'<path d="{"".join(path)}" stroke="currentColor" fill="none" {more}/>'


def _edges(strip: Strip, place: Callable[[int], float], *, sources: bool) -> Iterator[int]:
    """Yield the boundaries that are drawn."""
    if not sources:
        yield from filter(strip.inside, strip.edges)
        return
    for begin, end in strip.sources[1:]:
        if strip.inside(begin) and place(end) - place(begin) >= 2 * _FINE:
            yield begin


def _labels(frame: _Frame) -> Iterator[str]:
    """Yield the names of the blocks that are written, in the middle of them, if there is room."""
    places: dict[tuple[str, int, int], list[tuple[Slot, Slot]]] = {}
    for (row, down), (column, across) in product(_parts(frame.down), _parts(frame.across)):
        cell = frame.picture.cells.get((down.unit or 0, across.unit or 0))
        if cell is not None:
            places.setdefault((cell.label, row, column), []).append((down, across))
    done = set()
    for (label, _, _), slots in places.items():
        left, top, right, bottom = frame.written(frame.box(slots[0], slots[-1]))
        if label not in done and wide(label) + 6 < right - left and bottom - top >= 16:
            done.add(label)
            yield from _plate((left + right) / 2, (top + bottom) / 2, label)


def _plate(x: float, y: float, text: str) -> Iterator[str]:
    """Yield a text that can be read on any colour."""
    half = wide(text) / 2 + 3
    yield _box((x - half, y - 7, x + half, y + 7), 'rx="3" fill="#fff" fill-opacity=".8"/>')
    yield _text(x, y + 4, text, f'{_MIDDLE} fill="#1f2328"')


def _parts(strip: Strip) -> Iterator[tuple[int, Slot]]:
    """Yield the units that are drawn, each with the number of the run that it is in."""
    run = 0
    for slot in strip.slots:
        if slot.unit is None:
            run += 1
        else:
            yield run, slot


def _ticks(frame: _Frame) -> Iterator[str]:
    """Yield the numbers at the boundaries between units."""
    for position in frame.across.ticks(upright=False):
        yield _text(frame.x(position), frame.bottom + 14, str(position), _MIDDLE)
    if not frame.flat:
        for position in frame.down.ticks(upright=True):
            yield _text(frame.right + 6, frame.y(position) + 4, str(position))


def _gaps(frame: _Frame) -> Iterator[str]:
    """Yield how many units are left out."""
    x, y = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
    for begin, end, number in frame.across.slots:
        if number is None:
            yield _text((frame.x(begin) + frame.x(end)) / 2, y, "...", _MIDDLE)
    for begin, end, number in frame.down.slots:
        if number is None:
            yield _text(x, (frame.y(begin) + frame.y(end)) / 2 + 3, "...", _MIDDLE)


def _words(frame: _Frame) -> Iterator[str]:
    """Yield the legend and the notes."""
    left, top = frame.words
    for number, (kind, text) in enumerate(frame.picture.legend):
        y = top + 20 * number
        yield _swatch(frame, kind, left, y)
        yield _text(left + 28, y + 11, text)
    top += 20 * len(frame.picture.legend) + 6
    for number, text in enumerate(frame.picture.notes):
        yield _text(left, top + 16 * number + 10, text)


def _swatch(frame: _Frame, kind: str, left: float, top: float) -> str:
    """Return a sample of what is drawn."""
    line = f'<path d="M{_n(left)} {_n(top + 7)}h20" stroke="currentColor"'
    if kind == "source":
        return f'{line} stroke-dasharray="5 3"/>'
    if kind == "block":
        return f'{line} stroke-width="2.5"/>'
    return "".join(
        _box((left, top, left + 20, top + 14), f"{more}/>")
        for more in (
            f'fill="{_COLOURS[0][0]}" fill-opacity=".6"',
            f'{frame.hatch(kind)} stroke="currentColor" stroke-opacity=".5"',
        )
    )


def _box(box: Box, more: str) -> str:
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    return f'<rect x="{_n(left)}" y="{_n(top)}" width="{_n(width)}" height="{_n(height)}" {more}'


def _text(left: float, top: float, text: str, more: str = "") -> str:
    return f'<text x="{_n(left)}" y="{_n(top)}"{more}>{_safe(text)}</text>'


def _safe(text: str) -> str:
    """Return a text as XML has it: a name may be of any characters."""
    return escape("".join(c if c.isprintable() else "\ufffd" for c in text))


def _turned(left: float, top: float, text: str, more: str = "") -> str:
    return _text(left, top, text, f'{more} transform="rotate(-90 {_n(left)} {_n(top)})"')


def _n(value: float) -> str:
    """Return a number with no more digits than can be seen."""
    return f"{value:.1f}".removesuffix(".0")
