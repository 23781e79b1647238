"""Repair stored units in parallel: plan the tasks, and run them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from zarrdask.chunks.inventory import stored_units
from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.executor import check_reached, run, workers
from zarrdask.execution.handle import Handle
from zarrdask.grids.base import Index
from zarrdask.hierarchy.path import join_path
from zarrdask.runtime.progress import Show
from zarrdask.runtime.progress import progress as show_progress
from zarrdask.storage.base import Store
from zarrdask.verification.repair import RepairTally, check_same, find_array, repair_units

#: The units of one task: few, as each is read and stored by itself.
_TASK_UNITS = 16


class RepairTask(NamedTuple):
    """Some units of an array that one task repairs; see `repair_units`."""

    handle: Handle
    other: Handle
    path: str
    indices: list[Index]
    missing: bool


def plan_repair(
    damaged: tuple[Store, str],
    intact: tuple[Store, str],
    paths: Iterable[str],
    bad: Mapping[str, Sequence[Index]],
    *,
    missing: bool,
) -> list[RepairTask]:
    """Return the tasks of a repair. All arrays are checked before anything is changed.

    Parameters
    ----------
    damaged, intact : (Store, str)
        The store and the path of the node that is repaired, and of the one that is read.
    paths : iterable of str
        The paths of the arrays in the damaged store.
    bad : mapping of str to sequence of tuple of int
        The units of each array that can't be read.
    missing : bool
        As in `zarrdask.verification.repair.repair_units`.

    Raises
    ------
    NodeNotFoundError, NodeTypeError, MetadataError
        If there is no such array in one of the stores, or if the two do not match.
    """
    tasks = list[RepairTask]()
    for path in paths:
        chunks = find_array(damaged[0], path)
        below = path[len(damaged[1]) :].strip("/")
        other = find_array(intact[0], join_path(intact[1], below))
        check_same(chunks, other)
        indices = [*bad.get(path, ()), *(_missing(chunks, other) if missing else ())]
        handles = Handle(chunks), Handle(other)
        tasks += [
            RepairTask(*handles, path, indices[start : start + _TASK_UNITS], missing)
            for start in range(0, len(indices), _TASK_UNITS)
        ]
    return tasks


def _missing(chunks: StoredChunks, other: StoredChunks) -> list[Index]:
    """Return the units that are not stored, but that the other array may have elements of."""
    stored, stored_there = set(stored_units(chunks)), set(stored_units(other))
    if chunks.metadata.grid == other.metadata.grid:
        return sorted(stored_there - stored)
    return [index for index in chunks.metadata.grid.indices() if index not in stored]


def run_repair(tasks: Sequence[RepairTask], *, scheduler: Any, progress: Show) -> list[RepairTally]:
    """Run the tasks of a repair, and return their results in the same order."""
    total = sum(len(task.indices) for task in tasks)
    batch = tasks[0].handle.chunks.store.batch() if tasks else nullcontext()
    with batch, workers(scheduler) as on, show_progress(total, "repair", progress) as bar:
        for task in tasks[:1]:
            check_reached(on, task.handle.chunks.store, task.other.chunks.store)
        return run(
            repair_chunks,
            tasks,
            on=on,
            finished=lambda number, _: bar.advance(len(tasks[number].indices)),
        )


def repair_chunks(task: RepairTask) -> RepairTally:
    """Repair some units. This is the task: dashboards of clusters show its name."""
    chunks, other = task.handle.chunks, task.other.chunks
    return repair_units(chunks, other, task.indices, missing=task.missing)
