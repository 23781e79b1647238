"""Fuse the writes of small blocks.

Dask and its schedulers take up to a millisecond for a task, which is longer than writing a small
block. So where the blocks of a write are independent, consecutive ones are written by one task.
Only the graph changes: each block is computed and written as it would be by a task of its own.
In a remote store, the next blocks are computed while the requests of earlier ones are in flight.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import dask.array as da
import numpy as np
from dask.array import core
from dask.blockwise import optimize_blockwise
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from zarrdask.parallel.execution.dask_private import (
    DataNode,
    GraphNode,
    Task,
    TaskRef,
    convert_legacy_graph,
)
from zarrdask.parallel.graph.fuse.block_function import Block, BlockFunction
from zarrdask.parallel.graph.fuse.culling import culled
from zarrdask.parallel.graph.fuse.evaluate import write_fused
from zarrdask.parallel.graph.fuse.find import FusedTask, find_fused
from zarrdask.parallel.graph.fuse.find_functions import Functions, find_function, find_functions
from zarrdask.parallel.graph.fuse.function_layers import function_layers, inputs_of, needed_layers
from zarrdask.parallel.graph.fuse.limits import FuseLimits
from zarrdask.parallel.graph.fuse.optimization import is_optimized
from zarrdask.parallel.graph.fuse.task_steps import Tasks
from zarrdask.parallel.graph.missing_blocks import sources_of
from zarrdask.parallel.graph.writing.block_writes import BlockWrites

#: The largest number of tasks that are fused for each block that is written.
_MAX_TASKS_PER_BLOCK = 8
#: The largest number of blocks that are written together, as they are computed from the same ones.
_MAX_WRITES = 8


def fuse_writes(writes: Sequence[BlockWrites]) -> list[da.Array]:
    """Return the tasks of writes that are computed together, with tasks of small blocks fused.

    They are if the blocks are independent: if no other block, or only a few, needs what each is
    computed from. Other writes are not changed. The result are the receipts of all writes: arrays
    with an element for each block, and a task for each fused task.
    """
    writes = [write for write in writes if write.missing is None or write.missing]
    remaining = {write.receipts.name: write for write in writes}
    arrays, limits = list[da.Array](), FuseLimits.current()
    if all(write.length(limits) < 2 for write in writes) or not is_optimized():
        return [write.remaining() for write in writes]
    graphs = [write.receipts.__dask_graph__() for write in writes]
    keys = [(name, *(0 for _ in write.blocks)) for name, write in remaining.items()]
    # As Dask is going to optimise it: tasks that one layer needs become part of that layer.
    graph = optimize_blockwise(HighLevelGraph.merge(*graphs), keys)
    for name, write in [*remaining.items()]:
        function = find_function(graph, name) if write.length(limits) > 1 else None
        if function is not None:
            arrays.append(_fuse_layer(graph, write, function, limits))
            del remaining[name]
    # Resumed writes have tasks of their own, as most of their blocks are stored.
    whole = {name: write for name, write in remaining.items() if write.missing is None}
    more, names = _fuse_together(graph.cull_layers(whole), whole, limits)
    arrays += more
    remaining = {name: remaining[name] for name in remaining.keys() - names}
    return [*arrays, *(write.remaining() for write in remaining.values())]


@dataclass(frozen=True)
class _Blocks(Sequence[Any]):
    """The keys of consecutive blocks of a layer, in C order."""

    name: str
    #: The number of blocks of the layer along each axis.
    counts: Block
    #: The positions of the blocks.
    positions: Sequence[int]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, item: Any) -> Any:
        block = np.unravel_index(self.positions[item], self.counts)
        return self.name, *map(int, block)

    def __iter__(self) -> Iterator[Any]:
        axes = np.unravel_index(np.array(self.positions), self.counts)
        blocks = zip(*(axis.tolist() for axis in axes), strict=True)
        return ((self.name, *block) for block in blocks) if axes else iter([(self.name,)])


def _fuse_layer(
    graph: HighLevelGraph, write: BlockWrites, function: BlockFunction, limits: FuseLimits
) -> da.Array:
    """Return the receipts of a write whose blocks one function computes, each from its own input.

    Neither the blocks nor their tasks are looked at one by one.
    """
    length = write.length(limits, function.sources)
    counts = tuple(map(len, write.blocks))
    blocks = range(write.block_count) if write.missing is None else write.missing
    ranges = (blocks[at : at + length] for at in range(0, len(blocks), length))
    name = function.name
    fused = [FusedTask(_Blocks(name, counts, each), {}, (), frozenset([name])) for each in ranges]
    return _receipts(graph, [write], fused, {name: function})


def _fuse_together(
    graph: HighLevelGraph, writes: Mapping[str, BlockWrites], limits: FuseLimits
) -> tuple[list[da.Array], set[str]]:
    """Return the receipts of writes whose blocks are fused, if there are any, and their names.

    Slices, concatenated arrays and inputs that several arrays share have single tasks. `writes` are
    all that the graph has, by the names of their layers.
    """
    # Annotations belong to tasks that would vanish.
    if any(layer.annotations for layer in graph.layers.values()):
        return [], set()
    lengths = {name: write.length(limits) for name, write in writes.items()}
    names = {name for name in writes if lengths[name] > 1 and _is_local(graph, writes[name])}
    if not names:
        return [], names
    functions = find_functions(graph)
    sources = [each for layer in graph.layers.values() for each in sources_of(layer)]
    length = min(writes[name].length(limits, sources) for name in names)
    tasks, results = _single_tasks(graph, functions), _keys(writes.values())
    needs = dict.fromkeys(need for each in functions.values() for need in each.needs)
    groups = [*find_fused(tasks, {**results, **needs}, length, functions=functions, whole=True)]
    groups = [each for each in groups if _is_small(each)]
    # Which layers have roots of the same fused task, and how many blocks are in one.
    together = {frozenset(root[0] for root in each.roots) for each in groups}
    counts = Counter(root[0] for each in groups for root in each.roots)
    names = {name for name in names if counts[name] == writes[name].block_count}
    while others := set().union(*(each & names for each in together if not each <= names)):
        names -= others
    if not names:
        return [], names
    groups = [*_joined((each for each in groups if each.roots[0][0] in names), length)]
    shared = {need: tasks[need] for each in groups for need in each.needs}
    return [_receipts(graph, [writes[name] for name in names], groups, functions, shared)], names


def _keys(writes: Iterable[BlockWrites]) -> dict[Any, None]:
    """Return the keys of the blocks of writes, in order."""
    return {key: None for write in writes for key in flatten(write.receipts.__dask_keys__())}


def _single_tasks(graph: HighLevelGraph, functions: Functions) -> Tasks:
    """Return the tasks of a graph, without the tasks of functions and of the layers they need."""
    left_out = {*functions}.union(*(each.layers for each in functions.values()))
    names = (name for name in graph._toposort_layers() if name not in left_out)
    tasks = {key: task for name in names for key, task in graph.layers[name].items()}
    if not all(isinstance(task, GraphNode) for task in tasks.values()):
        tasks = convert_legacy_graph(tasks, graph.get_all_external_keys())
    return tasks


def _is_local(graph: HighLevelGraph, write: BlockWrites) -> bool:
    """Whether blocks around the middle, along each axis, can be fused: this looks at few tasks."""
    name, middle = write.receipts.name, [len(axis) // 2 for axis in write.blocks]
    keys = {
        (name, *middle[:axis], number, *middle[axis + 1 :]): None
        for axis, at in enumerate(middle)
        for number in range(at - _MAX_WRITES // 2, at + _MAX_WRITES // 2 + 1)
        if 0 <= number < len(write.blocks[axis])
    }
    sample = culled(graph.cull_layers([name]), keys)
    if sum(map(len, sample.layers.values())) > 2 * _MAX_TASKS_PER_BLOCK * len(keys):
        return False
    fused = find_fused(_single_tasks(sample, {}), keys, write.block_count, whole=True)
    return sum(len(each.roots) for each in fused if _is_small(each)) == len(keys)


def _is_small(fused: FusedTask) -> bool:
    count = len(fused.roots)
    return count <= _MAX_WRITES and len(fused.tasks) <= _MAX_TASKS_PER_BLOCK * count


def _joined(parts: Iterable[FusedTask], length: int) -> Iterator[FusedTask]:
    """Join consecutive fused tasks up to so many blocks."""
    joined, count = list[FusedTask](), 0
    for part in parts:
        if joined and count + len(part.roots) > length:
            yield FusedTask.union(joined)
            joined, count = [], 0
        joined.append(part)
        count += len(part.roots)
    yield FusedTask.union(joined)


def _receipts(
    graph: HighLevelGraph,
    writes: Collection[BlockWrites],
    fused: Sequence[FusedTask],
    functions: Functions,
    shared: Tasks = MappingProxyType({}),
) -> da.Array:
    """Return the fused tasks of writes as a Dask array, with an element for each block."""
    name = f"{min(write.receipts.name for write in writes)}-fused"
    where, tasks, used = f"{name}-targets", dict[Any, Any](), set[str]()
    for number, each in enumerate(fused):
        inputs, needs = inputs_of(graph, functions, each)
        used |= each.functions
        arguments = TaskRef(where), each, inputs, needs, *map(TaskRef, needs)
        tasks[name, number] = Task((name, number), write_fused, *arguments)
    functions = {each: functions[each] for each in used}
    layers = dict[str, Any](function_layers(functions.values()))
    # In one key, so that a worker receives them once.
    targets = {write.receipts.name: write.target for write in writes}
    layers[where] = MaterializedLayer({where: DataNode(where, targets), **shared})
    outside = set().union(*(needed_layers(graph, each) for each in functions.values()))
    below = graph.cull_layers(outside)
    annotations = next(graph.layers[write.receipts.name].annotations for write in writes)
    whole = HighLevelGraph(
        {**below.layers, **layers, name: MaterializedLayer(tasks, annotations=annotations)},
        {**below.dependencies, **{key: set() for key in layers}, name: {*layers, *outside}},
    )
    chunks = (tuple(len(each.roots) for each in fused),)
    return core.Array(whole, name, chunks, meta=np.empty(0, np.intp))
