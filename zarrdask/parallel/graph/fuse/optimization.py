"""The graph optimisation of Dask arrays that read stored arrays: small blocks are fused.

The setting ``array_optimize`` of Dask stays free for users; a function in it also could not be sent
to other machines. So the method ``__dask_optimize__`` of Dask arrays is replaced. It returns the
same value for all arrays, since xarray looks it up in the class, and since Dask optimises only
arrays with equal values together: otherwise, what several results need would be computed several
times. Graphs that read no stored array are passed to Dask's own function.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import dask
from dask.array import core
from dask.array.optimization import optimize
from dask.base import collections_to_expr
from dask.blockwise import Blockwise, optimize_blockwise
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

from zarrdask import config
from zarrdask.parallel.graph.fuse.limits import UNFUSED, FuseLimits
from zarrdask.parallel.graph.fuse.missing_tasks import shared_tasks
from zarrdask.parallel.graph.fuse.reads import fuse_reads, fuse_tasks
from zarrdask.parallel.graph.missing_blocks import missing_parts, sources_of


def is_optimized() -> bool:
    """Whether graphs are changed here: as set, and as Dask optimises arrays in its usual way."""
    if "array_optimize" in dask.config.config or not config.get("fuse"):
        return False
    return dask.config.get("optimization.fuse.active", None) is not False


@dataclass(frozen=True)
class Optimization:
    """Dask's optimisation of arrays, after small blocks that are read were fused to larger tasks.

    Dask calls it for each array, also for arrays that read nothing. So the limits are looked up
    when it is called, or when it is sent to a scheduler that does not have the user's settings.
    """

    #: The limits of a fused task; None for those that are set now.
    limits: FuseLimits | None = None

    def __call__(self, graph: Any, keys: Any, **options: Any) -> Any:
        """Return the optimised graph; the arguments are the same as for Dask's function."""
        if isinstance(graph, HighLevelGraph) and _reads(graph):
            limits = self.limits or FuseLimits.current()
            results = dict.fromkeys(flatten(keys if isinstance(keys, list | set) else [keys]))
            graph = _fused(graph, results, limits)
        return optimize(graph, keys, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return Optimization, (self.limits or FuseLimits.current(),)


def _reads(graph: HighLevelGraph) -> bool:
    """Whether a graph reads stored arrays."""
    return any(True for layer in graph.layers.values() for _ in sources_of(layer))


def _fused(graph: HighLevelGraph, results: Collection[Any], limits: FuseLimits) -> Any:
    """Return a graph that reads stored arrays, with small blocks fused."""
    layers = graph.layers.values()
    parts = [part for layer in layers for part in missing_parts(layer)]
    count = sum(len(layer) for layer in layers if isinstance(layer, Blockwise))
    if not parts and limits.length(count, block_bytes=0) < 2:
        return graph
    graph = optimize_blockwise(graph, keys=results)
    if parts:
        tasks, shared = shared_tasks(graph, {*results})
        count = sum(int(part.is_stored.sum()) for part in parts)
        block_bytes = max(part.block_bytes for part in parts)
        length = limits.length(count, block_bytes, [part.source for part in parts])
        return fuse_tasks(tasks, results, shared, length)
    return fuse_reads(graph, results, limits)


def optimized(
    graph: HighLevelGraph, keys: Collection[Any], limits: FuseLimits | None = None
) -> dict[Any, Any]:
    """Return the tasks of a graph as Dask is going to optimise it; `limits` as `Optimization`."""
    chosen = Optimization(limits) if is_optimized() else core.Array.__dask_optimize__
    return dict(chosen(graph, list(keys)))


def unfused_tasks(x: Any) -> dict[Any, Any]:
    """Return the tasks of a Dask collection after its optimisation, but none that are fused here.

    A fused task hides what each of its blocks reads.
    """
    if isinstance(getattr(x, "__dask_optimize__", None), Optimization):
        return optimized(x.__dask_graph__(), [*flatten(x.__dask_keys__())], UNFUSED)
    return dict(collections_to_expr((x,)).optimize().__dask_graph__())


class _Method:
    """The method ``__dask_optimize__`` of arrays: Dask's own if the user has changed settings."""

    def __init__(self, default: Any) -> None:
        self._default = default

    def __get__(self, x: Any, owner: Any = None) -> Callable[..., Any]:
        return _OPTIMIZATION if is_optimized() else self._default.__get__(x, owner)


#: One value for all arrays.
_OPTIMIZATION = Optimization()


@cache
def register() -> None:
    """Let Dask optimise arrays that read stored ones by `Optimization`."""
    core.Array.__dask_optimize__ = _Method(vars(core.Array)["__dask_optimize__"])
