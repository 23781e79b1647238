"""The parts of Dask that are not public: they are used in this module and nowhere else.

Tested with Dask 2025.9.2 and 2026.8; ``test_dask_private.py`` fails when a release moves
or changes one of them. The behaviour without it:

========================  =========================================================================
`Task`, `TaskRef`, ...    needed: the nodes of graphs, which xarray imports from the same module
`convert_legacy_graph`    graphs are taken as they are, as if a release had no tuples as tasks
`convert_legacy_task`     the same, for one task
`fuse_linear_task_spec`   chains of tasks stay tasks of their own
`execute_subgraph`        tasks that Dask has fused are not taken apart: what they read is not
                          fetched in advance, and arrays in them count as read entirely
`total_threads`           the number is requested from the scheduler
`callback_functions`      needed: bars of computations at the same time
`expression_from_graph`   needed, if ``array.query-planning`` is switched on
========================  =========================================================================

Besides, ``Array._meta`` is read, as by all packages that make arrays of Dask, and the protocol
``__dask_optimize__`` of arrays is implemented. The engine for xarray replaces ``Array.rechunk``
and ``Array.vindex``, which then call Dask's own, unless the array can be read in another way.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dask import _task_spec
from dask._task_spec import Alias, DataNode, GraphNode, List, Task, TaskRef

__all__ = [
    "Alias",
    "DataNode",
    "GraphNode",
    "List",
    "Task",
    "TaskRef",
    "callback_functions",
    "convert_legacy_graph",
    "convert_legacy_task",
    "execute_subgraph",
    "expression_from_graph",
    "fuse_linear_task_spec",
    "total_threads",
]


def expression_from_graph() -> Callable[..., Any]:
    """Return the function that makes an array expression of a graph."""
    # Imported here: only a process with array expressions has it.
    from dask.array._array_expr._collection import from_graph

    return from_graph  # type: ignore[no-any-return]


def as_it_is(graph: Mapping[Any, Any], *_: Any) -> dict[Any, Any]:
    """Return a graph unchanged, where a release of Dask lacks the function."""
    return dict(graph)


def as_node(key: Any, task: Any, _: Any) -> Any:
    """Return a task as it is, and anything else as a node with these data."""
    return task if isinstance(task, GraphNode) else DataNode(key, task)


def _no_task(*_: Any) -> None:
    """Stand for a function that no task has."""


convert_legacy_graph: Callable[..., dict[Any, Any]] = getattr(
    _task_spec, "convert_legacy_graph", as_it_is
)
convert_legacy_task: Callable[..., Any] = getattr(_task_spec, "convert_legacy_task", as_node)
#: Fuses chains of tasks, given a graph and the keys of its results.
fuse_linear_task_spec: Callable[..., dict[Any, Any]] = getattr(
    _task_spec, "fuse_linear_task_spec", as_it_is
)
#: The function of a task in which Dask has fused several; its arguments begin with their graph.
execute_subgraph: Callable[..., Any] = getattr(_task_spec, "_execute_subgraph", _no_task)


def total_threads(client: Any) -> int:
    """Return the number of threads of a cluster; 0 while no worker has joined."""
    # The number that the client received last: a request would take a round trip.
    identity = getattr(client, "_scheduler_identity", None)
    if identity is None:
        return sum(client.nthreads().values())
    return int(identity.get("total_threads", 0))


def callback_functions(callback: Any) -> Any:
    """Return the functions of a callback, as schedulers of Dask take them as an argument."""
    return callback._callback
