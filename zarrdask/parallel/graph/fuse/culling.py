"""Cull graphs: leave out the tasks that no result depends on."""

from collections.abc import Iterable
from typing import Any

from dask.blockwise import Blockwise
from dask.highlevelgraph import HighLevelGraph

from zarrdask.parallel.execution.dask_private import GraphNode, TaskRef

#: A name that no task has.
_NONE = ("",)


def culled(graph: HighLevelGraph, keys: Iterable[Any]) -> HighLevelGraph:
    """Return a graph with only the tasks that some keys are computed from.

    Dask keeps layers whole once it has found all tasks that it was looking for, so that the result
    would depend on the order of independent layers, which is the order of a set. It does not look
    for the tasks that the constants of a symbolic layer refer to, such as a list with a Dask
    scalar.
    """
    symbolic = (layer for layer in graph.layers.values() if isinstance(layer, Blockwise))
    constants = (value for layer in symbolic for value, index in layer.indices if index is None)
    references = (key for value in constants for key in references_of(value))
    return graph.cull([_NONE, *references, *keys])


def references_of(value: Any) -> Iterable[Any]:
    """Return the keys that a task, or an argument of one, refers to."""
    if isinstance(value, TaskRef):
        return (value.key,)
    return value.dependencies if isinstance(value, GraphNode) else ()
