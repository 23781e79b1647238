"""A picture of an array as a box, with the boundaries of its chunks and shards. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt

from zarrdask.display.elements import COLOURS, decimal, document, draw_text
from zarrdask.display.picture import text_width

#: A position in the drawing, or the direction of an axis over its whole length, in pixels.
Point = tuple[float, float]

#: The length of the longest axis, the least length of an axis, and the thickness of a line of
#: chunks if there is one axis only, in pixels.
_LONGEST, _SHORTEST, _THICKNESS = 170.0, 18.0, 28.0
#: The direction of the axis that leads away from the reader, for each pixel of its length.
_DEPTH = (0.42, -0.42)
#: The least distance between two lines, in pixels.
_MIN_DISTANCE = 4.0
#: The margin around the box, and the height of a line of text, in pixels.
_MARGIN, _LINE = 4.0, 16.0
#: The attributes of the boundaries of chunks in shards, and of stored units.
_CHUNK = 'stroke-opacity=".3" stroke-width=".7"'
_UNIT = 'stroke-opacity=".75"'


@dataclass(frozen=True)
class BoxAxis:
    """An axis of an array.

    Attributes
    ----------
    name : str
        The name of the axis, or "".
    length : int
        The number of elements.
    units : tuple of int
        The boundaries between stored units (shards, or chunks if there are no shards).
    chunks : tuple of int
        The boundaries between the chunks in shards; empty if there are no shards.
    """

    name: str
    length: int
    units: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """The name and the length of the axis."""
        return f"{self.name} {self.length}".strip()


def box_svg(axes: Sequence[BoxAxis]) -> str:
    """Return a drawing of an array, or of its last three axes if it has more.

    The last axis leads to the right, the one before it down, the third last away from the reader.
    Long axes are drawn shorter than to scale, and lines that would be too close are left out.
    """
    drawn, others = axes[-3:], axes[:-3]
    lengths = _pixels([axis.length for axis in drawn])
    depth, down, across = ([_THICKNESS] * 3 + lengths)[-3:]
    away = (depth * _DEPTH[0], depth * _DEPTH[1]) if len(drawn) == 3 else (0, 0)
    left, top = _MARGIN, _MARGIN - away[1]
    right, bottom = left + across, top + down
    padded = [BoxAxis("", 1)] * (3 - len(drawn)) + list(drawn)
    back, side, front = zip(padded, (away, (0, down), (across, 0)), strict=True)
    body = ['<g stroke="currentColor">', *_face((left, top), 0.5, side, front)]
    labels = [(left, bottom + _LINE - 2, axis.label) for axis in drawn[-1:]]
    labels += [(right + away[0] + 6, top + away[1] + down / 2 + 4, a.label) for a in drawn[-2:-1]]
    if len(drawn) == 3:
        body += _face((left, top), 0.25, back, front)
        body += _face((right, top), 0.35, back, side)
        # Below the right side, which leads upwards.
        labels.append((right + away[0] / 2 + 8, bottom + away[1] / 2 + 10, drawn[0].label))
    if others:
        count, names = prod(axis.length for axis in others), [axis.label for axis in others]
        labels.append((left, bottom + 2 * _LINE - 2, f"one of {count}: {' x '.join(names)}"))
    body += ["</g>", *(draw_text(x, y, label) for x, y, label in labels)]
    width = max([right + away[0], *(x + text_width(label) for x, _, label in labels)]) + _MARGIN
    height = max([bottom, *(y for _, y, _ in labels)]) + _MARGIN
    title = " x ".join(axis.label for axis in axes) or "one element"
    return document(ceil(width), ceil(height), title, "\n".join(body))


def _pixels(lengths: Sequence[int]) -> list[float]:
    """Return how long axes are drawn: so that a short axis can be seen beside a long one."""
    longest = max([*lengths, 1])
    return [max(_LONGEST * sqrt(length / longest), _SHORTEST) for length in lengths]


def _face(
    origin: Point, opacity: float, first: tuple[BoxAxis, Point], second: tuple[BoxAxis, Point]
) -> Iterator[str]:
    """Yield a side of the box, with the lines that cross each of its two axes."""
    (x, y), along, across = origin, first[1], second[1]
    outline = f"M{_at(origin)}l{_at(along)}l{_at(across)}l{_at((-along[0], -along[1]))}z"
    yield f'<path d="{outline}" fill="{COLOURS[0][0]}" fill-opacity="{opacity}" {_UNIT}/>'
    for style, kind in ((_CHUNK, "chunks"), (_UNIT, "units")):
        path = ""
        for (axis, vector), other in ((first, across), (second, along)):
            for share in _shares(getattr(axis, kind), axis.length, vector):
                path += f"M{_at((x + vector[0] * share, y + vector[1] * share))}l{_at(other)}"
        if path:
            yield f'<path d="{path}" fill="none" {style}/>'


def _shares(edges: Sequence[int], length: int, vector: Point) -> Iterator[float]:
    """Yield the positions of lines as shares of an axis, without lines that would be too close."""
    pixels, last = sqrt(vector[0] ** 2 + vector[1] ** 2), 0.0
    for edge in edges:
        share = edge / max(length, 1)
        if (share - last) * pixels >= _MIN_DISTANCE <= (1 - share) * pixels:
            last = share
            yield share


def _at(point: Point) -> str:
    return " ".join(map(decimal, point))
