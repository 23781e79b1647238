"""Fuse the reads of small blocks with the tasks that join them: reductions, and larger blocks."""

from collections.abc import Collection, KeysView, Mapping
from itertools import chain
from operator import getitem
from typing import Any

from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from zarrdask.parallel.execution.dask_private import GraphNode, Task, TaskRef, convert_legacy_graph
from zarrdask.parallel.graph.fuse.block_function import BlockFunction
from zarrdask.parallel.graph.fuse.evaluate import run_fused
from zarrdask.parallel.graph.fuse.find import FusedTask, find_fused, layer_of
from zarrdask.parallel.graph.fuse.find_functions import Functions, find_functions, is_single
from zarrdask.parallel.graph.fuse.function_layers import function_layers, inputs_of
from zarrdask.parallel.graph.fuse.limits import FuseLimits
from zarrdask.parallel.graph.fuse.task_steps import Tasks


def fuse_reads(
    graph: HighLevelGraph, results: Collection[Any], limits: FuseLimits
) -> HighLevelGraph:
    """Return a graph in which small blocks are read by the tasks that join them.

    Its layers of Blockwise are fused.
    """
    functions = find_functions(graph, {layer_of(key) for key in results}, _reads)
    length = _length(graph, functions, limits)
    if length < 2:
        return graph
    joining = _joining_layers(graph, functions)
    tasks = {key: task for name in joining for key, task in graph.layers[name].items()}
    if not all(isinstance(task, GraphNode) for task in tasks.values()):
        # There can be very many keys.
        tasks = convert_legacy_graph(tasks, graph.get_all_external_keys())
    others = graph.layers.keys() - {*joining}
    exposed = {need for name in others for need in graph.dependencies[name]}.intersection(joining)
    kept = dict.fromkeys(results)
    for name in joining:
        kept.update(dict.fromkeys(graph.layers[name]) if name in exposed else {})
    orders, replaced = _orders(graph, functions), dict[Any, Any]()
    for fused in find_fused(tasks, kept, length, functions=functions):
        # Otherwise, one result may need another.
        if len(fused.roots) == 1 or len({orders[name] for name in fused.functions}) <= 1:
            for key in fused.tasks:
                del tasks[key]
            replaced.update(fused_tasks(fused, *inputs_of(graph, functions, fused)))
    tasks.update(replaced)
    return _with_layers(graph, functions, joining, tasks, replaced.keys())


def fuse_tasks(tasks: Tasks, results: Collection[Any], shared: set[Any], length: int) -> Tasks:
    """Return tasks, with those that join small blocks fused; any number may need some `shared`."""
    if length < 2:
        return tasks
    remaining = dict(tasks)
    for fused in find_fused(tasks, results, length, shared=shared):
        for key in fused.tasks:
            del remaining[key]
        remaining.update(fused_tasks(fused, {}, tuple(fused.needs)))
    return remaining


def fused_tasks(
    fused: FusedTask, inputs: Mapping[Any, Any], needs: tuple[Any, ...]
) -> dict[Any, Task]:
    """Return the task that computes the results, and those that take one of several."""
    roots = fused.roots
    key = roots[0]
    if len(roots) > 1:
        key = (f"{layer_of(key)}-fused", *key[1:])
    task = Task(key, run_fused, fused, inputs, needs, *map(TaskRef, needs))
    if len(roots) == 1:
        return {key: task}
    return {key: task, **{r: Task(r, getitem, TaskRef(key), n) for n, r in enumerate(roots)}}


def _reads(function: BlockFunction) -> bool:
    return bool(function.sources)


def _length(graph: HighLevelGraph, functions: Functions, limits: FuseLimits) -> int:
    """Return the number of blocks that a task reads."""
    count = sum(len(graph.layers[name]) for name in functions)
    block_bytes = max((each.block_bytes for each in functions.values()), default=0)
    sources = [region for each in functions.values() for region in each.sources]
    return limits.length(count, block_bytes, sources)


def _orders(graph: HighLevelGraph, functions: Functions) -> dict[str, int]:
    """Return a number for each layer: what functions of the same number need of each other.

    A function whose blocks need results computed from blocks of another function has a larger one.
    """
    orders = dict[str, int]()
    for name in graph._toposort_layers():
        needs = graph.dependencies[name]
        orders[name] = max((orders[need] + (need in functions) for need in needs), default=0)
    return orders


def _joining_layers(graph: HighLevelGraph, functions: Collection[str]) -> list[str]:
    """Return the layers that join blocks of functions, in topological order.

    They are layers of single tasks that need such blocks, such as the tasks of `da.concatenate`,
    and everything computed from these.
    """
    joining = list[str]()
    for name in graph._toposort_layers():
        layer, needs = graph.layers[name], graph.dependencies[name]
        is_above = not needs.isdisjoint(joining)
        reads = is_single(layer) and not needs.isdisjoint(functions)
        if name not in functions and not layer.annotations and (is_above or reads):
            joining.append(name)
    return joining


def _with_layers(
    graph: HighLevelGraph,
    functions: Functions,
    joining: Collection[str],
    tasks: Tasks,
    fused: KeysView[Any],
) -> HighLevelGraph:
    """Return a graph with other tasks in the joining layers; `fused` are the keys of new ones."""
    layers, dependencies = {**graph.layers}, {**graph.dependencies}
    for key, layer in function_layers(functions.values()).items():
        layers[key], dependencies[key] = layer, set()
    # Keys of tasks may have other names than their layer.
    lists = {name: [key for key in graph.layers[name] if key in tasks] for name in joining}
    for key in fused - set(chain.from_iterable(lists.values())):
        lists.setdefault(layer_of(key), []).append(key)
    for name, keys in lists.items():
        layers[name] = MaterializedLayer({key: tasks[key] for key in keys})
        needs = {layer_of(need) for key in keys for need in tasks[key].dependencies}
        others = graph.dependencies.get(name, set()) - functions.keys()
        below = {other for other in others if layers[other]}
        dependencies[name] = (needs & (layers.keys() | lists.keys()) | below) - {name}
    tops = graph.layers.keys() - {need for each in graph.dependencies.values() for need in each}
    return HighLevelGraph(layers, dependencies).cull_layers(tops)
