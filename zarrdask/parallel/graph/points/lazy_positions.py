"""Cubes at positions that are Dask arrays themselves: an exchange in two steps.

Each block of positions is divided by groups of chunks; one task for each group reads the cubes of
all blocks; and each block takes its own from all groups, in the order of its positions.
"""

from collections.abc import Sequence
from itertools import pairwise, product
from math import isnan, prod
from operator import getitem
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array import core
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.grids.grouping import stable_order
from zarrdask.formats.indexing.selection import Region, within_bounds
from zarrdask.parallel.execution.dask_private import Task, TaskRef
from zarrdask.parallel.graph.points.cube_reads import block_index, block_parts, block_shapes
from zarrdask.parallel.graph.points.region_cubes import Cubes

#: The largest number of groups: each block of positions exchanges a part with each of them.
_MAX_GROUPS = 64


class _Groups(NamedTuple):
    """The groups of chunks, several neighbours in C order in each."""

    edges: list[np.ndarray]
    #: The lengths of the axes with positions.
    sizes: Shape
    #: How many blocks of chunks are in a group.
    length: int

    @property
    def group_count(self) -> int:
        """The number of groups."""
        return max(-(-prod(len(each) - 1 for each in self.edges) // self.length), 1)

    def numbers(self, starts: Sequence[np.ndarray]) -> np.ndarray:
        """Return the number of the group of each position."""
        flat = np.zeros(len(starts[0]), np.int64)
        for edges, start in zip(self.edges, starts, strict=True):
            flat = flat * (len(edges) - 1) + np.searchsorted(edges, start, "right") - 1
        return flat // self.length


class _Divided(NamedTuple):
    """A block of positions, divided by groups."""

    #: For each group the positions along each axis.
    parts: list[list[np.ndarray]]
    order: np.ndarray


def read_at_lazy(cubes: Cubes, positions: Sequence[da.Array]) -> da.Array | None:
    """Return cubes at positions, which are Dask arrays that broadcast; None if Dask has to do it.

    The axes of the positions come first. Positions of unknown number are left to Dask.
    """
    if any(isnan(length) for each in positions for axis in each.chunks for length in axis):
        return None
    positions = da.broadcast_arrays(*positions)
    source, blocks, edges = cubes.source, cubes.blocks(), cubes.edges()
    sizes = tuple(source.shape[axis] for axis in cubes.axes)
    length = -(-prod(len(each) - 1 for each in edges) // _MAX_GROUPS)
    groups = _Groups(edges, sizes, max(length, 1))
    leading = positions[0].chunks
    indices = list(product(*(range(len(lengths)) for lengths in leading)))
    count = len(indices)
    token = tokenize(source, dict(cubes.lengths), cubes.is_dropped, *positions)
    name = f"{source.stored.task_name('gather')}-{token}"
    read = f"{source.stored.task_name('read')}-{token}"
    split = f"{source.stored.task_name('split')}-{token}"
    splits, reads, gathers = dict[Any, Any](), dict[Any, Any](), dict[Any, Any]()
    for i, index in enumerate(indices):
        refs = [TaskRef((each.name, *index)) for each in positions]
        splits[split, i] = Task((split, i), _divide, groups, *refs)
        splits[split, i, 0] = Task((split, i, 0), getitem, TaskRef((split, i)), 1)
        for g in range(groups.group_count):
            part_key = (split, i, 1, g)
            splits[part_key] = Task(part_key, _part, TaskRef((split, i)), g)
    for g in range(groups.group_count):
        refs = [TaskRef((split, i, 1, g)) for i in range(count)]
        for index, part in block_parts(cubes):
            key = (read, g, *index)
            reads[key] = Task(key, _read_parts, cubes, part, *refs)
            for i in range(count):
                own = (read, g, *index, "of", i)
                reads[own] = Task(own, getitem, TaskRef(key), i)
    for i, (outer, lengths) in enumerate(zip(indices, product(*leading), strict=True)):
        for index, shape in block_shapes(blocks):
            key, inner = (name, *outer, *index), block_index(cubes, index)
            refs = [TaskRef((read, g, *inner, "of", i)) for g in range(groups.group_count)]
            order = TaskRef((split, i, 0))
            gathers[key] = Task(key, _merge, (*lengths, *shape), source.dtype, order, *refs)
    layers = {split: splits, read: reads, name: gathers}
    depends = {split: {each.name for each in positions}, read: {split}, name: {split, read}}
    for each in positions:
        layers.update(each.dask.layers)
        depends.update(each.dask.dependencies)
    chunks = (*leading, *blocks)
    meta = np.empty((0,) * len(chunks), source.dtype)
    return core.Array(HighLevelGraph(layers, depends), name, chunks, meta=meta)


def _divide(groups: _Groups, *positions: np.ndarray) -> _Divided:
    """Divide a block of positions: what a task does."""
    starts = [
        within_bounds(each.reshape(-1), axis, size)
        for axis, (each, size) in enumerate(zip(positions, groups.sizes, strict=True))
    ]
    numbers = groups.numbers(starts)
    order = stable_order(numbers, groups.group_count)
    edges = np.searchsorted(numbers[order], np.arange(groups.group_count + 1))
    parts = [[start[order[a:b]] for start in starts] for a, b in pairwise(edges)]
    return _Divided(parts, order)


def _part(divided: _Divided, group: int) -> list[np.ndarray]:
    """Return the positions of a group: what a task does."""
    return divided.parts[group]


def _read_parts(cubes: Cubes, part: Region, *starts: list[np.ndarray]) -> list[np.ndarray]:
    """Read the cubes of a group, and divide them by blocks: what a task does."""
    joined = [np.concatenate(each) for each in zip(*starts, strict=True)]
    values = cubes.read(joined, part)
    return np.split(values, np.cumsum([len(each[0]) for each in starts])[:-1])


def _merge(
    shape: Shape, dtype: np.dtype[Any], order: np.ndarray, *groups: np.ndarray
) -> np.ndarray:
    """Put the cubes of all groups in the order of the positions: what a task does."""
    values = np.concatenate(groups)
    out = np.empty(values.shape, dtype)
    out[order] = values
    return out.reshape(shape)
