"""Points and cubes of stored arrays as Dask arrays: one task for each group of chunks.

The positions are sorted by groups of neighbouring chunks, and one task reads each group; the tasks
of the result put the elements in the requested order.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array import core
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from zarrdask import config
from zarrdask.formats.grids.axis import edges_of
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.grids.grouping import grouped
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.execution.dask_private import Task, TaskRef
from zarrdask.parallel.graph.blocks import region_blocks
from zarrdask.parallel.graph.points.region_cubes import Cubes


class _Positions(NamedTuple):
    """Positions of a group, as differences from the lowest one, in the smallest type."""

    lowest: tuple[int, ...]
    offsets: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, starts: Sequence[np.ndarray]) -> "_Positions":
        """Return positions in a compact form."""
        lowest = tuple(int(start.min()) for start in starts)
        offsets = (start - low for start, low in zip(starts, lowest, strict=True))
        return cls(lowest, tuple(each.astype(np.min_scalar_type(each.max())) for each in offsets))

    def starts(self) -> list[np.ndarray]:
        """Return the positions."""
        pairs = zip(self.lowest, self.offsets, strict=True)
        return [offset.astype(np.intp) + low for low, offset in pairs]


class Span(NamedTuple):
    """The elements of a group's task that are in a block of the result, and their positions."""

    start: int
    stop: int
    positions: np.ndarray


def read_at(cubes: Cubes, starts: Sequence[np.ndarray]) -> da.Array:
    """Return cubes at positions in memory, as an array with a leading axis.

    `starts` has the first positions along each axis that has them.
    """
    source, blocks = cubes.source, cubes.blocks()
    token = tokenize(source, dict(cubes.lengths), cubes.is_dropped, cubes.ends, *starts)
    name = f"{source.stored.task_name('gather')}-{token}"
    read = f"{source.stored.task_name('read')}-{token}"
    edges = cubes.edges()
    inside = cubes.inside(starts)
    numbers = [np.searchsorted(e, s, "right") - 1 for e, s in zip(edges, inside, strict=True)]
    order, cuts = grouped(numbers)
    groups = [order[a:b] for a, b in pairwise(cuts.tolist())]
    leading = leading_blocks(len(order), blocks, source.dtype)
    parts = dict(block_parts(cubes))
    reads, gathers = dict[Any, Any](), dict[Any, Any]()
    for number, group in enumerate(groups):
        positions = _Positions.of([start[group] for start in starts])
        for index, part in parts.items():
            key = (read, number, *index)
            reads[key] = Task(key, _read_group, cubes, positions, part)
    for number, (first, last) in enumerate(pairwise(edges_of(leading).tolist())):
        needed, spans = list[int](), list[Span]()
        for each, group in enumerate(groups):
            low, high = np.searchsorted(group, [first, last]).tolist()
            if low < high:
                needed.append(each)
                positions = group[low:high] - first
                spans.append(Span(low, high, positions.astype(np.min_scalar_type(last - first))))
        for index, shape in block_shapes(blocks):
            key = (name, number, *index)
            inner = block_index(cubes, index)
            refs = [TaskRef((read, each, *inner)) for each in needed]
            shape = (last - first, *shape)
            gathers[key] = Task(key, gather, spans, shape, source.dtype, *refs)
    graph = HighLevelGraph({read: reads, name: gathers}, {read: set(), name: {read}})
    meta = np.empty((0,) * (1 + len(blocks)), source.dtype)
    return core.Array(graph, name, (leading, *blocks), meta=meta)


def block_parts(cubes: Cubes) -> Iterator[tuple[tuple[int, ...], Region]]:
    """Yield the index and the region of each block along the axes without positions."""
    blocks = region_blocks(cubes.source, "auto")
    own = [blocks[axis] for axis in cubes.others]
    regions = [[slice(a, b, 1) for a, b in pairwise(edges_of(each).tolist())] for each in own]
    yield from zip(product(*(range(len(each)) for each in own)), product(*regions), strict=True)


def block_shapes(blocks: Sequence[Sequence[int]]) -> Iterator[tuple[Shape, Shape]]:
    """Yield the index and the shape of each block of the result, without the leading axis."""
    yield from zip(
        product(*(range(len(lengths)) for lengths in blocks)), product(*blocks), strict=True
    )


def block_index(cubes: Cubes, index: Shape) -> Shape:
    """Return the index of a block of the result as that along the axes without positions."""
    return index if cubes.is_dropped else tuple(index[axis] for axis in cubes.others)


def leading_blocks(
    count: int, blocks: Sequence[Sequence[int]], dtype: np.dtype[Any]
) -> tuple[int, ...]:
    """Return the lengths of blocks along the leading axis, up to the size of blocks of arrays."""
    item = dtype.itemsize * prod(max(lengths, default=0) for lengths in blocks)
    length = max(int(config.get("block-size")) // max(item, 1), 1)
    whole, rest = divmod(count, length)
    return (*(length,) * whole, rest) if rest or not count else (length,) * whole


def _read_group(cubes: Cubes, positions: _Positions, part: Region) -> np.ndarray:
    """Read the cubes of a group: what a task does."""
    return cubes.read(positions.starts(), part)


def gather(
    spans: Sequence[Span], shape: Shape, dtype: np.dtype[Any], *groups: np.ndarray
) -> np.ndarray:
    """Put elements of groups at their positions: a task."""
    out = np.empty(shape, dtype)
    for span, values in zip(spans, groups, strict=True):
        out[span.positions] = values[span.start : span.stop]
    return out
