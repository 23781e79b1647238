"""Run tasks that Dask has fused, many of them one after another, at little cost each."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dask._task_spec import GraphNode, Task, TaskRef, _execute_subgraph

#: Tasks by their keys.
Tasks = Mapping[Any, GraphNode]
#: A function that computes a task, given the values of the keys that the task depends on.
Compute = Callable[[Mapping[Any, Any]], Any]


@dataclass(frozen=True)
class Fused:
    """A graph of tasks with one result, in the order in which they are computed.

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
        local = {key: resolve(reference, values) for key, reference in self.inputs}
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
    if type(task) is not Task or task.kwargs:
        return compute
    if task.func is _execute_subgraph:
        graph, result, names, *references = task.args
        return Fused(tuple(zip(names, references, strict=True)), steps(graph, [result]), result)
    function, arguments = task.func, task.args

    def call(values: Mapping[Any, Any]) -> Any:
        return function(*[resolve(argument, values) for argument in arguments])

    return call


def steps(graph: Tasks, kept: Iterable[Any]) -> tuple[tuple[Any, Compute, tuple[Any, ...]], ...]:
    """Return the tasks of a graph as the steps of `Fused`, which keep some results."""
    uses = Counter(need for task in graph.values() for need in task.dependencies)
    uses.update(kept)
    ordered, stack = dict[Any, None](), [*graph]
    while stack:
        key = stack[-1]
        missing = [
            need for need in graph[key].dependencies if need in graph and need not in ordered
        ]
        stack += missing
        if not missing:
            ordered[stack.pop()] = None

    def step(key: Any) -> tuple[Any, Compute, tuple[Any, ...]]:
        task = graph[key]
        uses.subtract(task.dependencies)
        return key, prepared(task), tuple(need for need in task.dependencies if not uses[need])

    return tuple(map(step, ordered))
