"""Pictures of the stored chunks: the darker a cell, the more of its chunks are stored. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, prod

import numpy as np

from zarrdask.display.elements import COLOURS, decimal, document, draw_text
from zarrdask.display.picture import text_width

#: The most cells along an axis; more chunks share a cell.
_MAX_CELLS = 40
#: The length of a side, and the longest and the shortest length of a cell, in pixels.
_SIDE, _LONGEST, _SHORTEST = 170.0, 20.0, 4.0
#: The number of shades between nothing and everything.
_SHADES = 4
_MARGIN, _LINE = 4.0, 16.0
#: The characters for nothing, for parts, and for everything.
_CHARACTERS = "·░▒▓█"


def mosaic_svg(stored: np.ndarray, names: Sequence[str]) -> str:
    """Return a drawing of a boolean array over a chunk grid, along the axes with the most chunks.

    The shade of a cell is the share of its chunks that are stored, along all other axes.
    """
    order = sorted(range(stored.ndim), key=lambda axis: (stored.shape[axis], axis))
    others, drawn = sorted(order[:-2]), sorted(order[-2:])
    total = prod(stored.shape[axis] for axis in others)
    flat = np.atleast_2d(stored.sum(axis=tuple(others)) / max(total, 1))
    shares = _averaged(_averaged(flat, 0), 1)
    rows, columns = shares.shape
    size = min(max(_SIDE / max(rows, columns, 1), _SHORTEST), _LONGEST)
    left, top = _MARGIN, _MARGIN
    right, bottom = left + columns * size, top + rows * size
    frame = f"M{decimal(left)} {decimal(top)}H{decimal(right)}V{decimal(bottom)}H{decimal(left)}z"
    body = [f'<path d="{frame}" fill="none" stroke="currentColor" stroke-opacity=".6"/>']
    shades = np.ceil(shares * _SHADES).astype(int)
    for shade in range(1, _SHADES + 1):
        path = "".join(
            f"M{decimal(left + column * size)} {decimal(top + row * size)}"
            f"h{decimal(size - 1)}v{decimal(size - 1)}h-{decimal(size - 1)}z"
            for row, column in zip(*np.nonzero(shades == shade), strict=True)
        )
        if path:
            opacity = decimal(0.15 + 0.75 * shade / _SHADES)
            body.append(f'<path d="{path}" fill="{COLOURS[0][0]}" fill-opacity="{opacity}"/>')
    labels = [f"stored: {int(stored.sum())} of {stored.size}"]
    if drawn:
        labels.append(", ".join(f"{names[axis]}: {stored.shape[axis]}" for axis in drawn))
    shaded = [names[axis] for axis in others if stored.shape[axis] > 1]
    if shaded:
        labels.append(f"shade: the share along {' x '.join(shaded)}")
    body += [draw_text(left, bottom + _LINE * n, text) for n, text in enumerate(labels, 1)]
    width = max([right, *(left + text_width(text) for text in labels)]) + _MARGIN
    height = bottom + _LINE * len(labels) + _MARGIN
    return document(ceil(width), ceil(height), "stored chunks", "\n".join(body))


def _averaged(shares: np.ndarray, axis: int) -> np.ndarray:
    """Return the means of so many neighbours along an axis that few remain."""
    if shares.shape[axis] <= _MAX_CELLS:
        return shares
    parts = np.array_split(shares, _MAX_CELLS, axis)
    return np.stack([part.mean(axis) for part in parts], axis)


def strip(spans: Iterable[tuple[int, int, float]]) -> str:
    """Return adjacent spans (start, stop, share) of an axis as a line of at most 40 characters.

    A blank span has a character of its own, and only what is complete has the darkest one.

    >>> strip([(0, 4, 1), (4, 6, 0), (6, 8, 0.5)])
    '████··▒▒'
    """
    spans = list(spans)
    length = max((stop for _, stop, _ in spans), default=0)
    cells = min(length, _MAX_CELLS)
    edges = [number * length / max(cells, 1) for number in range(cells + 1)]
    line = ""
    for begin, end in pairwise(edges):
        parts = ((max(min(end, b) - max(begin, a), 0), share) for a, b, share in spans)
        mean = sum(width * share for width, share in parts) / (end - begin)
        # Rounding errors must not hide a hole, nor make one.
        shade = ceil(round(mean, 9) * (len(_CHARACTERS) - 2)) if mean < 1 - 1e-9 else -1
        line += _CHARACTERS[shade]
    return line
