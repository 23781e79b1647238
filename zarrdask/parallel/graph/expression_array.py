"""Array expressions: made from stored arrays, and written as arrays with graphs.

Expressions of Dask and of the package dask-array are optimised by their package: slices, and
rechunks with dask-array, become part of the read. To write an expression, the graph of the
optimised one becomes an array. This module is loaded only for users of expressions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.array import core
from dask.blockwise import Blockwise, blockwise
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph, Layer, MaterializedLayer

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.parallel.execution.dask_private import (
    Alias,
    Task,
    convert_legacy_graph,
    fuse_linear_task_spec,
)
from zarrdask.parallel.graph.fuse.block_tasks import BlockTasks
from zarrdask.parallel.graph.fuse.task_steps import Tasks
from zarrdask.parallel.plan.align import Chunks
from zarrdask.runtime.packages import load_module


def expression_of(module: str, source: ArrayRegion, chunks: Chunks, name: str | None) -> Any:
    """Return the expression of a package, Dask or dask-array, that reads blocks of a region."""
    meta = np.empty((0,) * source.ndim, source.dtype)
    if module == "dask.array":
        inline = source.stored.is_small
        return da.from_array(source, chunks=chunks, inline_array=inline, meta=meta)
    if module != "dask_array":
        raise MetadataError(
            "unknown package of Dask arrays",
            key="array_module",
            found=module,
            expected="'dask.array' or 'dask_array'",
        )
    try:
        from_array = load_module(module).from_array
    except ImportError as error:
        raise UnsupportedError(
            "the package dask-array is not installed",
            key="array_module",
            found=module,
            expected="pip install dask-array",
        ) from error
    # Inline, since it is small: the array would be a task of its own.
    x = from_array(source, chunks, meta=meta, inline_array=True, fancy=False, name=name)
    return fused_read(x)


def fused_read(x: Any) -> Any:
    """Return an array of dask-array that reads, whose tasks become one with those that need them.

    It stays as it is if the release of the package has no such expressions.
    """
    try:
        # Imported here, since it uses what is private in the package.
        from zarrdask.parallel.graph.expression_read import read_of
    except (ImportError, AttributeError):
        return x
    return type(x)(read_of(x.expr))


class ExpressionArray(core.Array):  # type: ignore[misc]
    """The optimised graph of an array expression.

    `rechunk` rechunks the expression, so that blocks that are aligned with chunks are read
    directly.
    """

    expression: Any

    @classmethod
    def of(cls, expression: Any) -> "ExpressionArray":
        """Return an expression as an array with its graph, with as many tasks."""
        optimized = expression.optimize()
        name, keys = optimized.name, [*flatten(optimized.__dask_keys__())]
        tasks = _fused(convert_legacy_graph(optimized.__dask_graph__()), keys)
        layer: Layer = MaterializedLayer(tasks)
        if len(tasks) == len(keys) and all(map(_is_independent, tasks.values())):
            layer = _symbolic(name, expression.chunks, tasks)
        graph = HighLevelGraph({name: layer}, {name: set()})
        array = cls(graph, name, expression.chunks, meta=expression._meta)
        array.expression = expression
        return array

    def rechunk(self, *args: Any, **options: Any) -> da.Array:
        """Return the array with other blocks; the arguments are the same as for Dask's method."""
        return ExpressionArray.of(self.expression.rechunk(*args, **options))

    def __reduce__(self) -> tuple[Any, ...]:
        return core.Array, (self.dask, self.name, self.chunks, self.dtype, self._meta)


def _fused(graph: Tasks, keys: Sequence[Any]) -> dict[Any, Any]:
    """Return a graph in which tasks that need only each other are one.

    The package does not fuse operations that it does not map over blocks, such as taking one
    element of an axis.
    """
    tasks = dict(fuse_linear_task_spec(graph, set(keys)))
    uses = Counter(need for task in tasks.values() for need in task.dependencies)
    for key in keys:
        # Dask gives the fused task another key, so that the result is an alias.
        task = tasks[key]
        if isinstance(task, Alias) and uses[task.target] == 1 and task.target in tasks:
            tasks[key] = tasks.pop(task.target).substitute({}, key=key)
    return tasks


def _is_independent(task: Any) -> bool:
    """Whether a task needs no other one; a value, which may be a future, is none."""
    return isinstance(task, Task) and not task.dependencies


def _symbolic(name: str, chunks: Chunks, tasks: Mapping[Any, Any]) -> Blockwise:
    """Return independent tasks as a symbolic layer, which Dask fuses with those that write."""
    parts = BlockTasks(chunks, {key[1:]: task for key, task in tasks.items()})
    axes = tuple(range(len(chunks)))
    return blockwise(identity, name, axes, parts, axes, numblocks={}, _data_producer=True)


def identity(values: Any) -> Any:
    """Return the values of a block: a task."""
    return values
