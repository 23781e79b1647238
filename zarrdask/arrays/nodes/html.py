"""The HTML of arrays and groups in notebooks: properties, a drawing of the chunks, a tree."""

from collections.abc import Sequence

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.nodes.info import array_info
from zarrdask.display.box import BoxAxis, box_svg
from zarrdask.display.html import beside, heading, table
from zarrdask.display.mosaic import mosaic_svg
from zarrdask.display.tree import Tree
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import ChunkGrid
from zarrdask.formats.metadata.model import ArrayMetadata

#: The largest number of units whose stored ones are counted: listing them is fast.
_MAX_COUNTED = 10_000
#: The most characters of a value, such as thousands of chunk lengths.
_MAX_CHARACTERS = 200
#: The largest number of boundaries along an axis that a drawing has room for.
_MAX_BOUNDARIES = 100


def array_html(location: str, chunks: StoredChunks, members: Sequence[Axis] | None = None) -> str:
    """Return an array as part of a page: its properties beside a box with its chunks.

    The `members` of a concatenation are drawn like shards, by the boundaries along each axis.
    """
    _, *properties = array_info(location, chunks.metadata).rows
    rows = [(name, _shortened(value)) for name, value in properties]
    pictures, stored = [_box(chunks.metadata, members)], _stored(chunks)
    if stored is not None:
        kind = "chunks" if chunks.metadata.shard is None else "shards"
        count = int(stored.sum())
        share = f"{count / max(stored.size, 1):.0%}"
        rows.append(("stored", f"{count} of {stored.size} {kind} ({share})"))
        if 0 < count < stored.size:
            pictures.append(mosaic_svg(stored, _names(chunks.metadata)))
    return heading("zarrdask.Array", location) + beside(table(rows), *pictures)


def group_html(location: str, tree: Tree) -> str:
    """Return a group as part of a page: its members as a tree whose groups fold."""
    return heading("zarrdask.Group", location) + tree._repr_html_()


def _shortened(value: str) -> str:
    return value if len(value) <= _MAX_CHARACTERS else f"{value[:_MAX_CHARACTERS]}..."


def _box(metadata: ArrayMetadata, members: Sequence[Axis] | None) -> str:
    units = _boundaries(metadata.grid)
    names = [name or "" for name in metadata.dimension_names or (None,) * len(metadata.shape)]
    chunks = _boundaries(metadata.read_grid) if metadata.shard else ((),) * len(units)
    if members is not None:
        units, chunks = tuple(map(_inner_edges, members)), units
    return box_svg(tuple(map(BoxAxis, names, metadata.shape, units, chunks)))


def _boundaries(grid: ChunkGrid) -> tuple[tuple[int, ...], ...]:
    """Return the boundaries between the chunks along each axis; some of them if they are many."""
    return tuple(map(_inner_edges, grid.axes))


def _inner_edges(axis: Axis) -> tuple[int, ...]:
    every = max(axis.count // _MAX_BOUNDARIES, 1)
    return tuple(axis.start(number) for number in range(every, axis.count, every))


def _names(metadata: ArrayMetadata) -> list[str]:
    """Return a name for each axis."""
    names = metadata.dimension_names or (None,) * len(metadata.shape)
    return [name or f"axis {i}" for i, name in enumerate(names)]


def _stored(chunks: StoredChunks) -> np.ndarray | None:
    """Return which units are stored, if that can be listed fast."""
    total = chunks.metadata.grid.size
    if total > _MAX_COUNTED or not chunks.store.capabilities.is_listed_fast:
        return None
    try:
        return StoredUnits(chunks).map("shard")
    except (ZarrdaskError, OSError):
        return None  # a table does not fail because of what is wrong with the store
