"""Run tasks one after another, at little cost each."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.array.core import getter

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.parallel.execution.dask_private import (
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


def prepared(task: GraphNode) -> Compute:
    """Return a function that computes a task, without the checks of Dask at each call."""
    compute: Compute = task
    if type(task) is List:
        return _arguments(task.args)
    if type(task) is not Task:
        return compute
    if task.func is execute_subgraph:
        graph, result, names, *references = task.args
        inputs = tuple(zip(names, references, strict=True))
        return Subgraph(inputs, tuple(steps(graph, [result])), result)
    function, arguments, named = task.func, _arguments(task.args), task.kwargs
    if named:
        if any(isinstance(each, _REFERENCES) for each in named.values()):
            return compute
        return lambda values: function(*arguments(values), **named)
    if function is getter and len(task.args) == 2:
        function = _read
    return lambda values: function(*arguments(values))


def _arguments(arguments: Iterable[Any]) -> Callable[[Mapping[Any, Any]], list[Any]]:
    """Return a function of the values of keys that returns the arguments of a task."""
    kinds = list[tuple[bool, Any, Compute | None]]()
    for each in arguments:
        if type(each) is TaskRef:
            kinds.append((True, each.key, None))
        elif type(each) is DataNode:
            kinds.append((False, each.value, None))
        else:
            kinds.append((False, each, prepared(each) if isinstance(each, GraphNode) else None))

    def evaluated(values: Mapping[Any, Any]) -> list[Any]:
        return [
            values[each] if is_key else each if compute is None else compute(values)
            for is_key, each, compute in kinds
        ]

    return evaluated


def _read(source: Any, index: Any) -> Any:
    """Return a part of an array as Dask does, without its checks if the array is stored."""
    if isinstance(source, ArrayRegion):
        return np.asarray(source[index])
    return getter(source, index)


def ordered(graph: Tasks, results: Iterable[Any]) -> Iterator[Any]:
    """Yield the keys of the tasks that results need, each after those that it depends on.

    What only a later result needs comes after the earlier results.
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


def steps(graph: Tasks, results: Collection[Any]) -> Iterator[tuple[Any, Compute, tuple[Any, ...]]]:
    """Yield the tasks of a graph as the steps of `Subgraph`, which keep the results."""
    uses = Counter(need for task in graph.values() for need in task.dependencies)
    uses.update(results)
    for key in ordered(graph, results):
        task, finished = graph[key], []
        for need in task.dependencies:
            uses[need] -= 1
            if not uses[need]:
                finished.append(need)
        yield key, prepared(task), tuple(finished)
