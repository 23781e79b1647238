"""Run tasks one after another, at little cost each."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zarrdask.parallel.execution.dask_private import GraphNode, Task, TaskRef, execute_subgraph

#: Tasks by their keys.
Tasks = Mapping[Any, GraphNode]
#: A function that computes a task, given the values of the keys that the task depends on.
Compute = Callable[[Mapping[Any, Any]], Any]


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
    if task.func is execute_subgraph:
        graph, result, names, *references = task.args
        inputs = tuple(zip(names, references, strict=True))
        return Subgraph(inputs, tuple(steps(graph, [result])), result)
    function, arguments = task.func, task.args

    def call(values: Mapping[Any, Any]) -> Any:
        return function(*[resolve(argument, values) for argument in arguments])

    return call


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
        task = graph[key]
        uses.subtract(task.dependencies)
        yield key, prepared(task), tuple(need for need in task.dependencies if not uses[need])
