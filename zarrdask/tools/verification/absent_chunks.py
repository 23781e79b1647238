"""Find the chunks that another array stores and this one does not."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.projection import project
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.execution.executor import run_shown
from zarrdask.runtime.progress import Show
from zarrdask.tools.verification.check import Problem
from zarrdask.tools.verification.compare import element_properties
from zarrdask.tools.verification.element_differences import differing

#: The chunks of one task: few, as each is read by itself.
_TASK_CHUNKS = 16


class AbsenceTask(NamedTuple):
    """Some chunks of an array that only another array stores."""

    chunks: StoredChunks
    other: StoredChunks
    indices: list[Index]


def absent_problems(
    node: NodePath, intact: NodePath, paths: Iterable[str], *, scheduler: Any, progress: Show
) -> list[Problem]:
    """Return a problem of kind "absent" for each chunk that only the other hierarchy stores.

    Chunks that hold only the fill value, and arrays that the other hierarchy lacks or has with
    other elements, are left out.
    """
    tasks = [task for path in paths for task in _tasks(node.at(path), _other(node, intact, path))]
    stores = [each.store for task in tasks[:1] for each in (task.chunks, task.other)]
    options = {"scheduler": scheduler, "show": progress, "sizes": [len(t.indices) for t in tasks]}
    results = run_shown(find_absent, tasks, "compare", *stores, **options) if tasks else []
    return [
        _problem(task, index)
        for task, indices in zip(tasks, results, strict=True)
        for index in indices
    ]


def _other(node: NodePath, intact: NodePath, path: str) -> NodePath:
    return intact.join(path[len(node.path) :].strip("/"))


def _tasks(node: NodePath, intact: NodePath) -> Iterator[AbsenceTask]:
    try:
        with strictness(strict=False, quiet=True):
            (node, metadata), (intact, other) = node.find(), intact.find()
    except ZarrdaskError:
        return  # it is damaged, or the other hierarchy does not have it
    if not isinstance(metadata, ArrayMetadata) or not isinstance(other, ArrayMetadata):
        return
    stores = node.store, intact.store
    is_listed = all(store.capabilities.listable for store in stores)
    if not is_listed or element_properties(metadata) != element_properties(other):
        return
    here, there = node.chunks(metadata), intact.chunks(other)
    indices = only_there(here, there)
    for start in range(0, len(indices), _TASK_CHUNKS):
        yield AbsenceTask(here, there, indices[start : start + _TASK_CHUNKS])


def only_there(here: StoredChunks, there: StoredChunks) -> list[Index]:
    """Return the chunks that are not stored here, but at least in part in the other array."""
    own_grid, grid = here.metadata.read_grid, there.metadata.read_grid
    own, other = (StoredUnits(each).map("chunk", None, lambda *_: None) for each in (here, there))
    if own_grid.axes == grid.axes:
        return [tuple(index) for index in np.argwhere(other & ~own).tolist()]
    overlapped = {
        index
        for stored in np.argwhere(other).tolist()
        for index in project(grid.region(tuple(stored)), own_grid.axes).indices
    }
    return sorted(index for index in overlapped if not own[index])


def find_absent(task: AbsenceTask) -> list[Index]:
    """Return the chunks that do not hold only the fill value. Dashboards show this name."""
    metadata, grid = task.chunks.metadata, task.chunks.metadata.read_grid
    absent = list[Index]()
    for index in task.indices:
        try:
            values = read_region(task.other, grid.region(index))
        except ZarrdaskError:
            absent.append(index)  # it is damaged there, but it is something
            continue
        fill = np.full(values.shape, metadata.fill, values.dtype)
        if differing(values, fill).any():
            absent.append(index)
    return absent


def _problem(task: AbsenceTask, index: Index) -> Problem:
    """Return the problem of a chunk; its index names the chunk or shard that would hold it."""
    chunks, metadata = task.chunks, task.chunks.metadata
    region = metadata.read_grid.region(index)
    [unit] = project(region, metadata.grid.axes).indices
    where = f"{task.other.store.url}/{task.other.prefix}".rstrip("/")
    subject = "" if metadata.shard is None else f"the chunk {index} of this shard is "
    text = f"{subject}stored only in {where}; to copy it, repair with missing=True (--missing)"
    return Problem("absent", chunks.prefix.rstrip("/"), chunks.key(unit), text, tuple(unit))
