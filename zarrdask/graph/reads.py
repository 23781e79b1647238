"""What a Dask array is computed from: stored arrays, found in its graph."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, Task, TaskRef, _execute_subgraph, convert_legacy_graph
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph
from dask.optimization import cull

from zarrdask.array import Array
from zarrdask.graph.expressions import EXPRESSIONS
from zarrdask.graph.source import Source, Target
from zarrdask.group import Group
from zarrdask.hierarchy import prefix_of
from zarrdask.indexing import Region, basic, whole_region
from zarrdask.locks import place_of

#: What can't hold a stored array, and is met most.
_PLAIN = (str, int, float, slice, bytes, type(None), np.ndarray, np.generic, TaskRef, type)


class Read(NamedTuple):
    """A part of a stored array that tasks may read.

    Attributes
    ----------
    place : str
        Where its chunks are, as `zarrdask.locks.place_of` tells it.
    region : tuple of slice
        Which part.
    """

    place: str
    region: Region

    def is_below(self, place: str) -> bool:
        """Whether the array, or what it is in, is at a place."""
        return self.place.startswith(place)

    def overlaps(self, place: str, region: Region) -> bool:
        """Whether it may hold elements of a region of the array at a place."""
        return self.place == place and all(
            max(a.start, b.start) < min(a.stop, b.stop)
            for a, b in zip(self.region, region, strict=True)
        )


def reads(arrays: Iterable[da.Array]) -> Iterator[Read]:
    """Yield what the tasks of Dask arrays read; some of it may not be needed.

    Looked at are the graphs and all that their tasks are given, wherever they come from: those
    that were optimised or pickled, too. Arrays of zarr-python are known as well.
    """
    return _found([root for x in arrays for root in _roots(x)])


def needed_reads(arrays: Iterable[da.Array]) -> Iterator[Read]:
    """Yield what they read without the blocks that nothing comes of; this takes its time."""
    if EXPRESSIONS:
        return reads(arrays)
    return _found([_culled(x) for x in arrays])


def _culled(x: da.Array) -> dict[Any, Any]:
    graph, keys = x.__dask_graph__(), list(flatten(x.__dask_keys__()))
    if isinstance(graph, HighLevelGraph):
        return dict(graph.cull(keys))
    return dict(cull(convert_legacy_graph(graph), keys)[0])


def _roots(x: da.Array) -> Iterable[Any]:
    if EXPRESSIONS:
        return [operand for part in x.expr.walk() for operand in part.operands]
    layers = getattr(x.dask, "layers", None)
    # A layer that was not spelled out tells what its tasks are given.
    return [x.dask] if layers is None else [vars(layer) for layer in layers.values()]


def _found(waiting: list[Any]) -> Iterator[Read]:
    # With the things themselves, so that no other one gets their number.
    seen: dict[int, Any] = {}
    while waiting:
        item = waiting.pop()
        if isinstance(item, _PLAIN):
            continue
        found = item if isinstance(item, Read) else _read(item)
        if found is not None:
            yield found
        elif id(item) not in seen:
            seen[id(item)] = item
            waiting.extend(_parts(item))


def _read(item: Any) -> Read | None:
    if isinstance(item, Source):
        return Read(item.handle.chunks.place, item.region)
    if isinstance(item, Array | Target):  # a target: in a graph that returns what it stored
        chunks = item.stored if isinstance(item, Array) else item.handle.chunks
        return Read(chunks.place, whole_region(chunks.metadata.shape))
    if isinstance(item, Group):
        return Read(place_of(item.store, prefix_of(item.path)), ())
    place = _of_zarr_python(item)
    return None if place is None else Read(place, whole_region(getattr(item, "shape", ())))


def _of_zarr_python(item: Any) -> str | None:
    """Return the place of an array of zarr-python; None of anything else."""
    path = getattr(item, "store_path", None)
    store, name = getattr(path, "store", None), getattr(path, "path", None)
    if not isinstance(name, str):
        return None
    fs = getattr(store, "fs", None)
    fs = getattr(fs, "sync_fs", fs)
    root = getattr(store, "root", getattr(store, "path", ""))
    url = f"file://{root}" if fs is None else str(fs.unstrip_protocol(root))
    place = f"{url}/{name}".rstrip("/")
    return f"{os.path.realpath(place[7:]) if place.startswith('file://') else place}/"


def _parts(item: Any) -> Iterable[Any]:
    """Return what a part of a graph holds."""
    if isinstance(item, DataNode):
        return (item.value,)
    if isinstance(item, _Fused):
        return _given(item.task, item.given)
    if isinstance(item, Task):
        return _given(item, {})
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if isinstance(item, partial):
        return (item.func, *item.args, *item.keywords.values())
    if isinstance(item, FunctionType):
        used = map(item.__globals__.get, item.__code__.co_names)
        cells = map(_content, item.__closure__ or ())
        return [*cells, *(value for value in used if _read(value) is not None)]
    return [getattr(item, "__self__", None)]


class _Fused(NamedTuple):
    """A task that is part of another one, and what that is given, by the names within."""

    task: Task
    given: Mapping[Any, Any]


def _given(task: Task, outer: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield what a task is given, in a task that is given something itself."""
    values = [_value(arg, outer) for arg in task.args]
    yield from (task.func, *(_value(arg, outer) for arg in (task.kwargs or {}).values()))
    if task.func is _execute_subgraph:
        inner, _, names, *rest = values
        given = dict(zip(names, rest, strict=False))
        yield from (_Fused(t, given) if isinstance(t, Task) else t for t in inner.values())
        return
    for value, following in zip(values, [*values[1:], None], strict=True):
        # As Dask's getters have it, a source and what is taken of it.
        if isinstance(value, Source) and _is_region(following):
            region = value.view(basic(following, value.shape).slices).region
            yield Read(value.handle.chunks.place, region)
        else:
            yield value


def _value(arg: Any, given: Mapping[Any, Any]) -> Any:
    found = given.get(arg.key, arg) if isinstance(arg, TaskRef) else arg
    return found.value if isinstance(found, DataNode) else found


def _is_region(found: Any) -> bool:
    return isinstance(found, tuple) and all(isinstance(pick, slice) for pick in found)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has none yet
        return None
