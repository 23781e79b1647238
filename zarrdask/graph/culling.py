"""Cull graphs: leave out the tasks that no result depends on."""

from collections.abc import Iterable
from typing import Any

from dask.highlevelgraph import HighLevelGraph

#: The name of no task.
_NONE = ("",)


def culled(graph: HighLevelGraph, keys: Iterable[Any]) -> HighLevelGraph:
    """Return a graph with only the tasks that some keys are computed from.

    Dask keeps layers whole once it has found all tasks that it was looking for, so that the result
    would depend on the order of independent layers, which is that of a set.
    """
    return graph.cull([_NONE, *keys])
