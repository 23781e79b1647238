"""Bundles of blocks that are all computed in the same way, each from its own inputs.

This is the rule: Dask fuses element-wise operations, and all that it maps over blocks, to one
symbolic layer. The tasks of such a layer are created where they run, so that neither this process
nor a scheduler does anything for a single block.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, GraphNode, Task, TaskRef, convert_legacy_task
from dask.blockwise import Blockwise, BlockwiseDep, blockwise_token
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.layers import ArrayBlockwiseDep

from zarrdask.execution.fused import prepared, resolve
from zarrdask.graph.block_writes import Block, BlockWrites, Place, in_one_task, subgraph
from zarrdask.runtime.turns import Pace, in_turns

#: The time in seconds for one block above which threads do not take turns: to compute and write a
#: small block holds the GIL for a part of it.
_SLOW_SECONDS = 400e-6


class Part(NamedTuple):
    """An input of which each block has a part of its own."""

    #: The name of the input in the task of a block.
    key: str
    #: The parts by their numbers; or the name of a layer of tasks that compute them.
    source: BlockwiseDep | str
    #: For each axis of the source the axis of the blocks; None if the source has a single part
    #: along it.
    axes: tuple[int | None, ...]

    def number(self, block: Block) -> Block:
        """Return the number of the part that a block needs."""
        return tuple(0 if axis is None else block[axis] for axis in self.axes)

    def value(self, block: Block, tasks: Mapping[Any, Any]) -> Any:
        """Return the part that a block needs, or the task, of `tasks`, that computes it."""
        number, source = self.number(block), self.source
        return tasks[source, *number] if isinstance(source, str) else source[number]


@dataclass(frozen=True)
class Chain:
    """The function that computes and writes any block of a Dask array."""

    #: The task of a block, whose inputs have the names of `constants` and `parts`.
    task: Task
    #: The inputs that all blocks share: values, or references to results of other tasks.
    constants: Mapping[str, Any]
    #: The other inputs.
    parts: tuple[Part, ...]
    #: The place where the blocks are stored.
    place: Place
    #: As in `BlockWrites`.
    repeats: np.ndarray | None

    @cached_property
    def pace(self) -> Pace:
        """The pace of the threads of this process that write blocks."""
        return Pace()

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
        axes = np.unravel_index(np.array(numbers), self.place.slices.numblocks)
        return zip(*(axis.tolist() for axis in axes), strict=True)

    def run(
        self, numbers: Sequence[int], tasks: Mapping[Any, Any], results: Mapping[Any, Any]
    ) -> np.ndarray:
        """Compute and write blocks, one after another.

        Parameters
        ----------
        numbers : sequence of int
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

        def run(blocks: Iterable[Block]) -> int:
            before = len(counts)
            for block in blocks:
                repeat = -1 if self.repeats is None else int(self.repeats[block])
                if repeat in blank:
                    counts.append(0)
                    continue
                values = dict(shared)
                try:
                    for part in self.parts:
                        values[part.key] = resolve(part.value(block, tasks), {})
                    counts.append(compute(values).item())
                except BaseException as error:
                    if error is not requests.error:  # which is one of an earlier block
                        error.add_note(self.place.note(block))
                    raise
                if repeat >= 0 and not counts[-1]:
                    blank.add(repeat)
            return len(counts) - before

        items = self.blocks(numbers)
        with in_one_task([self.place]) as requests:
            if self.place.target.handle.chunks.units.seekable:
                count, nbytes = len(numbers), self.place.nbytes(next(self.blocks(numbers)))
                slow, pace = _SLOW_SECONDS, self.pace
                in_turns(run, items, count=count, nbytes=nbytes, slow=slow, pace=pace)
            else:
                run(items)
        return np.array(counts, np.intp)


def write_chain(
    chain: Chain,
    numbers: range,
    tasks: Mapping[Any, Any],
    needs: tuple[Any, ...],
    *results: Any,
) -> np.ndarray:
    """Compute and write the blocks of a bundle, and return its receipt: the task."""
    return chain.run(numbers, tasks, dict(zip(needs, results, strict=True)))


def chain_bundles(graph: HighLevelGraph, write: BlockWrites, length: int) -> da.Array | None:
    """Return the bundles of one write, of `length` blocks; None if they are not those of a chain.

    The layers of Blockwise in the graph are fused.
    """
    layer = graph.layers[write.receipts.name]
    chain = _chain(graph, layer, write) if isinstance(layer, Blockwise) else None
    if chain is None:
        return None
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
            return None
        key = name, number
        bundles[key] = Task(key, write_chain, TaskRef(shared), numbers, tasks, needs, *results)
    # What the bundles have in common is one key, so that a worker receives it once.
    common = MaterializedLayer({shared: DataNode(shared, chain)})
    outside = graph.dependencies[layer.output] - chain.layers
    below = subgraph(graph, outside)
    tasks = MaterializedLayer(bundles, annotations=layer.annotations)
    whole = HighLevelGraph(
        {**below.layers, shared: common, name: tasks},
        {**below.dependencies, shared: set(), name: {shared, *outside}},
    )
    chunks = (tuple(map(len, parts)),)
    return da.Array(whole, name, chunks, meta=np.empty(0, np.intp))


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
    return Chain(layer.task, constants, tuple(parts), write.place, write.repeats)


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
