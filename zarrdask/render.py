"""Drawings as SVG text: a grid of stored units, who writes them, and the blocks they come from.

Colours are half transparent, and text is of a grey that can be read on white and on black.
"""

from collections.abc import Callable, Iterator
from html import escape
from itertools import product
from zlib import crc32

from zarrdask.picture import Picture, Slot, Strip, wide

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


def size(count: int) -> str:
    """Return bytes in words.

    >>> size(10), size(1536), size(3 * 2**40)
    ('10 B', '1.5 KiB', '3 TiB')
    """
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while value >= 1000 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.3g} {units[0]}"


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
    # Pictures may share a page: each has patterns of its own.
    name = f"z{crc32(body.encode()):08x}"
    body = body.replace("url(#", f"url(#{name}-")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{frame.width}" height="{frame.height}" '
        f'viewBox="0 0 {frame.width} {frame.height}" fill="currentColor"{colour} '
        'font-family="system-ui, sans-serif" font-size="11">\n'
        f"<defs>{_pattern(name, 'merged')}{_pattern(name, 'read-modify-write')}</defs>\n"
        f"{body}\n</svg>\n"
    )


_HATCHES = {"merged": "M-1 7L7 -1M-1 1L1 -1M5 7L7 5", "read-modify-write": "M0 0L6 6M6 0L0 6"}


def _pattern(name: str, kind: str) -> str:
    return (
        f'<pattern id="{name}-{kind}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="{_HATCHES[kind]}" stroke="currentColor" stroke-opacity=".5"/></pattern>'
    )


class _Frame:
    """Where things go, in pixels."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.flat = picture.down is None
        self.across = picture.across
        self.down = picture.down or Strip("", (Slot(0, 1, 0),), (), (0, 1))
        self.left = 1 if self.flat else 2 * _RULER + _SPACE
        self.top = 26 + 2 * _RULER + _SPACE
        self.right = self.left + self.across.places[-1]
        self.bottom = self.top + self.down.places[-1]
        # Words stand beside two axes, and below one.
        ticks = max(wide(str(at)) for at in self.down.ticks(upright=True))
        self.words = (1, self.bottom + 40) if self.flat else (self.right + ticks + 28, self.top)
        texts = [28 + wide(text) for _, text in picture.legend] + [*map(wide, picture.notes)]
        below = 20 * len(picture.legend) + 16 * len(picture.notes)
        self.width = round(
            max(self.words[0] + max(texts, default=0), self.right + 20, 1.3 * wide(picture.title))
        )
        self.height = round(max(self.words[1] + below, self.bottom + 18) + 4)

    def x(self, position: int) -> float:
        return self.left + self.across.at(position)

    def y(self, position: int) -> float:
        return self.top + self.down.at(position)


def _rulers(frame: _Frame) -> Iterator[str]:
    """Yield the blocks of the source, along the axes."""
    low, high = frame.top - _SPACE - _RULER, frame.top - _SPACE
    yield _text(1, 13, frame.picture.title, ' font-size="13" font-weight="600"')
    yield _text(frame.left, low - _SPACE, frame.across.name)
    for left, right, length, shade in _spans(frame.across, frame.x):
        yield _box(left, low, right, high, f'fill-opacity="{shade}"/>')
        if wide(length) + 4 < right - left:
            yield _text((left + right) / 2, high - 4, length, _MIDDLE)
    if frame.flat:
        return
    low, high = frame.left - _SPACE - _RULER, frame.left - _SPACE
    yield _turned(low - _SPACE, frame.top, frame.down.name, ' text-anchor="end"')
    for top, bottom, length, shade in _spans(frame.down, frame.y):
        yield _box(low, top, high, bottom, f'fill-opacity="{shade}"/>')
        if wide(length) + 4 < bottom - top:
            yield _turned(high - 4, (top + bottom) / 2, length, _MIDDLE)


def _spans(strip: Strip, place: Callable[[int], float]) -> Iterator[tuple[float, float, str, str]]:
    """Yield where blocks of the source are drawn on a ruler, their lengths, and their shades."""
    last = -_FINE
    for number, (begin, end) in enumerate(strip.sources):
        for low, high in strip.shown(begin, end):
            left, right = place(low), place(high)
            if right - last >= _FINE:
                last = right
                length = str(end - begin) if (low, high) == (begin, end) else ""
                yield left, right, length, ".18" if number % 2 else ".36"


def _cells(frame: _Frame) -> Iterator[str]:
    """Yield the units."""
    yield '<g stroke="currentColor" stroke-opacity=".5" fill="none">'
    for down, across in product(frame.down.slots, frame.across.slots):
        if down.unit is None or across.unit is None:
            continue
        box = frame.x(across.begin), frame.y(down.begin), frame.x(across.end), frame.y(down.end)
        cell = frame.picture.cells.get((down.unit, across.unit))
        if cell is None:
            yield _box(*box, 'stroke-dasharray="1 3"/>')
            continue
        colour = _COLOURS[cell.colour[0] % 2][cell.colour[1] % 3]
        low, high = frame.down.edges[0], frame.down.edges[-1]
        left, right = frame.across.edges[0], frame.across.edges[-1]
        part = (
            max(box[0], frame.x(left)),
            max(box[1], frame.y(low)),
            min(box[2], frame.x(right)),
            min(box[3], frame.y(high)),
        )
        title = f"<title>{escape(cell.title, quote=False)}</title></rect>"
        if part != box:
            # What is read and kept is weak, what is written is strong.
            yield _box(*box, f'fill="{colour}" fill-opacity=".15" stroke="none"/>')
        yield _box(*part, f'fill="{colour}" fill-opacity=".6" stroke="none"/>')
        hatch = "transparent" if cell.kind == "whole" else f"url(#{cell.kind})"
        yield _box(*box, f'fill="{hatch}">{title}')
    yield "</g>"


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
        (top, left), (bottom, right) = slots[0], slots[-1]
        x, y = frame.x(left.begin), frame.y(top.begin)
        width, height = frame.x(right.end) - x, frame.y(bottom.end) - y
        if label not in done and wide(label) + 6 < width and height >= 16:
            done.add(label)
            yield from _plate(x + width / 2, y + height / 2, label)


def _plate(x: float, y: float, text: str) -> Iterator[str]:
    """Yield a text that can be read on any colour."""
    half = wide(text) / 2 + 3
    yield _box(x - half, y - 7, x + half, y + 7, 'rx="3" fill="#fff" fill-opacity=".8"/>')
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
        yield _swatch(kind, left, y)
        yield _text(left + 28, y + 11, text)
    top += 20 * len(frame.picture.legend) + 6
    for number, text in enumerate(frame.picture.notes):
        yield _text(left, top + 16 * number + 10, text)


def _swatch(kind: str, left: float, top: float) -> str:
    """Return a sample of what is drawn."""
    line = f'<path d="M{_n(left)} {_n(top + 7)}h20" stroke="currentColor"'
    if kind == "source":
        return f'{line} stroke-dasharray="5 3"/>'
    if kind == "block":
        return f'{line} stroke-width="2.5"/>'
    hatch = "none" if kind == "whole" else f"url(#{kind})"
    return "".join(
        _box(left, top, left + 20, top + 14, f"{more}/>")
        for more in (
            f'fill="{_COLOURS[0][0]}" fill-opacity=".6"',
            f'fill="{hatch}" stroke="currentColor" stroke-opacity=".5"',
        )
    )


def _box(left: float, top: float, right: float, bottom: float, more: str) -> str:
    width, height = right - left, bottom - top
    return f'<rect x="{_n(left)}" y="{_n(top)}" width="{_n(width)}" height="{_n(height)}" {more}'


def _text(left: float, top: float, text: str, more: str = "") -> str:
    return f'<text x="{_n(left)}" y="{_n(top)}"{more}>{escape(text, quote=False)}</text>'


def _turned(left: float, top: float, text: str, more: str = "") -> str:
    return _text(left, top, text, f'{more} transform="rotate(-90 {_n(left)} {_n(top)})"')


def _n(value: float) -> str:
    """Return a number with no more digits than can be seen."""
    return f"{value:.1f}".removesuffix(".0")
