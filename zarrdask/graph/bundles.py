"""Bundles: many small blocks that one task computes and writes, one after another.

Dask and its schedulers take up to a millisecond for a task, which is longer than writing a small
block. So where the blocks of a write are independent, consecutive ones become one task. Only the
graph changes: each block is computed and written as it would be by a task of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask._task_spec import DataNode, GraphNode, Task, TaskRef, convert_legacy_task
from dask.blockwise import Blockwise, BlockwiseDep, blockwise_token, optimize_blockwise
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.layers import ArrayBlockwiseDep, ArraySliceDep

from zarrdask import config
from zarrdask.execution.client import thread_count
from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.execution.fused import prepared, resolve
from zarrdask.execution.handle import Target
from zarrdask.graph.missing import share_missing
from zarrdask.plan.align import Chunks

#: The smallest number of bundles of a write: for each thread, and at all. If they were fewer, a
#: thread without work would wait longer for the last one.
_BUNDLES_PER_THREAD = 8
_MIN_BUNDLES = 32

#: The number of a block along each axis.
Block = tuple[int, ...]


class BlockWrites(NamedTuple):
    """The tasks that write a Dask array, one for each block.

    Attributes
    ----------
    receipts : dask.array.Array
        For each block, the number of units that its task stored.
    blocks : tuple of tuple of int
        The lengths of the blocks along each axis.
    target : Target
        The target that the tasks hold.
    repeats : ndarray of int or None
        A number for each block, the same for equal blocks of a new array; -1 for others.
    """

    receipts: da.Array
    blocks: Chunks
    target: Target
    repeats: np.ndarray | None = None

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return prod(map(len, self.blocks))

    @property
    def bundle_length(self) -> int:
        """The number of blocks in a bundle; bundles are of use from two blocks on."""
        itemsize: int = self.target.handle.chunks.metadata.dtype.itemsize
        block_bytes = prod(map(max, self.blocks)) * itemsize
        return min(
            int(config.get("bundle-size")) // max(block_bytes, 1),
            int(config.get("bundle-blocks")),
            self.block_count // max(_MIN_BUNDLES, _BUNDLES_PER_THREAD * thread_count()),
        )


class Part(NamedTuple):
    """An input of which each block has a part of its own.

    Attributes
    ----------
    key : str
        The name of the input in the task of a block.
    source : BlockwiseDep or str
        The parts by their numbers; or the name of a layer of tasks that compute them.
    axes : tuple of (int or None)
        For each axis of the source the axis of the blocks; None if the source has a single part
        along it.
    """

    key: str
    source: BlockwiseDep | str
    axes: tuple[int | None, ...]

    def number(self, block: Block) -> Block:
        """Return the number of the part that a block needs."""
        return tuple(0 if axis is None else block[axis] for axis in self.axes)


@dataclass(frozen=True)
class Chain:
    """The function that computes and writes any block of a Dask array.

    Attributes
    ----------
    task : Task
        The task of a block, whose inputs have the names of `constants` and `parts`.
    constants : mapping
        The inputs that all blocks share: values, or references to results of other tasks.
    parts : tuple of Part
        The other inputs.
    slices : ArraySliceDep
        The slices of each block in the written array.
    target : Target
        The target that the blocks are written to.
    repeats : ndarray of int or None
        As in `BlockWrites`.
    """

    task: Task
    constants: Mapping[str, Any]
    parts: tuple[Part, ...]
    slices: ArraySliceDep
    target: Target
    repeats: np.ndarray | None

    @property
    def needs(self) -> frozenset[Any]:
        """The keys of tasks outside of the bundles, whose results all blocks need."""
        inputs = {*self.constants, *(part.key for part in self.parts)}
        references = map(_dependencies, self.constants.values())
        return frozenset(self.task.dependencies - inputs).union(*references)

    @property
    def layers(self) -> frozenset[str]:
        """The layers whose tasks become parts of the bundles."""
        return frozenset(part.source for part in self.parts if isinstance(part.source, str))

    def keys_in(self, block: Block) -> Iterator[tuple[Any, ...]]:
        """Yield the keys of the tasks in `layers` that compute the inputs of a block."""
        for part in self.parts:
            if isinstance(part.source, str):
                yield (part.source, *part.number(block))

    def blocks(self, numbers: Iterable[int]) -> Iterator[Block]:
        """Yield the blocks with these numbers in C order."""
        axes = np.unravel_index(np.array(numbers), self.slices.numblocks)
        return zip(*(axis.tolist() for axis in axes), strict=True)

    def run(
        self, numbers: Iterable[int], tasks: Mapping[Any, Any], results: Mapping[Any, Any]
    ) -> np.ndarray:
        """Compute and write blocks, one after another.

        Parameters
        ----------
        numbers : iterable of int
            The numbers of the blocks in C order.
        tasks : mapping of key to (GraphNode or Any)
            The tasks of `layers` that the blocks need, or their values.
        results : mapping of key to Any
            The results of the tasks in `needs`.

        Returns
        -------
        ndarray
            The number of stored units of each block.
        """
        compute, counts = prepared(self.task), list[int]()
        # Numbers of blocks of which nothing was stored: they hold the fill value only.
        blank = set[int]()
        shared = {**results, **{k: resolve(v, results) for k, v in self.constants.items()}}
        for block in self.blocks(numbers):
            repeat = -1 if self.repeats is None else int(self.repeats[block])
            if repeat in blank:
                counts.append(0)
                continue
            values = dict(shared)
            try:
                for part in self.parts:
                    number, source = part.number(block), part.source
                    value = tasks[source, *number] if isinstance(source, str) else source[number]
                    values[part.key] = resolve(value, {})
                counts.append(compute(values).item())
            except BaseException as error:
                error.add_note(f"raised for block {block}, {self._where(block)}")
                raise
            if repeat >= 0 and not counts[-1]:
                blank.add(repeat)
        return np.array(counts, np.intp)

    def _where(self, block: Block) -> str:
        """Return where a block is stored, for an error."""
        first, *others = self.target.keys(self.slices[block]) or ["nothing"]
        more = f" and {len(others)} others" if others else ""
        return f"stored as {first}{more} in {self.target.handle.chunks.store.url}"


def write_bundle(
    chain: Chain,
    numbers: range,
    tasks: Mapping[Any, Any],
    needs: tuple[Any, ...],
    *results: Any,
) -> np.ndarray:
    """Compute and write the blocks of a bundle, and return its receipt: the task."""
    return chain.run(numbers, tasks, dict(zip(needs, results, strict=True)))


def bundled(writes: Sequence[BlockWrites]) -> list[da.Array]:
    """Return the tasks of writes that are computed together, with small blocks in bundles.

    Blocks are put in bundles if they are independent: if each is computed from its own parts of
    stored arrays, from constants, and from its own tasks without dependencies, such as those of
    random numbers and of blocks in memory. A bundle has up to ``zarrdask.bundle-blocks`` blocks,
    which have up to ``zarrdask.bundle-size`` bytes together. Other writes are not changed.

    Parameters
    ----------
    writes : sequence of BlockWrites
        The writes.

    Returns
    -------
    list of dask.array.Array
        The receipts of each write, in blocks that have an element for each block of a bundle.
    """
    lengths = [write.bundle_length for write in writes]
    arrays = [write.receipts for write in writes]
    if max(lengths, default=0) < 2 or EXPRESSIONS or not _is_optimized():
        return arrays
    # As Dask is going to optimise it: tasks that a single write needs become part of its layer.
    keys = [(x.name, *(0 for _ in x.chunks)) for x in arrays]
    merged = HighLevelGraph.merge(*(x.__dask_graph__() for x in arrays))
    graph = optimize_blockwise(merged, keys)
    return [
        _bundled(graph, write, length) if length > 1 else write.receipts
        for write, length in zip(writes, lengths, strict=True)
    ]


def _is_optimized() -> bool:
    """Whether Dask optimises the graphs of arrays in its usual way."""
    is_fused = dask.config.get("optimization.fuse.active", None) is not False
    return is_fused and dask.config.get("array_optimize", share_missing) is share_missing


def _bundled(graph: HighLevelGraph, write: BlockWrites, length: int) -> da.Array:
    """Return the tasks of one write, in bundles if its blocks are independent."""
    layer = graph.layers[write.receipts.name]
    chain = _chain(graph, layer, write) if isinstance(layer, Blockwise) else None
    if chain is None:
        return write.receipts
    name, shared = f"{layer.output}-bundles", f"{layer.output}-chain"
    needs = tuple(chain.needs)
    results = [TaskRef(key) for key in needs]
    end, bundles = write.block_count, dict[Any, Any]()
    parts = [range(at, min(at + length, end)) for at in range(0, end, length)]
    for number, numbers in enumerate(parts):
        tasks = _tasks(
            graph, [key for block in chain.blocks(numbers) for key in chain.keys_in(block)]
        )
        if any(map(_dependencies, tasks.values())):
            return write.receipts
        key = name, number
        bundles[key] = Task(key, write_bundle, TaskRef(shared), numbers, tasks, needs, *results)
    # What the bundles have in common is one key, so that a worker receives it once.
    common = MaterializedLayer({shared: DataNode(shared, chain)})
    below = graph.dependencies[layer.output] - chain.layers
    dependencies = _dependencies_of(graph, below)
    layers = {each: graph.layers[each] for each in dependencies}
    layers |= {shared: common, name: MaterializedLayer(bundles, annotations=layer.annotations)}
    dependencies |= {shared: set(), name: {shared, *below}}
    chunks = (tuple(map(len, parts)),)
    return da.Array(HighLevelGraph(layers, dependencies), name, chunks, meta=np.empty(0, np.intp))


def _chain(graph: HighLevelGraph, layer: Blockwise, write: BlockWrites) -> Chain | None:
    """Return the function of the blocks of a layer; None if they are not independent."""
    constants, parts = dict[str, Any](), list[Part]()
    for number, (name, index) in enumerate(layer.indices):
        key = blockwise_token(number)
        if index is None:
            constants[key] = name
            continue
        counts, source = layer.numblocks[name], layer.io_deps.get(name, name)
        if not set(index) <= set(layer.output_indices):
            return None
        if isinstance(source, str) and prod(counts) == 1:
            constants[key] = TaskRef((source, *(0 for _ in counts)))
        elif _is_independent(graph, source, write):
            axes = map(layer.output_indices.index, index)
            pairs = zip(axes, counts, strict=True)
            parts.append(Part(key, source, tuple(None if n == 1 else axis for axis, n in pairs)))
        else:
            return None
    slices = ArraySliceDep(write.blocks)
    return Chain(layer.task, constants, tuple(parts), slices, write.target, write.repeats)


def _is_independent(graph: HighLevelGraph, source: Any, write: BlockWrites) -> bool:
    """Whether the parts of a source are computed without other tasks, and needed once."""
    if not isinstance(source, str):
        return isinstance(source, ArrayBlockwiseDep) and not source.produces_tasks
    layer = graph.layers.get(source)
    uses = sum(source in each for each in graph.dependencies.values())
    is_root = isinstance(layer, MaterializedLayer) and not graph.dependencies[source]
    return is_root and uses == 1 and len(layer) == write.block_count


def _tasks(graph: HighLevelGraph, keys: Iterable[Any]) -> dict[Any, Any]:
    """Return tasks, or their values, by key."""
    return {key: convert_legacy_task(key, graph.layers[key[0]][key], ()) for key in keys}


def _dependencies(value: Any) -> Iterable[Any]:
    """Return the keys that a task, or an argument of one, refers to."""
    if isinstance(value, TaskRef):
        return (value.key,)
    return value.dependencies if isinstance(value, GraphNode) else ()


def _dependencies_of(graph: HighLevelGraph, names: Iterable[str]) -> dict[str, Any]:
    """Return layers and all layers below them, each with its dependencies."""
    pending, found = list(names), dict[str, Any]()
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = graph.dependencies[name]
            pending.extend(found[name])
    return found
