"""The finder: which tasks of a graph become one.

Dask reduces an array by a tree of tasks, in which each task joins the results of a few others; a
write has a task for each block. This module joins blocks, starting with those that are read, along
the tasks that need them, up to a limit. Joined blocks become one task, which computes them one by
one.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from zarrdask.parallel.graph.fuse.block_function import BlockFunction
from zarrdask.parallel.graph.fuse.task_steps import Tasks, ordered

#: The largest number of tasks that may need a block within a fused task.
_MAX_USES = 8
_NO_FUNCTIONS: Mapping[str, BlockFunction] = MappingProxyType({})


class FusedTask(NamedTuple):
    """Tasks that become one: some blocks, and what is computed from them and from nothing else."""

    #: The keys of the results. Other tasks need nothing else of it.
    roots: Sequence[Any]
    #: The tasks by key, without tasks of blocks that a `BlockFunction` computes.
    tasks: Tasks
    #: The keys of these blocks, without the roots.
    blocks: Sequence[Any]
    #: The names of the functions that compute blocks or roots.
    functions: frozenset[str]
    #: The keys of other tasks that its tasks need.
    needs: frozenset[Any] = frozenset()

    @classmethod
    def union(cls, parts: Sequence["FusedTask"]) -> "FusedTask":
        """Return one fused task for several that do not depend on each other."""
        roots, tasks, blocks, functions, needs = zip(*parts, strict=True)
        return cls(
            (*chain(*roots),),
            dict(chain.from_iterable(each.items() for each in tasks)),
            (*chain(*blocks),),
            frozenset().union(*functions),
            frozenset().union(*needs),
        )


def find_fused(
    tasks: Tasks,
    results: Collection[Any],
    length: int,
    *,
    functions: Mapping[str, BlockFunction] = _NO_FUNCTIONS,
    shared: Collection[Any] = frozenset(),
    whole: bool = False,
) -> Iterator[FusedTask]:
    """Yield the tasks to fuse, of up to `length` blocks each, in the order of the results.

    Blocks are the tasks that need no others, and those that `functions` compute, by the names of
    their layers, which are not among the tasks. `results` are needed elsewhere; other tasks are
    left out if no result needs them. Any number of fused tasks may need the tasks `shared`. Each
    root is computed from several blocks; or, if tasks are fused as a `whole`, is a result.
    """
    clusters = _Clusters(tasks, results, shared)
    clusters.add_reads(functions)
    clusters.join_tasks(length, whole=whole)
    for roots in clusters.roots():
        if all(root in results if whole else clusters.counts[root] > 1 for root in roots):
            yield _below(roots, clusters.tasks, clusters.counts)


class _Clusters:
    """Disjoint sets of the keys of blocks, and of tasks that are computed from these alone."""

    def __init__(self, tasks: Tasks, results: Collection[Any], shared: Collection[Any]) -> None:
        needed, pending = set[Any](), [key for key in results if key in tasks]
        while pending:
            if (key := pending.pop()) not in needed and key in tasks:
                needed.add(key)
                pending.extend(tasks[key].dependencies)
        # Within a layer, such as one of `rechunk`, tasks may be in any order.
        order = ordered(tasks, (key for key in tasks if key in needed))
        #: The tasks that results need, in topological order.
        self.tasks = {key: tasks[key] for key in order}
        self._results = results
        needs = (task.dependencies for task in self.tasks.values())
        self._uses = Counter(chain.from_iterable(needs))
        often = (key for key, count in self._uses.items() if count > _MAX_USES and key in tasks)
        self._shared = {*shared, *(key for key in often if not tasks[key].dependencies)}
        #: For each key in a cluster, the number of blocks that it is computed from.
        self.counts: dict[Any, int] = {}
        #: For a key, another one of its cluster.
        self._above: dict[Any, Any] = {}
        #: The number of blocks in a cluster; a block that was not joined is one of its own.
        self._sizes: dict[Any, int] = {}

    def add_reads(self, functions: Mapping[str, BlockFunction]) -> None:
        """Add the blocks that functions compute."""
        for key in (*self._uses, *self._results):
            if key not in self.tasks and layer_of(key) in functions:
                self.counts[key] = 1

    def join_tasks(self, length: int, *, whole: bool) -> None:
        """Join tasks with what they need, up to so many blocks.

        Several tasks that need the same block are joined, but those that need what was joined only
        if they are fused as a `whole`: they may be all tasks of the next layer.
        """
        uses, counts, results = self._uses, self.counts, self._results

        def can_join(need: Any) -> bool:
            count = counts.get(need)
            if count is None or need in results:
                return False
            number = uses[need]
            return number == 1 or (number <= _MAX_USES and (whole or count == 1))

        for key, task in self.tasks.items():
            needs = task.dependencies - self._shared if self._shared else task.dependencies
            if key not in self._shared and all(map(can_join, needs)):
                clusters = {self._of(need) for need in needs}
                if self._size(clusters) <= length:
                    counts[key] = sum([counts[need] for need in needs]) or 1
                    if clusters:
                        self._join(key, clusters)

    def roots(self) -> Iterator[tuple[Any, ...]]:
        """Yield, for each cluster, the results and the keys that are needed outside."""
        roots = defaultdict[Any, dict[Any, None]](dict)
        for key in self._results:
            if key in self.counts:
                roots[self._of(key)][key] = None
        # A task that was joined is in the cluster of all that it needs.
        for task in (task for key, task in self.tasks.items() if key not in self.counts):
            for need in task.dependencies:
                if need in self.counts:
                    roots[self._of(need)][need] = None
        yield from map(tuple, roots.values())

    def _of(self, key: Any) -> Any:
        """Return the same key for all keys of a cluster."""
        above = self._above
        while key in above:
            above[key] = above.get(above[key], above[key])
            key = above[key]
        return key

    def _size(self, clusters: Iterable[Any]) -> int:
        return sum(self._sizes.get(cluster, 1) for cluster in clusters)

    def _join(self, key: Any, clusters: Collection[Any]) -> None:
        """Add a key, which is not a block, to the union of clusters."""
        first, *others = clusters
        self._sizes[first] = self._size(clusters)
        for each in (*others, key):
            self._above[each] = first


def _below(roots: tuple[Any, ...], tasks: Tasks, keys: Collection[Any]) -> FusedTask:
    """Return the fused task with some results; `keys` are the keys of all fused tasks."""
    own, blocks, needs, pending = dict[Any, Any](), dict[Any, None](), set[Any](), [*roots]
    while pending:
        key = pending.pop()
        if key not in keys:
            needs.add(key)
        elif key not in tasks:
            blocks[key] = None
        elif key not in own:
            own[key] = tasks[key]
            pending.extend(tasks[key].dependencies)
    functions = frozenset(key[0] for key in blocks)
    inner = tuple(key for key in blocks if key not in roots)
    return FusedTask(roots, own, inner, functions, frozenset(needs))


def layer_of(key: Any) -> Any:
    """Return the name of the layer of a block."""
    return key[0] if isinstance(key, tuple) else key
