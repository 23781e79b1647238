"""Run tasks one after another, at little cost each."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from dask.array.core import getter

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.parallel.execution.dask_private import (
    Alias,
    DataNode,
    GraphNode,
    List,
    Task,
    TaskRef,
    execute_subgraph,
)

#: Tasks by their keys.
Tasks = Mapping[Any, GraphNode]
#: A function that computes a task, given the values of the keys that the task depends on.
Compute = Callable[[Mapping[Any, Any]], Any]
#: The types of arguments that stand for other values.
_REFERENCES = (GraphNode, TaskRef)


@dataclass(frozen=True)
class Subgraph:
    """Tasks that Dask has made one, in the order in which they are computed.

    Dask sorts such a graph whenever it runs it, which takes longer than small blocks do.

    Attributes
    ----------
    inputs : tuple of (key, GraphNode or TaskRef)
        The keys of the graph that are computed outside, and what they refer to there.
    steps : tuple of (key, callable, tuple of key)
        For each task its key, the function that computes it, and the keys that no later task needs.
    result : key
        The key of the result.
    """

    inputs: tuple[tuple[Any, Any], ...]
    steps: tuple[tuple[Any, Compute, tuple[Any, ...]], ...]
    result: Any

    def __call__(self, values: Mapping[Any, Any]) -> Any:
        """Compute the graph, given the values that the inputs refer to."""
        local = {
            key: values[reference.key] if type(reference) is TaskRef else resolve(reference, values)
            for key, reference in self.inputs
        }
        for key, compute, finished in self.steps:
            local[key] = compute(local)
            for each in finished:
                del local[each]
        return local[self.result]


def resolve(reference: Any, values: Mapping[Any, Any]) -> Any:
    """Return the value of an argument of a task."""
    if isinstance(reference, TaskRef):
        return values[reference.key]
    return reference(values) if isinstance(reference, GraphNode) else reference


def computed(task: GraphNode, values: Mapping[Any, Any]) -> Any:
    """Compute a task that is needed once, without the checks of Dask at each call."""
    kind = type(task)
    if kind is Alias:
        return values[task.target]
    if (kind is not Task and kind is not List) or task.func is execute_subgraph:
        return prepared(task)(values)
    arguments = [
        values[each.key]
        if type(each) is TaskRef
        else values[each.target]
        if type(each) is Alias
        else computed(each, values)
        if isinstance(each, GraphNode)
        else each
        for each in task.args
    ]
    if kind is List:
        return arguments
    function, named = task.func, task.kwargs
    if function is getter:
        return _quick(task)(*arguments, **named)
    if named:
        named = {
            name: resolve(each, values) if isinstance(each, _REFERENCES) else each
            for name, each in named.items()
        }
    return function(*arguments, **named)


def prepared(task: GraphNode) -> Compute:
    """Return a function that computes a task that is needed often, as `computed` does once."""
    compute: Compute = task
    if type(task) is not Task and type(task) is not List:
        return compute
    if task.func is execute_subgraph:
        graph, result, names, *references = task.args
        inputs = tuple(zip(names, references, strict=True))
        all_steps = [(key, prepared(each), done) for key, each, done in steps(graph, [result])]
        return Subgraph(inputs, tuple(all_steps), result)
    function: Callable[..., Any] = _list if type(task) is List else _quick(task)
    named: Mapping[str, Any] = {} if type(task) is List else task.kwargs
    if any(isinstance(each, _REFERENCES) for each in named.values()):
        return compute
    #: For each argument, whether it is the key of a value, and the task that computes it if it is
    #: neither that nor a value itself.
    arguments = list[tuple[bool, Any, Compute | None]]()
    for each in task.args:
        if type(each) is TaskRef:
            arguments.append((True, each.key, None))
        elif type(each) is DataNode:
            arguments.append((False, each.value, None))
        else:
            inner = prepared(each) if isinstance(each, GraphNode) else None
            arguments.append((False, each, inner))

    def call(values: Mapping[Any, Any]) -> Any:
        return function(
            *[
                values[each] if is_key else each if compute is None else compute(values)
                for is_key, each, compute in arguments
            ],
            **named,
        )

    return call


def _list(*items: Any) -> list[Any]:
    return [*items]


def _quick(task: Task) -> Callable[..., Any]:
    """Return the function of a task, or one that is faster if arrays are stored."""
    is_read = task.func is getter and len(task.args) == 2 and not task.kwargs
    return _read if is_read else task.func


def _read(source: Any, index: Any) -> Any:
    """Return a part of an array as Dask does, without its checks if the array is stored."""
    if isinstance(source, ArrayRegion):
        return np.asarray(source[index])
    return getter(source, index)


def ordered(graph: Tasks, results: Iterable[Any]) -> Iterator[Any]:
    """Yield the keys of the tasks that results need, each after those that it depends on.

    Tasks that only a later result needs come after the earlier results.
    """
    done = set[Any]()
    for result in results:
        stack = [result]
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            needs = graph[key].dependencies
            missing = [each for each in needs if each in graph and each not in done]
            stack += missing
            if not missing:
                done.add(stack.pop())
                yield key


def steps(
    graph: Tasks, results: Collection[Any]
) -> Iterator[tuple[Any, GraphNode, tuple[Any, ...]]]:
    """Yield the tasks of a graph in order, each with its key, and the keys no later task needs."""
    needs = {key: task.dependencies for key, task in graph.items()}
    uses = Counter(chain.from_iterable(needs.values()))
    uses.update(results)
    for key in ordered(graph, results):
        finished = []
        for need in needs[key]:
            uses[need] -= 1
            if not uses[need]:
                finished.append(need)
        yield key, graph[key], tuple(finished)
