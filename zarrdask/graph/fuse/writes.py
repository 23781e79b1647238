"""Bundles: many small blocks that one task computes and writes, one after another.

Dask and its schedulers take up to a millisecond for a task, which is longer than writing a small
block. So where the blocks of a write are independent, consecutive ones become one task. Only the
graph changes: each block is computed and written as it would be by a task of its own. Blocks that
are on their way to a store with latency do not keep the next ones waiting.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, Task, TaskRef
from dask.blockwise import optimize_blockwise
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from zarrdask.chunks.region import reading_ahead
from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.graph.block_writes import BlockWrites, Place, write_in_one_task
from zarrdask.graph.fuse.block_function import Block, Chain, far_blocks, find_chain
from zarrdask.graph.fuse.limits import FuseLimits
from zarrdask.graph.fuse.optimization import is_optimized
from zarrdask.graph.groups import group_bundles
from zarrdask.storage.in_flight import Requests


def bundled(writes: Sequence[BlockWrites]) -> list[da.Array]:
    """Return the tasks of writes that are computed together, with small blocks in bundles.

    Blocks are put in bundles if they are independent: if no other block, or only a few, needs what
    each is computed from. A bundle has up to ``zarrdask.bundle-blocks`` blocks, which have up to
    ``zarrdask.bundle-size`` bytes together. Other writes are not changed. The result are the
    receipts of all writes: arrays with an element for each block, and a task for each bundle.
    """
    writes = [write for write in writes if write.missing is None or write.missing]
    remaining = {write.receipts.name: write for write in writes}
    arrays, limits = list[da.Array](), FuseLimits.current()
    fusible = [name for name, write in remaining.items() if write.bundle_length(limits) > 1]
    if fusible and not EXPRESSIONS and is_optimized():
        graphs = [write.receipts.__dask_graph__() for write in writes]
        keys = [(name, *(0 for _ in write.blocks)) for name, write in remaining.items()]
        # As Dask is going to optimise it: tasks that one layer needs become part of that layer.
        graph = optimize_blockwise(HighLevelGraph.merge(*graphs), keys)
        for name in fusible:
            chain = find_chain(graph, name)
            if chain is not None:
                arrays.append(_chain_bundles(graph, chain, remaining.pop(name), limits))
        # Those that are resumed have tasks of their own: most of their blocks are stored.
        whole = {name: write for name, write in remaining.items() if write.missing is None}
        array, names = group_bundles(graph, whole, limits)
        if array is not None:
            arrays.append(array)
            remaining = {name: remaining[name] for name in remaining.keys() - names}
    return [*arrays, *(write.remaining() for write in remaining.values())]


@dataclass(frozen=True)
class ChainWrites:
    """What the bundles of one write have in common."""

    #: The function that computes and writes a block.
    chain: Chain
    #: The place where the blocks are stored.
    place: Place
    #: As in `BlockWrites`.
    repeats: np.ndarray | None

    def blocks(self, numbers: Sequence[int]) -> Iterator[Block]:
        """Yield the blocks with these numbers in C order."""
        axes = np.unravel_index(np.array(numbers), self.place.slices.numblocks)
        return zip(*(axis.tolist() for axis in axes), strict=True)


def write_chain(
    common: ChainWrites,
    numbers: Sequence[int],
    tasks: Mapping[Any, Any],
    needs: tuple[Any, ...],
    *results: Any,
) -> np.ndarray:
    """Compute and write blocks, and return the receipt, a number of units for each: a task.

    `tasks` are those that only these blocks need, and `results` those of the tasks `needs`.
    """
    place, repeats = common.place, common.repeats
    outside, items = dict(zip(needs, results, strict=True)), [*common.blocks(numbers)]
    compute = common.chain.given(outside, tasks)
    # Numbers of blocks of which nothing was stored: they hold the fill value only.
    blank = set[int]()

    def write(block: Block, requests: Requests) -> list[int]:
        repeat = -1 if repeats is None else int(repeats[block])
        if repeat in blank:
            return [0]
        try:
            count: int = compute(block).item()
        except BaseException as error:
            if error is not requests.error:  # which is one of an earlier block
                error.add_note(place.note(block))
            raise
        if repeat >= 0 and not count:
            blank.add(repeat)
        return [count]

    nbytes = place.nbytes(items[0])
    with reading_ahead(far_blocks(((common.chain, block) for block in items), outside)):
        return write_in_one_task([place], write, iter(items), count=len(items), nbytes=nbytes)


def _chain_bundles(
    graph: HighLevelGraph, chain: Chain, write: BlockWrites, limits: FuseLimits
) -> da.Array:
    """Return the bundles of one write."""
    layer = write.receipts.name
    name, shared = f"{layer}-bundles", f"{layer}-chain"
    common, needs = ChainWrites(chain, write.place, write.repeats), tuple(chain.needs)
    length = write.bundle_length(limits, reads_far=chain.is_far)
    blocks = range(write.block_count) if write.missing is None else write.missing
    parts = [blocks[at : at + length] for at in range(0, len(blocks), length)]
    bundles = dict[Any, Any]()
    for key, numbers in (((name, number), part) for number, part in enumerate(parts)):
        tasks = chain.tasks(graph, common.blocks(numbers)) if chain.layers else {}
        results = map(TaskRef, needs)
        bundles[key] = Task(key, write_chain, TaskRef(shared), numbers, tasks, needs, *results)
    # What the bundles have in common is one key, so that a worker receives it once.
    node = MaterializedLayer({shared: DataNode(shared, common)})
    outside = graph.dependencies[layer] - chain.layers
    below = graph.cull_layers(outside)
    tasks = MaterializedLayer(bundles, annotations=graph.layers[layer].annotations)
    whole = HighLevelGraph(
        {**below.layers, shared: node, name: tasks},
        {**below.dependencies, shared: set(), name: {shared, *outside}},
    )
    chunks = (tuple(map(len, parts)),)
    return da.Array(whole, name, chunks, meta=np.empty(0, np.intp))
