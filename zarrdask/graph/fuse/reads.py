"""Bundles below reductions: many small blocks that one task computes and joins.

Dask reduces an array by a tree of tasks, each of which joins the results of a few others. Here,
each branch with few enough blocks becomes one task, which computes its blocks one after another and
joins them as the tasks of the branch would. The same holds for tasks that merge blocks to larger
ones.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import getitem
from typing import Any, NamedTuple

from dask._task_spec import DataNode, GraphNode, Task, TaskRef, convert_legacy_graph
from dask.core import reverse_dict
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from toolz import concat, merge

from zarrdask.chunks.region import reading_ahead
from zarrdask.graph.components import components
from zarrdask.graph.fuse.block_function import Chain, Computed, far_blocks, find_chain
from zarrdask.graph.fuse.prefetch import far_reads
from zarrdask.graph.fuse.steps import Tasks, prepared


class Branch(NamedTuple):
    """The tasks that compute a few blocks and join them, and that no others need.

    It becomes one task. Unlike those of a `groups.Group`, its blocks need not be in its tasks:
    a chain computes them, so that a graph has no tasks of single blocks.
    """

    #: The keys of the results: several, if these share reads.
    roots: tuple[Any, ...]
    #: The tasks by key, but for those of blocks that a chain computes.
    tasks: Tasks
    #: The keys of these blocks.
    blocks: list[Any]

    @property
    def needs(self) -> set[Any]:
        """The keys of other tasks that those of the branch need."""
        every = {need for task in self.tasks.values() for need in task.dependencies}
        return every.difference(self.tasks, self.blocks)

    def bundle(self, inputs: Mapping[Any, Any], needs: Iterable[Any]) -> dict[Any, Task]:
        """Return the task of the branch, and those that take one of several results."""
        roots, needs = self.roots, tuple(needs)
        key = roots[0]
        if len(roots) > 1:
            key = (f"{_layer_of(key)}-joined", *key[1:])
        results = map(TaskRef, needs)
        task = Task(key, join_blocks, roots, self.tasks, inputs, needs, *results)
        if len(roots) == 1:
            return {key: task}
        each = {root: Task(root, getitem, TaskRef(key), n) for n, root in enumerate(roots)}
        return {key: task, **each}


def join_blocks(
    roots: tuple[Any, ...],
    tasks: Tasks,
    inputs: Mapping[Any, Any],
    needs: tuple[Any, ...],
    *results: Any,
) -> Any:
    """Compute blocks and join them: the task of a branch. If it has several results, return a list.

    `tasks` are those of the branch, but for those of blocks that a chain computes, and `inputs`
    what only these blocks need. `results` are those of the tasks `needs`, among them the chains.
    """
    known = dict(zip(needs, results, strict=True))
    chains = {each.name: each for each in results if isinstance(each, Chain)}
    computed: Computed = {}
    functions = {name: chain.given(known, inputs, computed) for name, chain in chains.items()}

    def ordered(key: Any) -> Iterator[Any]:
        """Yield the keys of what is computed for a key, in the order in which it is."""
        for need in tasks[key].dependencies if key in tasks else ():
            yield from ordered(need)
        if key not in known:
            yield key

    def compute(key: Any) -> Any:
        if key in known:
            return known[key]
        if key in tasks:
            return prepared(tasks[key])({need: compute(need) for need in tasks[key].dependencies})
        name, *block = key
        try:
            return functions[name](tuple(block))
        except BaseException as error:
            error.add_note(chains[name].note(tuple(block)))
            raise

    keys = [*concat(map(ordered, roots))]
    blocks = ((chains[name], tuple(block)) for name, *block in keys if name in chains)
    reads = concat([far_blocks(blocks, known), far_reads(tasks[k] for k in keys if k in tasks)])
    with reading_ahead(reads):
        return compute(roots[0]) if len(roots) == 1 else [compute(root) for root in roots]


def find_branches(
    tasks: Tasks,
    kept: Collection[Any],
    length: int,
    *,
    layers: Collection[str] = (),
    shared: Collection[Any] = (),
) -> list[Branch]:
    """Return the branches that have from two to `length` blocks.

    The tasks are in topological order; those that need no others compute blocks, as do the
    `layers`, which are not among the tasks. Results in `kept` are needed elsewhere, and those in
    `shared` by any number of branches.
    """
    uses = Counter(need for task in tasks.values() for need in task.dependencies)
    counts, below = dict[Any, int](), set[Any]()
    for key, task in tasks.items():
        needs = task.dependencies.difference(shared)
        known = [counts.get(need, 1 if _layer_of(need) in layers else 0) for need in needs]
        if key in shared or not all(known) or sum(known) > length:
            continue
        if all(uses[need] == 1 and need not in kept for need in needs):
            counts[key] = max(sum(known), 1)
            below |= needs

    def branch(root: Any) -> Branch:
        found, blocks, pending = dict[Any, GraphNode](), list[Any](), [root]
        while pending:
            key = pending.pop()
            if key in tasks:
                found[key] = tasks[key]
                pending.extend(tasks[key].dependencies.difference(shared))
            else:
                blocks.append(key)
        return Branch((root,), found, blocks)

    return [branch(key) for key, count in counts.items() if count > 1 and key not in below]


def joined(tasks: Tasks, results: set[Any], shared: set[Any], length: int) -> Tasks:
    """Return tasks, in topological order, with branches of small blocks made single tasks.

    Any number of branches may need the tasks `shared`.
    """
    if length < 2:
        return tasks
    remaining = dict(tasks)
    for branch in find_branches(tasks, results, length, shared=shared):
        for key in branch.tasks:
            del remaining[key]
        remaining.update(branch.bundle({}, branch.needs))
    return remaining


def with_shared_reads(
    branches: Sequence[Branch], chains: Mapping[str, Chain], length: int
) -> Iterator[Branch]:
    """Join branches whose chains have the same chains below, so that each block is read once.

    Those are left out that would need more reads than `length`, or share one with other tasks.
    """
    uses = Counter(below.name for chain in chains.values() for below in chain.below)
    if not uses:
        yield from branches
        return

    def reads(branch: Branch) -> Iterator[Any]:
        for name, *block in branch.blocks:
            for part in chains[name].parts if name in chains else ():
                if isinstance(part.source, Chain):
                    yield part.source.name, *part.number(tuple(block))

    group_of = components((branch.roots, read) for branch in branches for read in reads(branch))
    groups = defaultdict[Any, list[Branch]](list)
    for branch in branches:
        groups[group_of(branch.roots)].append(branch)
    for group in groups.values():
        counts = Counter(read for branch in group for read in reads(branch))
        if len(counts) <= length and all(n == uses[read[0]] for read, n in counts.items()):
            roots, tasks, blocks = zip(*group, strict=True)
            yield Branch((*concat(roots),), merge(*tasks), [*concat(blocks)])


def with_branches(
    graph: HighLevelGraph, results: set[Any], chains: Mapping[str, Chain], length: int
) -> HighLevelGraph:
    """Return a graph in which branches of small blocks are single tasks.

    Its layers of Blockwise are fused, and `find_chains` has returned the chains.
    """
    if not chains or length < 2:
        return graph
    joining = _joining_layers(graph, chains)
    tasks = {key: task for name in joining for key, task in graph.layers[name].items()}
    if not all(isinstance(task, GraphNode) for task in tasks.values()):
        # There can be very many keys.
        tasks = convert_legacy_graph(tasks, graph.get_all_external_keys())
    others = graph.layers.keys() - {*joining}
    exposed = {need for name in others for need in graph.dependencies[name]}.intersection(joining)
    kept = results.union(*(graph.layers[name] for name in exposed))
    bundles = dict[Any, Task]()
    branches = find_branches(tasks, kept, length, layers=chains)
    for branch in with_shared_reads(branches, chains, length):
        inputs, needs = dict[Any, Any](), branch.needs
        for name in {key[0] for key in branch.blocks}:
            numbers = [key[1:] for key in branch.blocks if key[0] == name]
            inputs.update(chains[name].tasks(graph, numbers))
            needs |= {f"{name}-chain", *chains[name].needs}
        for key in branch.tasks:
            del tasks[key]
        bundles.update(branch.bundle(inputs, needs))
    # What the branches have in common is a key of its own, so that a worker receives it once.
    layers, dependencies = {**graph.layers}, {**graph.dependencies}
    for key, chain in ((f"{name}-chain", chain) for name, chain in chains.items()):
        layers[key], dependencies[key] = MaterializedLayer({key: DataNode(key, chain)}), set()
    tasks.update(bundles)
    # Keys of tasks may have other names than their layer.
    lists = {name: [key for key in graph.layers[name] if key in tasks] for name in joining}
    for key in bundles.keys() - set().union(*lists.values()):
        lists.setdefault(_layer_of(key), []).append(key)
    for name, keys in lists.items():
        layers[name] = MaterializedLayer({key: tasks[key] for key in keys})
        needs = {_layer_of(need) for key in keys for need in tasks[key].dependencies}
        others = graph.dependencies.get(name, set()) - chains.keys()
        below = {other for other in others if layers[other]}
        dependencies[name] = (needs & (layers.keys() | lists.keys()) | below) - {name}
    tops = graph.layers.keys() - {need for each in graph.dependencies.values() for need in each}
    return HighLevelGraph(layers, dependencies).cull_layers(tops)


def find_chains(graph: HighLevelGraph, results: Collection[Any]) -> dict[str, Chain]:
    """Return the chains of layers that read stored arrays, whose blocks only other tasks join.

    Several of these chains may have the same chain below.
    """
    names, above = {_layer_of(key) for key in results}, reverse_dict(graph.dependencies)
    chains, below = dict[str, Chain](), dict[str, Chain]()
    for name in graph._toposort_layers():
        layer = graph.layers[name]
        chain = None if name in names or layer.annotations else find_chain(graph, name, below)
        if chain is None or not (chain.sources or chain.below):
            continue
        if all(_joins(graph.layers[other]) for other in above[name]):
            chains[name] = chain
        elif not chain.below:
            below[name] = chain
    while wrong := [name for name in chains if not _can_share(graph, name, chains, above)]:
        for name in wrong:
            del chains[name]
    return chains


def _can_share(
    graph: HighLevelGraph,
    name: str,
    chains: Mapping[str, Chain],
    above: Mapping[str, Collection[str]],
) -> bool:
    """Whether blocks of a chain can be computed together with others that need the same reads.

    Otherwise these would be read twice, or one block needs the result of another.
    """
    if not chains[name].below:
        return True
    if not all(chains.keys() >= {*above[each.name]} for each in chains[name].below):
        return False
    group_of = components((key, each.name) for key, chain in chains.items() for each in chain.below)
    earlier = graph.cull_layers(graph.dependencies[name]).layers.keys() & chains.keys()
    return all(group_of(other) != group_of(name) for other in earlier)


def _joining_layers(graph: HighLevelGraph, chains: Collection[str]) -> list[str]:
    """Return the layers that join blocks of chains, in topological order.

    They are layers of single tasks that need such blocks, such as those of `da.concatenate`, and
    all that is computed from these.
    """
    joining = list[str]()
    for name in graph._toposort_layers():
        layer, needs = graph.layers[name], graph.dependencies[name]
        is_above = not needs.isdisjoint(joining)
        reads = _joins(layer) and not needs.isdisjoint(chains)
        if name not in chains and not layer.annotations and (is_above or reads):
            joining.append(name)
    return joining


def _joins(layer: Any) -> bool:
    # Annotations belong to tasks that would vanish.
    return isinstance(layer, MaterializedLayer) and not layer.annotations


def _layer_of(key: Any) -> Any:
    """Return the name of the layer of a block."""
    return key[0] if isinstance(key, tuple) else key
