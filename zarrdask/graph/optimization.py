"""How Dask optimises arrays that read stored arrays: with few tasks for many small blocks.

Dask can be told how to optimise arrays only as a whole, by its setting ``array_optimize``, which is
the user's, and which can't be sent to other machines while it is a function. So the method that
Dask asks of each array is replaced. Its answer is one value for all arrays, as those of xarray's
objects are asked for by class, and as Dask optimises only those together that have equal ones: what
several results need would be computed several times. Graphs that read no stored array are left to
Dask's own function.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import dask
import dask.array as da
from dask.array.optimization import optimize
from dask.blockwise import Blockwise, optimize_blockwise
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.graph.chains import BundleLimits
from zarrdask.graph.dependencies import source_of
from zarrdask.graph.missing import missing_parts, shared_tasks
from zarrdask.graph.trees import find_chains, joined, with_branches


def is_optimized() -> bool:
    """Whether Dask optimises the graphs of arrays in its usual way."""
    is_fused = dask.config.get("optimization.fuse.active", None) is not False
    return is_fused and "array_optimize" not in dask.config.config


@dataclass(frozen=True)
class Optimization:
    """Dask's optimisation of arrays, after small blocks that are read were put in bundles."""

    limits: BundleLimits

    def __call__(self, graph: Any, keys: Any, **options: Any) -> Any:
        """Return the optimised graph; the arguments are those of Dask's function."""
        if isinstance(graph, HighLevelGraph) and self._is_of_use(graph.layers.values()):
            results = set(flatten(keys if isinstance(keys, list | set) else [keys]))
            graph = self._bundled(optimize_blockwise(graph, keys=results), results)
        return optimize(graph, keys, **options)

    def _is_of_use(self, layers: Collection[Any]) -> bool:
        """Whether a graph with these layers may have bundles, or equal blocks."""
        if any(part for layer in layers for part in missing_parts(layer)):
            return True
        count = sum(len(layer) for layer in layers if isinstance(layer, Blockwise))
        return self.limits.length(count, block_bytes=0) > 1 and any(map(_reads, layers))

    def _bundled(self, graph: HighLevelGraph, results: set[Any]) -> Any:
        parts = [part for layer in graph.layers.values() for part in missing_parts(layer)]
        if parts:
            tasks, shared = shared_tasks(graph, results)
            count = sum(int(part.is_stored.sum()) for part in parts)
            block_bytes = max(part.block_bytes for part in parts)
            is_far = any(part.source.is_far for part in parts)
            length = self.limits.length(count, block_bytes, is_far=is_far)
            return joined(tasks, results, shared, length)
        chains = find_chains(graph, results)
        names = {each.name for chain in chains.values() for each in chain.below or [chain]}
        count = sum(len(graph.layers[name]) for name in names)
        block_bytes = max((chain.block_bytes for chain in chains.values()), default=0)
        is_far = any(chain.is_far for chain in chains.values())
        length = self.limits.length(count, block_bytes, is_far=is_far)
        return with_branches(graph, results, chains, length)


def optimized(graph: HighLevelGraph, keys: Collection[Any]) -> dict[Any, Any]:
    """Return the tasks of a graph as Dask is going to optimise it."""
    chosen = Optimization(BundleLimits.current()) if is_optimized() else da.Array.__dask_optimize__
    return dict(chosen(graph, list(keys)))


class _Method:
    """The method ``__dask_optimize__`` of arrays: Dask's own if the user has changed settings."""

    def __init__(self, default: Any) -> None:
        self._default = default

    def __get__(self, x: Any, owner: Any = None) -> Callable[..., Any]:
        if is_optimized():
            return Optimization(BundleLimits.current())
        return self._default.__get__(x, owner)  # type: ignore[no-any-return]


def _reads(layer: Any) -> bool:
    """Whether a layer reads a stored array."""
    held = (source for source, index in getattr(layer, "indices", ()) if index is None)
    return any(source_of(each) is not None for each in held)


@cache
def register() -> None:
    """Let Dask optimise arrays that read stored ones by `Optimization`."""
    if not EXPRESSIONS:
        da.Array.__dask_optimize__ = _Method(vars(da.Array)["__dask_optimize__"])
