"""Bundles of blocks whose tasks are grouped one by one, since no symbolic layer has all of them.

Slices, concatenated arrays and inputs that several arrays share make graphs of single tasks. A
group is what a few blocks are computed from and nothing else is. Groups are independent: several
become a bundle.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, GraphNode, Task, TaskRef
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from zarrdask.chunks.region import reading_ahead
from zarrdask.graph.block_writes import SLOW_SECONDS, BlockWrites, Place, write_in_one_task
from zarrdask.graph.components import components
from zarrdask.graph.fuse.culling import culled
from zarrdask.graph.fuse.limits import UNFUSED, FuseLimits
from zarrdask.graph.fuse.optimization import optimized
from zarrdask.graph.fuse.prefetch import far_reads
from zarrdask.graph.fuse.steps import Tasks, steps
from zarrdask.storage.in_flight import Requests

#: The largest number of tasks in a group, for each block that it writes.
_MAX_TASKS_PER_BLOCK = 8
#: The largest number of tasks that may need a result within a group. A result that more of them
#: need is computed by a task of its own.
_MAX_USES = 8


class Group(NamedTuple):
    """The tasks that write a few blocks and that no others need.

    A group is a component of a graph, however many blocks it has; a `trees.Branch` is cut from a
    tree at a number of blocks. Several groups become one task, which writes them one after another.
    """

    #: The tasks by key.
    tasks: Tasks
    #: The keys of those that write blocks.
    writes: tuple[Any, ...]

    @property
    def needs(self) -> set[Any]:
        """The keys of other tasks that those of the group need."""
        every = {need for task in self.tasks.values() for need in task.dependencies}
        return every.difference(self.tasks)

    @property
    def ordered(self) -> list[GraphNode]:
        """The tasks in the order in which they are computed."""
        return [self.tasks[key] for key, *_ in steps(self.tasks, self.writes)]

    def run(
        self, results: Mapping[Any, Any], places: Mapping[str, Place], requests: Requests
    ) -> list[int]:
        """Run the tasks, and return the number of stored units of each block."""
        values = dict(results)
        for key, compute, finished in steps(self.tasks, self.writes):
            try:
                values[key] = compute(values)
            except BaseException as error:
                if error is not requests.error:  # which is one of an earlier block
                    name, *block = self._write_by(key)
                    error.add_note(places[name].note(tuple(block)))
                raise
            for each in finished:
                del values[each]
        return [values[key].item() for key in self.writes]

    def _write_by(self, key: Any) -> Any:
        """Return the key of the block that a task writes, or of the first block."""
        # Dask names the fused task of a block after all of its parts.
        names = (
            each for each in self.writes if key == each or key in self.tasks[each].dependencies
        )
        return next(names, self.writes[0])


def write_groups(
    places: Mapping[str, Place], groups: Sequence[Group], needs: tuple[Any, ...], *results: Any
) -> np.ndarray:
    """Compute and write the blocks of a bundle, and return its receipt: the task."""
    outside = dict(zip(needs, results, strict=True))

    first = groups[0].writes
    name, *block = first[0]
    with reading_ahead(far_reads(task for group in groups for task in group.ordered)):
        return write_in_one_task(
            places.values(),
            lambda group, requests: group.run(outside, places, requests),
            iter(groups),
            count=len(groups),
            slow=SLOW_SECONDS * len(first),
            nbytes=places[name].nbytes(tuple(block)),
        )


def group_bundles(
    graph: HighLevelGraph, writes: Mapping[str, BlockWrites], limits: FuseLimits
) -> tuple[da.Array | None, set[str]]:
    """Return the bundles of writes, and the names of the writes whose blocks are in them.

    The layers of Blockwise in the graph are fused. `writes` are by the names of their tasks.
    """
    names = {
        name
        for name, write in writes.items()
        if write.bundle_length(limits) > 1 and _is_local(graph, write)
    }
    # Annotations belong to tasks that would vanish.
    if not names or any(layer.annotations for layer in graph.layers.values()):
        return None, set()
    keys = [key for write in writes.values() for key in flatten(write.receipts.__dask_keys__())]
    tasks = _single_tasks(graph, keys)
    groups, shared = _groups(tasks, keys)
    # Which arrays are written by the same groups, and whether these are small.
    kinds = dict[frozenset[str], bool]()
    for group in groups:
        kind = frozenset(key[0] for key in group.writes)
        kinds[kind] = kinds.get(kind, True) and _is_small(group, shared)
    while others := [
        kind for kind, small in kinds.items() if kind & names and not (small and kind <= names)
    ]:
        names.difference_update(*others)
    if not names:
        return None, names
    groups = [group for group in groups if group.writes[0][0] in names]
    is_far = any(far_reads(groups[0].ordered))
    length = min(writes[name].bundle_length(limits, reads_far=is_far) for name in names)
    bundles = list(_joined(groups, length))
    places = {name: writes[name].place for name in names}
    return _array(bundles, places, {key: tasks[key] for key in shared}), names


def _is_local(graph: HighLevelGraph, write: BlockWrites) -> bool:
    """Whether blocks around the middle, along each axis, are computed by small groups of tasks."""
    name, middle = write.receipts.name, [len(axis) // 2 for axis in write.blocks]
    keys = {
        (name, *middle[:axis], number, *middle[axis + 1 :])
        for axis, at in enumerate(middle)
        for number in range(at - _MAX_USES // 2, at + _MAX_USES // 2 + 1)
        if 0 <= number < len(write.blocks[axis])
    }
    below = graph.cull_layers([name])
    count = sum(map(len, culled(below, keys).layers.values()))
    if count > 2 * _MAX_TASKS_PER_BLOCK * len(keys):
        return False
    groups, shared = _groups(_single_tasks(below, keys), keys)
    return all(_is_small(group, shared) for group in groups)


def _single_tasks(graph: HighLevelGraph, keys: Collection[Any]) -> Tasks:
    """Return the tasks of a graph as Dask is going to optimise it, without bundles of reads."""
    return optimized(graph, keys, UNFUSED)


def _groups(tasks: Tasks, keys: Iterable[Any]) -> tuple[list[Group], set[Any]]:
    """Return the groups of tasks in the order of their blocks, and the keys of shared tasks."""
    uses = Counter(need for task in tasks.values() for need in task.dependencies)
    many = {key for key, n in uses.items() if n > _MAX_USES and key in tasks}
    shared = {key for key in many if not tasks[key].dependencies}
    group_of = components(
        (key, need)
        for key, task in tasks.items()
        for need in task.dependencies
        if need in tasks and need not in shared
    )
    members: dict[Any, dict[Any, GraphNode]] = defaultdict(dict)
    writes: dict[Any, list[Any]] = defaultdict(list)
    for key, task in tasks.items():
        if key not in shared:
            members[group_of(key)][key] = task
    for key in keys:
        writes[group_of(key)].append(key)
    return [Group(members[group], tuple(each)) for group, each in writes.items()], shared


def _is_small(group: Group, shared: set[Any]) -> bool:
    """Whether a group can be part of a bundle."""
    has_few_tasks = len(group.tasks) <= _MAX_TASKS_PER_BLOCK * len(group.writes)
    return has_few_tasks and len(group.writes) <= _MAX_USES and group.needs <= shared


def _joined(groups: Iterable[Group], length: int) -> Iterator[list[Group]]:
    """Join consecutive groups to bundles of at most so many blocks, or of one group."""
    bundle, count = list[Group](), 0
    for group in groups:
        if bundle and count + len(group.writes) > length:
            yield bundle
            bundle, count = [], 0
        bundle.append(group)
        count += len(group.writes)
    yield bundle


def _array(
    bundles: Sequence[Sequence[Group]], places: Mapping[str, Place], shared: Tasks
) -> da.Array:
    """Return bundles as a Dask array of receipts."""
    name = f"{min(places)}-bundles"
    where, below = f"{name}-places", f"{name}-shared"
    tasks = dict[Any, Any]()
    for number, bundle in enumerate(bundles):
        key, needs = (name, number), tuple(set().union(*(group.needs for group in bundle)))
        results = map(TaskRef, needs)
        tasks[key] = Task(key, write_groups, TaskRef(where), bundle, needs, *results)
    layers = {
        name: MaterializedLayer(tasks),
        below: MaterializedLayer({where: DataNode(where, places), **shared}),
    }
    chunks = (tuple(sum(len(group.writes) for group in bundle) for bundle in bundles),)
    graph = HighLevelGraph(layers, {name: {below}, below: set()})
    return da.Array(graph, name, chunks, meta=np.empty(0, np.intp))
