"""Pictures as SVG: a grid of stored units in the colours of their owners, and the source blocks."""

from collections.abc import Callable, Iterator
from itertools import product
from math import ceil

from zarrdask.display.elements import (
    COLOURS,
    GREY,
    Box,
    decimal,
    document,
    draw_rectangle,
    draw_text,
    titled,
)
from zarrdask.display.picture import Cell, Picture, Slot, Strip, text_width

#: The least distance between two lines of source blocks, in pixels.
_MIN_DISTANCE = 6
_MIDDLE = ' text-anchor="middle"'
#: The size in pixels, and the lines, of the pattern over units that cost more than others. Drawings
#: on one page may share its name, as it is the same in each.
_HATCHES = {"read-modify-write": (8, "M-1 9L9 -1M-1 1L1 -1M7 9L9 7")}
#: The size of the corner of merged units that is marked, in pixels.
_CORNER = 7
#: The attributes of lines between blocks.
_LINES = {"source": 'stroke-dasharray="5 3"', "block": 'stroke-width="2.5"'}


def html(picture: Picture) -> str:
    """Return a picture as part of a page, whose text colour it takes."""
    return f'<div style="overflow-x: auto">{svg(picture, None)}</div>'


def svg(picture: Picture, colour: str | None = GREY) -> str:
    """Return a picture as a document."""
    frame = _Frame(picture)
    patterns = (
        f'<pattern id="zarrdask-{kind}" width="{size}" height="{size}" '
        f'patternUnits="userSpaceOnUse"><path d="{path}" stroke="currentColor" '
        'stroke-opacity=".45"/></pattern>'
        for kind, (size, path) in _HATCHES.items()
    )
    parts = [
        f"<defs>{''.join(patterns)}</defs>",
        *_names(frame),
        *_cells(frame),
        *(_lines(frame, kind) for kind in _LINES),
        *_labels(frame),
        *_ticks(frame),
        *_gaps(frame),
        *_text_column(frame),
    ]
    return document(frame.width, frame.height, picture.title, "\n".join(parts), colour)


class _Frame:
    """The positions of a picture's parts, in pixels."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.is_flat = picture.down is None
        self.across = picture.across
        self.down = picture.down or Strip("", (Slot(0, 1, 0),), (), (0, 1))
        self.left, self.top = 8 if self.is_flat else 20, 42
        self.right = self.left + self.across.offsets[-1]
        self.bottom = self.top + self.down.offsets[-1]
        # The legend and the notes stand beside two axes, and below one.
        ticks = max([text_width(str(at)) for at in self.down.ticks(vertical=True)], default=0)
        beside = self.right + ticks + 28, self.top
        self.text = (8, self.bottom + 34) if self.is_flat else beside
        widths = [28 + text_width(text) for _, text in picture.legend]
        widths += map(text_width, picture.notes)
        height = 20 * len(picture.legend) + 16 * len(picture.notes)
        widest = self.text[0] + max(widths, default=0)
        self.width = ceil(max(widest, self.right + 20, 1.3 * text_width(picture.title)) + 2)
        self.height = ceil(max(self.text[1] + height + 6, self.bottom + 18) + 4)

    def x(self, position: int) -> float:
        return self.left + self.across.at(position)

    def y(self, position: int) -> float:
        return self.top + self.down.at(position)

    def boxes(self) -> Iterator[tuple[Box, Cell | None]]:
        """Yield the box of each unit, and the unit if it is written."""
        for down, across in product(self.down.slots, self.across.slots):
            if down.unit is not None and across.unit is not None:
                box = self.x(across.begin), self.y(down.begin), self.x(across.end), self.y(down.end)
                yield box, self.picture.cells.get((down.unit, across.unit))

    def written(self, box: Box) -> Box:
        """Return the part of a box that is written."""
        left, top, right, bottom = box
        across, down = self.across.edges, self.down.edges
        return (
            max(left, self.x(across[0])),
            max(top, self.y(down[0])),
            min(right, self.x(across[-1])),
            min(bottom, self.y(down[-1])),
        )


def _names(frame: _Frame) -> Iterator[str]:
    """Yield the title and the names of the axes."""
    yield draw_text(1, 13, frame.picture.title, ' font-size="13" font-weight="600"')
    yield draw_text(frame.left, frame.top - 5, frame.across.name)
    if not frame.is_flat:
        turned = f' text-anchor="end" transform="rotate(-90 {frame.left - 5} {frame.top})"'
        yield draw_text(frame.left - 5, frame.top, frame.down.name, turned)


def _cells(frame: _Frame) -> Iterator[str]:
    """Yield the units: elements that are read and kept are pale, written elements are strong."""
    yield '<g stroke="currentColor" stroke-opacity=".5">'
    for box, cell in frame.boxes():
        if cell is None:
            yield draw_rectangle(box, 'fill="none" stroke-dasharray="1 3"/>')
            continue
        colour = f'fill="{COLOURS[cell.colour[0] % 2][cell.colour[1] % 3]}" stroke="none"'
        written = frame.written(box)
        if written != box:
            yield draw_rectangle(box, f'{colour} fill-opacity=".15"/>')
        yield draw_rectangle(written, f'{colour} fill-opacity=".6"/>')
        yield _corner(cell.kind, box)
        yield draw_rectangle(box, f"{_hatch(cell.kind)}{titled(cell.title)}")
    yield "</g>"


def _labels(frame: _Frame) -> Iterator[str]:
    """Yield the name of each owner, in the first of its units that has room for it."""
    labelled = set()
    style = f'{_MIDDLE} stroke="#fff" stroke-width="3.5" paint-order="stroke"'
    for box, cell in frame.boxes():
        left, top, right, bottom = frame.written(box)
        has_room = text_width(cell.label if cell else "") + 4 < right - left and bottom - top >= 16
        if cell is not None and cell.label and cell.label not in labelled and has_room:
            labelled.add(cell.label)
            middle = (left + right) / 2, (top + bottom) / 2 + 4
            yield draw_text(*middle, cell.label, f'{style} fill="#1f2328"')


def _corner(kind: str, box: Box) -> str:
    """Return the mark of a merged unit."""
    if kind != "merged":
        return ""
    _, top, right, _ = box
    path = f"M{decimal(right - _CORNER)} {decimal(top)}h{_CORNER}v{_CORNER}z"
    return f'<path d="{path}" fill-opacity=".45" stroke="none"/>'


def _hatch(kind: str) -> str:
    return f'fill="url(#zarrdask-{kind})"' if kind in _HATCHES else 'fill-opacity="0"'


def _lines(frame: _Frame, kind: str) -> str:
    """Return the boundaries between source blocks, or between written blocks."""
    across, down = frame.across, frame.down
    columns = list(across.shown(across.edges[0], across.edges[-1]))
    rows = list(down.shown(down.edges[0], down.edges[-1]))
    path = []
    for x in _line_offsets(across, frame.x, kind):
        path += [f"M{decimal(x)} {decimal(frame.y(a))}V{decimal(frame.y(b))}" for a, b in rows]
    for y in _line_offsets(down, frame.y, kind):
        path += [f"M{decimal(frame.x(a))} {decimal(y)}H{decimal(frame.x(b))}" for a, b in columns]
    return f'<path d="{"".join(path)}" stroke="currentColor" fill="none" {_LINES[kind]}/>'


def _line_offsets(strip: Strip, offset: Callable[[int], float], kind: str) -> Iterator[float]:
    if kind == "block":
        yield from map(offset, filter(strip.is_shown, strip.edges))
        return
    for begin, end in strip.sources[1:]:
        if strip.is_shown(begin) and offset(end) - offset(begin) >= _MIN_DISTANCE:
            yield offset(begin)


def _ticks(frame: _Frame) -> Iterator[str]:
    """Yield the positions of the boundaries between units."""
    for position in frame.across.ticks(vertical=False):
        yield draw_text(frame.x(position), frame.bottom + 14, str(position), _MIDDLE)
    if not frame.is_flat:
        for position in frame.down.ticks(vertical=True):
            yield draw_text(frame.right + 6, frame.y(position) + 4, str(position))


def _gaps(frame: _Frame) -> Iterator[str]:
    """Yield dots where units are omitted."""
    x, y = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
    for begin, end, unit in frame.across.slots:
        if unit is None:
            yield draw_text((frame.x(begin) + frame.x(end)) / 2, y, "...", _MIDDLE)
    for begin, end, unit in frame.down.slots:
        if unit is None:
            yield draw_text(x, (frame.y(begin) + frame.y(end)) / 2 + 3, "...", _MIDDLE)


def _text_column(frame: _Frame) -> Iterator[str]:
    """Yield the legend and the notes."""
    left, top = frame.text
    for kind, text in frame.picture.legend:
        if kind in _LINES:
            line = f"M{decimal(left)} {decimal(top + 7)}h20"
            yield f'<path d="{line}" stroke="currentColor" {_LINES[kind]}/>'
        else:
            box = left, top, left + 20, top + 14
            yield draw_rectangle(box, f'fill="{COLOURS[0][0]}" fill-opacity=".6"/>')
            yield _corner(kind, box)
            yield draw_rectangle(box, f'{_hatch(kind)} stroke="currentColor" stroke-opacity=".5"/>')
        yield draw_text(left + 28, top + 11, text)
        top += 20
    for number, text in enumerate(frame.picture.notes):
        yield draw_text(left, top + 16 + 16 * number, text)
