"""The regions of stored arrays that tasks read, in order, found by their arguments."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.execution.dask_private import (
    DataNode,
    GraphNode,
    Task,
    TaskRef,
    execute_subgraph,
)
from zarrdask.parallel.graph.fuse.task_steps import ordered

#: A source, and the region of it that is read.
Read = tuple[ArrayRegion, Region]


def slicings(
    task: Any, known: Mapping[Any, Any] = MappingProxyType({})
) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of arguments, in the order of use; the second may slice the first.

    An argument of a fused task is replaced by the whole task's, which `known` may have.
    """
    if not isinstance(task, Task):
        return
    arguments = [known.get(arg.key, arg) if isinstance(arg, TaskRef) else arg for arg in task.args]
    if task.func is execute_subgraph:
        graph, result, names, *references = arguments
        inputs = dict(zip(names, references, strict=True))
        for key in ordered(graph, [result]):
            yield from slicings(graph[key], inputs)
    else:
        # In tasks that read, as those made by `dask.array.from_array`, slices follow the array.
        yield from pairwise(arguments)


def sliced(pairs: Iterable[tuple[Any, Any]], values: Mapping[Any, Any]) -> list[Read]:
    """Return the sources among `slicings`, and the regions of them, given values by their keys."""
    reads = list[Read]()
    for item, following in pairs:
        source = _value(item, values)
        if isinstance(source, ArrayRegion):
            region = _value(following, values)
            if isinstance(region, tuple) and {*map(type, region)} <= {slice}:
                reads.append((source, region))
    return reads


def _value(argument: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(argument, TaskRef):
        return values.get(argument.key)
    return argument.value if isinstance(argument, DataNode) else argument


def reads_of(task: GraphNode) -> list[Read]:
    """Return the reads of a task."""
    # A task of one argument joins blocks.
    is_single = isinstance(task, Task) and len(task.args) < 2
    return [] if is_single else sliced(slicings(task), {})


def keys_of(reads: Iterable[Read]) -> list[str]:
    """Return the keys of the stored objects that are read."""
    return [key for source, region in reads for key in source.keys(region)]


def name_keys(keys: Iterable[str]) -> str:
    """Return text that names the first key and the number of others.

    >>> name_keys(["c/0", "c/1", "c/2"]), name_keys([])
    ('c/0 and 2 others', 'nothing')
    """
    first, *others = dict.fromkeys(keys) or ["nothing"]
    return f"{first} and {len(others)} others" if others else first
