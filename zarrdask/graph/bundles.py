"""Bundles: many small blocks that one task computes and writes, one after another.

Dask and its schedulers take up to a millisecond for a task, which is longer than writing a small
block. So where the blocks of a write are independent, consecutive ones become one task. Only the
graph changes: each block is computed and written as it would be by a task of its own. Blocks that
are on their way to a store with latency do not keep the next ones waiting.
"""

from collections.abc import Sequence

import dask
import dask.array as da
from dask.blockwise import optimize_blockwise
from dask.highlevelgraph import HighLevelGraph

from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.graph.block_writes import BlockWrites
from zarrdask.graph.chains import chain_bundles
from zarrdask.graph.groups import group_bundles
from zarrdask.graph.missing import share_missing


def bundled(writes: Sequence[BlockWrites]) -> list[da.Array]:
    """Return the tasks of writes that are computed together, with small blocks in bundles.

    Blocks are put in bundles if they are independent: if no other block, or only a few, needs what
    each is computed from. A bundle has up to ``zarrdask.bundle-blocks`` blocks, which have up to
    ``zarrdask.bundle-size`` bytes together. Other writes are not changed. The result are the
    receipts of all writes: arrays with an element for each block, and a task for each bundle.
    """
    remaining = {write.receipts.name: write for write in writes}
    lengths = {name: write.bundle_length for name, write in remaining.items()}
    arrays = list[da.Array]()
    if max(lengths.values(), default=0) > 1 and not EXPRESSIONS and _is_optimized():
        graphs = [write.receipts.__dask_graph__() for write in writes]
        keys = [(name, *(0 for _ in write.blocks)) for name, write in remaining.items()]
        # As Dask is going to optimise it: tasks that one layer needs become part of that layer.
        graph = optimize_blockwise(HighLevelGraph.merge(*graphs), keys)
        for name, length in lengths.items():
            array = chain_bundles(graph, remaining[name], length) if length > 1 else None
            if array is not None:
                arrays.append(array)
                del remaining[name]
        array, names = group_bundles(graph, remaining, lengths)
        if array is not None:
            arrays.append(array)
            remaining = {name: remaining[name] for name in remaining.keys() - names}
    return [*arrays, *(write.receipts for write in remaining.values())]


def _is_optimized() -> bool:
    """Whether Dask optimises the graphs of arrays in its usual way."""
    is_fused = dask.config.get("optimization.fuse.active", None) is not False
    return is_fused and dask.config.get("array_optimize", share_missing) is share_missing
