"""The stored arrays that a Dask array reads, as far as its graph shows them.

These are the arrays of this package that are arguments of tasks: those of `zarrdask.from_zarr`, an
`Array` passed to `dask.array.from_array` or to a task, lazy arrays of xarray around one, and the
targets of writes in the graph. The search covers neither the objects that a function holds (in its
closure, in its module, as the object of a method) nor the arrays of other libraries.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import dask
import dask.array as da
from dask._task_spec import DataNode, Task, convert_legacy_graph
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph
from dask.optimization import cull

from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.execution.handle import Source, Target
from zarrdask.graph.culling import culled
from zarrdask.indexing.regions import overlap
from zarrdask.indexing.selection import Region, basic, whole_region
from zarrdask.nodes.array import Array


class ReadRegion(NamedTuple):
    """A region of a stored array that tasks may read."""

    #: The place of the array's chunks, as returned by `zarrdask.runtime.locks.location_of`.
    place: str
    region: Region

    def is_below(self, place: str) -> bool:
        """Whether the array is at a place, or in the group at that place."""
        return self.place.startswith(place)

    def overlaps(self, place: str, region: Region) -> bool:
        """Whether it may have elements in common with a region of the array at a place."""
        return self.place == place and overlap(self.region, region)


def reads(arrays: Iterable[da.Array]) -> Iterator[ReadRegion]:
    """Yield the regions that the tasks of Dask arrays read.

    The result may be too large, as symbolic layers are searched without generating their tasks.
    """
    return _search([root for x in arrays for root in _roots(x)])


def needed_reads(arrays: Iterable[da.Array]) -> Iterator[ReadRegion]:
    """Yield the regions that Dask arrays read, without blocks that no result depends on.

    This generates all tasks of the graph.
    """
    if EXPRESSIONS:
        return reads(arrays)
    return _search([_culled(x) for x in arrays])


def optimized_reads(arrays: Iterable[da.Array]) -> Iterator[ReadRegion]:
    """Yield the regions that Dask arrays read once slices are moved into the reads."""
    if EXPRESSIONS:
        return reads(arrays)
    return _search([_optimized(x) for x in arrays])


class Inputs:
    """What Dask arrays that are stored together read. Each search is done once, for all targets."""

    def __init__(self, arrays: Sequence[da.Array]) -> None:
        self._arrays = arrays
        self._found: dict[Callable[..., Iterator[ReadRegion]], list[ReadRegion]] = {}

    def _reads(self, find: Callable[..., Iterator[ReadRegion]]) -> list[ReadRegion]:
        if find not in self._found:
            self._found[find] = list(find(self._arrays))
        return self._found[find]

    def are_below(self, place: str) -> bool:
        """Whether an array is read that is at a place, or in the group at that place."""
        return any(read.is_below(place) for read in self._reads(reads))

    def overlap(self, place: str, region: Region) -> bool:
        """Whether elements in a region of the array at a place are read."""
        # Each of these may report more than what is read; the first is the fastest.
        return all(
            any(read.overlaps(place, region) for read in self._reads(find))
            for find in (reads, needed_reads, optimized_reads)
        )


def _optimized(x: da.Array) -> dict[Any, Any]:
    keys = list(flatten(x.__dask_keys__()))
    with dask.config.set({"zarrdask.bundle-blocks": 0}):  # Bundles hide their tasks.
        return dict(x.__dask_optimize__(x.__dask_graph__(), keys))


def _culled(x: da.Array) -> dict[Any, Any]:
    graph, keys = x.__dask_graph__(), list(flatten(x.__dask_keys__()))
    if isinstance(graph, HighLevelGraph):
        return dict(culled(graph, keys))
    return dict(cull(convert_legacy_graph(graph), keys)[0])


def _roots(x: da.Array) -> Iterable[Any]:
    if EXPRESSIONS:
        return [operand for part in x.expr.walk() for operand in part.operands]
    layers = getattr(x.dask, "layers", None)
    # The attributes of a symbolic layer hold the arguments that its tasks will have.
    return [x.dask] if layers is None else [vars(layer) for layer in layers.values()]


def _search(pending: list[Any]) -> Iterator[ReadRegion]:
    # The values keep the objects alive, so that no other object gets the same id.
    seen: dict[int, Any] = {}
    while pending:
        item = pending.pop()
        if isinstance(item, ReadRegion):
            yield item
        elif (source := source_of(item)) is not None:
            yield ReadRegion(source.handle.chunks.place, source.region)
        elif isinstance(item, Array | Target):
            chunks = item.stored if isinstance(item, Array) else item.handle.chunks
            yield ReadRegion(chunks.place, whole_region(chunks.metadata.shape))
        elif (parts := _parts(item)) and id(item) not in seen:
            seen[id(item)] = item
            pending.extend(parts)


def _parts(item: Any) -> Iterable[Any]:
    """Return the content of a container in a graph."""
    if isinstance(item, DataNode):
        return (item.value,)
    if isinstance(item, Task):
        return [*_arguments(item), *(item.kwargs or {}).values()]
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if type(item).__module__.startswith("xarray."):
        return [getattr(item, name, None) for name in ("array", "_array")]
    stored = getattr(item, "stored", None)
    return (stored,) if isinstance(stored, Array) else ()


def source_of(item: Any) -> Source | None:
    """Return a source, also one whose elements an object decodes one by one."""
    inner = getattr(item, "source", None)
    return item if isinstance(item, Source) else inner if isinstance(inner, Source) else None


def with_source(item: Any, source: Source) -> Any:
    """Return an object that `source_of` returned a source of, with another source."""
    if isinstance(item, Source):
        return source
    other = copy(item)
    other.source = source
    return other


def _arguments(task: Task) -> Iterator[Any]:
    """Yield the arguments of a task; of an array that the task slices, only that region."""
    values = [arg.value if isinstance(arg, DataNode) else arg for arg in task.args]
    for value, following in pairwise([*values, None]):
        # In tasks of `dask.array.from_array`, slices follow the array that they are applied to.
        source = source_of(value)
        if source is not None and _is_region(following):
            region = source.place(basic(following, source.shape).slices)
            yield ReadRegion(source.handle.chunks.place, region)
        else:
            yield value


def _is_region(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(pick, slice) for pick in value)
