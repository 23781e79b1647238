"""The inputs of fused tasks: the functions that compute blocks, and the inputs of these."""

from collections.abc import Iterable, Mapping
from typing import Any

from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from zarrdask.parallel.execution.dask_private import DataNode
from zarrdask.parallel.graph.fuse.block_function import BlockFunction
from zarrdask.parallel.graph.fuse.find import FusedTask


def function_layers(functions: Iterable[BlockFunction]) -> dict[str, MaterializedLayer]:
    """Return a layer for each function, with one key, so that a worker receives it once."""
    keys = {_key_of(each.name): each for each in functions}
    return {key: MaterializedLayer({key: DataNode(key, each)}) for key, each in keys.items()}


def _key_of(name: str) -> str:
    return f"{name}-function"


def needed_layers(graph: HighLevelGraph, function: BlockFunction) -> set[str]:
    """Return the layers whose results all blocks need, of those that a layer depends on."""
    return {*graph.dependencies[function.name]} - function.layers


def inputs_of(
    graph: HighLevelGraph, functions: Mapping[str, BlockFunction], fused: FusedTask
) -> tuple[dict[Any, Any], tuple[Any, ...]]:
    """Return the tasks that only the blocks of a fused task need, and the keys of other tasks."""
    inputs, needs = dict[Any, Any](), {*fused.needs}
    for function in map(functions.__getitem__, fused.functions):
        needs |= {_key_of(function.name), *function.needs}
        if function.layers:
            keys = (key for key in (*fused.blocks, *fused.roots) if key[0] == function.name)
            inputs.update(function.tasks(graph, (key[1:] for key in keys)))
    return inputs, tuple(needs)
