"""Find the stored arrays that a Dask array reads, by searching its graph.

These are the arrays of this package that are arguments of tasks: arrays from `zarrdask.from_zarr`,
an `Array` passed to `dask.array.from_array` or to a task, lazy arrays of xarray around one, and the
targets of writes in the graph. The search covers neither the objects that a function holds (in its
closure, in its module, as the object of a method) nor the arrays of other libraries.
"""

from collections import ChainMap, deque
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from functools import cached_property
from operator import getitem
from typing import Any

import dask.array as da
from dask.array.core import getter, getter_inline, getter_nofancy

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.formats.indexing.selection import basic, is_basic
from zarrdask.parallel.execution.block_writer import BlockWriter
from zarrdask.parallel.execution.dask_private import (
    Alias,
    DataNode,
    Task,
    TaskRef,
    execute_subgraph,
)
from zarrdask.parallel.graph.fuse.block_tasks import BlockTasks
from zarrdask.parallel.graph.fuse.optimization import unfused_tasks
from zarrdask.parallel.graph.missing_blocks import ReadArguments

#: The functions of tasks that index an array.
_GETTERS = (getitem, getter, getter_inline, getter_nofancy)
#: The values of names: objects, or the tasks that compute them.
_Scope = MutableMapping[Any, Any]


def reads(arrays: Iterable[da.Array]) -> Iterator[ArrayRegion]:
    """Yield the regions that the tasks of Dask arrays read.

    The result may be too large, as symbolic layers are searched without generating their tasks.
    """
    return reads_of([root for x in arrays for root in _roots(x)])


def needed_reads(arrays: Iterable[da.Array]) -> Iterator[ArrayRegion]:
    """Yield the regions that Dask arrays read after their optimisation.

    It drops blocks that no result depends on, and moves slices into the reads. This generates all
    tasks of the graphs.
    """
    return reads_of(map(unfused_tasks, arrays))


class Inputs:
    """The inputs of Dask arrays that are stored together, searched once for all targets."""

    def __init__(self, arrays: Sequence[da.Array]) -> None:
        self._arrays = arrays

    @cached_property
    def _reads(self) -> list[ArrayRegion]:
        return list(reads(self._arrays))

    @cached_property
    def _needed(self) -> list[ArrayRegion]:
        return list(needed_reads(self._arrays))

    def are_below(self, location: str) -> bool:
        """Whether an array that is read is at a canonical location, or in the group at it."""
        return any(read.is_below(location) for read in self._reads)

    def overlap(self, written: ArrayRegion) -> bool:
        """Whether elements of a region are read."""
        # Both may report more than what is read; the first is faster.
        return any(read.overlaps(written) for read in self._reads) and any(
            read.overlaps(written) for read in self._needed
        )


def _roots(x: da.Array) -> Iterable[Any]:
    layers = getattr(x.dask, "layers", None)
    # The attributes of a symbolic layer hold the arguments that its tasks will have.
    return [x.dask] if layers is None else [vars(layer) for layer in layers.values()]


def reads_of(roots: Iterable[Any], graph: _Scope | None = None) -> Iterator[ArrayRegion]:
    """Yield the regions that objects read; `graph` has the values that references stand for."""
    graph = {} if graph is None else graph
    pending = deque((root, graph) for root in roots)
    # The values keep the objects alive, so that no other object gets the same id. Fused tasks have
    # one graph in common, for different arguments.
    seen: dict[tuple[int, int], Any] = {}
    while pending:
        item, scope = pending.popleft()
        if regions := _regions_of(item, ()):
            yield from regions
        elif (id(item), id(scope)) not in seen:
            seen[id(item), id(scope)] = item, scope
            if isinstance(item, Task):
                pending.extend(_arguments(item, scope))
            else:
                pending.extend((part, scope) for part in _parts(item))


def _regions_of(item: Any, index: Any) -> list[ArrayRegion]:
    """Return the regions that are read if an item is a stored array, and the index is a region."""
    if isinstance(item, BlockWriter):
        return [item.region]  # what follows in the graph depends on what is written there
    source = ArrayRegion(chunks_of(item)) if isinstance(item, Array) else item
    source = _lazy_region(item) if _is_lazy(item) else source
    if not isinstance(source, ArrayRegion):
        return []
    regions = source.regions(basic(index, source.shape).slices)
    if source.stored.elements is not None:
        parts = [part for region in regions for part in source.stored.elements.parts(region)]
        return [ArrayRegion(stored, region, token=source.token) for stored, region in parts]
    return [ArrayRegion(source.stored, region, token=source.token) for region in regions]


def _is_lazy(item: Any) -> bool:
    """Whether an item is one of the lazy arrays of xarray, which are around one another."""
    return type(item).__module__.startswith("xarray.")


def _lazy_region(item: Any) -> ArrayRegion | None:
    """Return the region that a lazy array shows; None if it is not a basic index of an array."""
    keys, inner = [], item
    while _is_lazy(inner):
        if (key := getattr(inner, "key", None)) is not None:
            keys.append(key.tuple)
        inner = getattr(inner, "array", None)
    stored = getattr(inner, "stored", None)
    if not isinstance(stored, Array) or not all(map(is_basic, keys)):
        return None
    source = ArrayRegion(chunks_of(stored))
    for key in reversed(keys):
        source = source.select(basic(key, source.shape))
    # Characters become texts, with one dimension less.
    return source if source.shape == getattr(item, "shape", None) else None


def _arguments(task: Task, scope: _Scope) -> Iterator[tuple[Any, _Scope]]:
    """Yield the arguments of a task; if the task indexes an array, only that region."""
    values = [_value(argument, scope) for argument in task.args]
    if task.func is execute_subgraph:
        # Dask has fused several tasks: these are their graph, the key of the result, and arguments.
        inner, _, names, *outer = values
        scope = ChainMap(dict(zip(names, outer, strict=True)), inner, scope)
        values = [*_unnamed(inner), *(value for value in outer if isinstance(value, Task))]
    elif any(task.func is each for each in _GETTERS) and is_basic(values[1]):
        values[0] = _regions_of(values[0], values[1]) or values[0]
    values += [_value(argument, scope) for argument in (task.kwargs or {}).values()]
    yield from ((value, scope) for value in values)


def _unnamed(graph: _Scope) -> Iterator[Any]:
    """Yield the nodes of a graph except objects that its tasks refer to: those are arguments."""
    tasks = [node for node in graph.values() if isinstance(node, Task)]
    names = {each.key for task in tasks for each in task.args if isinstance(each, TaskRef)}
    for name, node in graph.items():
        if not (isinstance(node, DataNode) and name in names):
            yield node


def _value(argument: Any, scope: _Scope) -> Any:
    """Return the value that an argument of a task refers to, unless another task computes it."""
    is_reference = isinstance(argument, TaskRef | Alias)
    while isinstance(argument, TaskRef | Alias):
        key = argument.key if isinstance(argument, TaskRef) else argument.target
        argument = scope.get(getattr(key, "key", key))
    if is_reference and isinstance(argument, Task):
        return None
    return argument.value if isinstance(argument, DataNode) else argument


def _parts(item: Any) -> Iterable[Any]:
    """Return the content of a container in a graph."""
    if isinstance(item, DataNode):
        return (item.value,)
    if isinstance(item, BlockTasks):
        return item.tasks.values()
    if isinstance(item, ReadArguments):
        return (item.source,)
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if _is_lazy(item):
        return [getattr(item, name, None) for name in ("array", "_array")]
    stored = getattr(item, "stored", None)
    return (stored,) if isinstance(stored, Array) else ()
