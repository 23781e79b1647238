"""Find the layers whose blocks a `BlockFunction` computes."""

from collections.abc import Callable, Collection
from math import prod
from typing import Any

from dask.blockwise import Blockwise, blockwise_token
from dask.core import reverse_dict
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.layers import ArrayBlockwiseDep

from zarrdask.parallel.execution.dask_private import TaskRef, convert_legacy_task
from zarrdask.parallel.graph.fuse.block_function import BlockFunction, Part
from zarrdask.parallel.graph.fuse.block_tasks import BlockTasks
from zarrdask.parallel.graph.fuse.culling import references_of

#: Functions by the names of their layers.
Functions = dict[str, BlockFunction]


def find_functions(
    graph: HighLevelGraph,
    excluded: Collection[str] = (),
    accepts: Callable[[BlockFunction], bool] = lambda _: True,
) -> Functions:
    """Return the functions of layers whose blocks only single tasks need, and may compute.

    Layers of Blockwise are fused.
    """
    above = reverse_dict(graph.dependencies)
    functions = Functions()
    for name, layer in graph.layers.items():
        if name in excluded or layer.annotations:
            continue
        if not all(is_single(graph.layers[other]) for other in above[name]):
            continue
        function = find_function(graph, name)
        if function is not None and accepts(function):
            functions[name] = function
    return functions


def is_single(layer: Any) -> bool:
    """Whether a layer has single tasks, which may become part of others."""
    # Annotations belong to tasks that would vanish.
    return isinstance(layer, MaterializedLayer) and not layer.annotations


def find_function(graph: HighLevelGraph, name: str) -> BlockFunction | None:
    """Return the function of a layer; None if its blocks are not independent of each other.

    Layers of Blockwise are fused.
    """
    layer = graph.layers[name]
    if not isinstance(layer, Blockwise):
        return None
    constants, parts = dict[str, Any](), list[Part]()
    count = prod(layer.dims[index] for index in layer.output_indices)
    for number, (source, index) in enumerate(layer.indices):
        key = blockwise_token(number)
        if index is None:
            constants[key] = source
            continue
        counts, source = layer.numblocks[source], layer.io_deps.get(source, source)
        if not set(index) <= set(layer.output_indices):
            return None
        if isinstance(source, str) and prod(counts) == 1:
            constants[key] = TaskRef((source, *(0 for _ in counts)))
        elif _is_independent(graph, source, count):
            axes = map(layer.output_indices.index, index)
            pairs = zip(axes, counts, strict=True)
            parts.append(Part(key, source, tuple(None if n == 1 else axis for axis, n in pairs)))
        else:
            return None
    return BlockFunction(name, layer.task, constants, tuple(parts))


def _is_independent(graph: HighLevelGraph, source: Any, count: int) -> bool:
    """Whether the parts of a source are computed without other tasks, and needed once."""
    if not isinstance(source, str):
        return isinstance(source, BlockTasks) or (
            isinstance(source, ArrayBlockwiseDep) and not source.produces_tasks
        )
    layer = graph.layers.get(source)
    is_root = isinstance(layer, MaterializedLayer) and not graph.dependencies[source]
    if not is_root or len(layer) != count:
        return False
    if sum(source in needs for needs in graph.dependencies.values()) > 1:
        return False
    return not any(references_of(convert_legacy_task(k, v, ())) for k, v in layer.items())
