"""Make one task of equal tasks on missing blocks.

Dask makes a task for each block of each layer. This module finds the blocks of symbolic layers that
depend only on missing blocks of the same shape: one of them gets a task, whose key replaces those
of the others.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
from dask.core import keys_in_tasks, toposort
from dask.highlevelgraph import HighLevelGraph

from zarrdask.parallel.execution.dask_private import (
    Alias,
    DataNode,
    GraphNode,
    Task,
    TaskRef,
    convert_legacy_graph,
)
from zarrdask.parallel.graph.fuse.culling import culled
from zarrdask.parallel.graph.missing_blocks import classes_of


def shared_tasks(graph: HighLevelGraph, results: set[Any]) -> tuple[dict[Any, Any], set[Any]]:
    """Return the tasks of a graph with equal tasks on missing blocks shared, and the keys of those.

    Its layers of Blockwise are fused.
    """
    sharing = _Sharing(culled(graph, results), results)
    return sharing.tasks, {*sharing.constants.values()}


class _Sharing:
    """A graph in which tasks that depend on nothing but missing blocks are shared."""

    def __init__(self, graph: HighLevelGraph, results: set[Any]) -> None:
        self.tasks: dict[Any, Any] = {}
        self.constants: dict[Any, Any] = {}
        #: For each symbolic layer, the classes of its blocks.
        self._classes: dict[str, np.ndarray] = {}
        #: The key of each constant, by the function and the arguments of its task.
        self._known: dict[Hashable, Any] = {}
        for name in graph._toposort_layers():
            layer = self._without_repeats(graph.layers[name])
            tasks = dict(layer)
            within = {key: keys_in_tasks(tasks, [task]) for key, task in tasks.items()}
            for key in toposort(tasks, within) if any(within.values()) else tasks:
                self._add(key, tasks[key])
        self.tasks = convert_legacy_graph(self.tasks, {*self.tasks, *self.constants})
        for key, task in self.tasks.items():
            shared = task.dependencies & self.constants.keys()
            self.tasks[key] = task.substitute({name: self.constants[name] for name in shared})
        for key in results & self.constants.keys():
            self.tasks.setdefault(key, Alias(key, self.constants[key]))
        counts = Counter(self.constants.values())
        uses = Counter(need for task in self.tasks.values() for need in task.dependencies)
        uses.update(results)
        for key in (key for key, count in counts.items() if count > 1 and uses[key] > 1):
            self.tasks[key] = Task(key, _read_only, self.tasks[key])

    def _without_repeats(self, layer: Any) -> Any:
        """Return a layer with one block of each class."""
        classes = classes_of(layer, self._classes)
        if classes is None:
            return layer
        self._classes[layer.output] = classes
        needed = np.ones(classes.shape, bool)
        if layer.output_blocks:
            needed[...] = False
            needed[tuple(np.array(list(layer.output_blocks)).T)] = True
        constant = np.argwhere(needed & (classes >= 0))
        _, first, numbers = np.unique(
            classes[tuple(constant.T)], return_index=True, return_inverse=True
        )
        keys = [(layer.output, *block) for block in constant.tolist()]
        self.constants.update((key, keys[first[n]]) for key, n in zip(keys, numbers, strict=True))
        kept = {(layer.output, *block) for block in np.argwhere(needed & (classes < 0)).tolist()}
        return layer.cull(kept | {keys[n] for n in first}, ())[0]

    def _add(self, key: Any, task: Any) -> None:
        """Add a task, unless it has the same value as another that depends on constants only."""
        names: list[Any] = []
        form = (self._form if isinstance(task, GraphNode) else self._legacy_form)(task, names)
        if names and all(name in self.constants for name in names):
            self.constants[key] = self._known.setdefault(form, key)
        if self.constants.get(key, key) == key:
            self.tasks[key] = task

    def _form(self, value: Any, names: list[Any]) -> Hashable:
        """Return a value that is equal only for tasks with the same functions and arguments.

        The keys of other tasks among the arguments are appended to `names`.
        """
        if isinstance(value, Task):
            arguments = tuple(self._form(each, names) for each in value.args)
            named = tuple((name, self._form(each, names)) for name, each in value.kwargs.items())
            return type(value), id(value.func), arguments, named
        if isinstance(value, TaskRef | Alias):
            key = value.key if isinstance(value, TaskRef) else value.target
            names.append(key)
            return TaskRef, self.constants.get(key, key)
        return _form_of_constant(value.value if isinstance(value, DataNode) else value)

    def _legacy_form(self, value: Any, names: list[Any]) -> Hashable:
        """Return the form of a task that is a tuple, in which keys stand for other tasks."""
        if isinstance(value, GraphNode | TaskRef):
            return self._form(value, names)
        try:
            if value in self.tasks or value in self.constants:
                return self._form(TaskRef(value), names)
        except TypeError:  # it has no hash
            pass
        if type(value) in (list, tuple):
            return type(value), tuple(self._legacy_form(each, names) for each in value)
        return _form_of_constant(value)


def _read_only(value: Any) -> Any:
    """Return a value that several tasks need, which none of them may modify."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


#: Equal values of these types are the same.
_SAME_IF_EQUAL = (bool, bytes, int, str, type(None), type(...))


def _form_of_constant(value: Any) -> Hashable:
    """Return a value that is equal only for constants of a graph that are the same.

    Equal objects may differ, such as 0.0 and -0.0, so most are distinguished by identity. The graph
    keeps them alive.
    """
    kind = type(value)
    if kind in _SAME_IF_EQUAL:
        return kind, value
    if kind is slice:
        value = value.start, value.stop, value.step
    elif kind not in (list, tuple):
        return kind, id(value)
    return kind, tuple(map(_form_of_constant, value))
