"""Display the levels of a pyramid side by side: shapes, scales, chunks, and thumbnails."""

from collections.abc import Iterator
from itertools import zip_longest
from math import prod
from typing import NamedTuple

import numpy as np

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.display.html import beside, heading, table
from zarrdask.errors import ZarrdaskError
from zarrdask.tools.conventions.levels import Numbers
from zarrdask.tools.conventions.pyramids import multiscales
from zarrdask.tools.conventions.thumbnail import thumbnail

#: The most thumbnails, of channels or times, and the most bytes that are read for each.
_MAX_THUMBNAILS, _MAX_BYTES = 4, 2**22


class ShownLevel(NamedTuple):
    """A level, with the array that is shown for it."""

    path: str
    array: Array
    scale: Numbers | None

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The names and the values of its properties."""
        facts = [("shape", str(self.array.shape))]
        if self.scale is not None:
            facts.append(("scale", f"({', '.join(f'{number:g}' for number in self.scale)})"))
        facts.append(("chunks", str(self.array.chunks)))
        return (*facts, *([("shards", str(self.array.shards))] if self.array.shards else ()))


def shown_levels(group: Group) -> list[list[ShownLevel]]:
    """Return the levels of each pyramid of a group; none, if its attributes are invalid."""
    try:
        return [
            [
                ShownLevel(level.path, array, level.scale)
                for level in pyramid.levels
                if (array := _array_of(group[level.path])) is not None
            ]
            for pyramid in multiscales(group)
        ]
    except (ZarrdaskError, OSError):
        return []  # invalid attributes do not make the table fail


def rows(group: Group) -> Iterator[tuple[str, str]]:
    """Yield the rows of a table of properties: one for each level, in columns."""
    for levels in shown_levels(group):
        yield "levels", str(len(levels))
        texts = [[" ".join(fact) for fact in level.facts] for level in levels]
        widths = [max(map(len, column)) for column in zip_longest(*texts, fillvalue="")]
        for level, line in zip(levels, texts, strict=True):
            cells = (text.ljust(width) for text, width in zip(line, widths, strict=False))
            yield f"  {level.path}", "  ".join(cells).rstrip()


def html(group: Group) -> str:
    """Return the levels as part of a page, beside thumbnails of the coarsest one."""
    return "".join(
        beside(
            *(heading("level", level.path) + table(level.facts) for level in levels),
            *_thumbnails(levels[-1].array),
        )
        for levels in shown_levels(group)
        if levels
    )


def _thumbnails(array: Array) -> Iterator[str]:
    """Yield images of the last two axes: for the first few indices of the axis before them."""
    if array.ndim < 2 or array.dtype.kind not in "biuf" or 0 in array.shape:
        return
    if prod(array.shape[-2:]) * array.dtype.itemsize > _MAX_BYTES:
        return
    *others, _, _ = array.shape
    names = array.dimension_names or (None,) * array.ndim
    middle = [length // 2 for length in others]
    for number in range(min(others[-1], _MAX_THUMBNAILS) if others else 1):
        index = (*middle[:-1], number) if others else ()
        label = ", ".join(f"{name or 'index'} {at}" for name, at in zip(names, index, strict=False))
        try:
            values = np.asarray(array[index])
        except (ZarrdaskError, OSError):
            return
        yield thumbnail(values, label or "coarsest level")


def _array_of(node: Array | Group) -> Array | None:
    """Return the array of a level; if the level is a group, its array with the most axes."""
    if isinstance(node, Array):
        return node
    arrays = [array for _, array in node.arrays() if array.ndim > 1]
    return max(arrays, key=lambda array: array.ndim, default=None)
