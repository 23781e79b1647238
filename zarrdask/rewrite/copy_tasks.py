"""The tasks of a copy: batches of units, moved as they are or decoded and encoded again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Any, NamedTuple

from zarrdask import config
from zarrdask.chunks.inventory import chunks_with_data, erase_leftovers, stored_units
from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.executor import Workers, run
from zarrdask.execution.handle import Handle
from zarrdask.execution.progress import progress
from zarrdask.grids.base import Index, extent_at
from zarrdask.hierarchy.create import create_node
from zarrdask.rewrite.move import (
    How,
    Inner,
    Moved,
    blocks_of,
    fills_alike,
    how_to_move,
    move_inner,
    move_units,
    recode,
    total,
)
from zarrdask.rewrite.node_plan import CopiedArray, Node, Way
from zarrdask.storage.base import Store

#: Bytes, decoded, of the units of one task, and how many there are at most.
_BATCH, _MOST = 2**26, 256
_WAYS: dict[How, Way] = {"units": "moved", "inner": "moved within shards", None: "recoded"}


@dataclass(frozen=True)
class ArrayJob:
    """An array that is to be copied.

    Attributes
    ----------
    node : Node
    source, target : Chunks
    store : Store
        Where the document goes, when all chunks are there.
    path : str
        Of the copy there.
    """

    node: Node
    source: StoredChunks
    target: StoredChunks
    store: Store
    path: str

    @property
    def how(self) -> How:
        """How its bytes can be moved."""
        return how_to_move(self.source, self.target)

    def finish(self) -> None:
        """Write the array's document."""
        create_node(self.store, self.path, self.target.metadata, overwrite=False)

    def copied(self, done: Iterable[Moved]) -> CopiedArray:
        """Return what was done."""
        return CopiedArray(self.node.path, _WAYS[self.how], *total(done), self.node.notes)


class _Task(NamedTuple):
    """Some units of an array.

    Attributes
    ----------
    job : int
        The number of the array.
    how : {"units", "inner", None}
    source, target : Handle
    indices : sequence of Index
        Of units, or of the blocks that are recoded.
    empty : bool
        Whether units that hold only the fill value are stored.
    """

    job: int
    how: How
    source: Handle
    target: Handle
    indices: Sequence[Index]
    empty: bool


def copy_arrays(jobs: Sequence[ArrayJob], on: Workers, show: Any) -> list[CopiedArray]:
    """Copy arrays: the units of all of them at once, and the document of each at last.

    Raises
    ------
    ZarrdaskError
        The first error of a task; arrays that are not complete have no document then.
    """
    for job in jobs:
        erase_leftovers(job.target)
    tasks = [task for number, job in enumerate(jobs) for task in _tasks(number, job)]
    left, done = [0] * len(jobs), [list[Moved]() for _ in jobs]
    for task in tasks:
        left[task.job] += 1
    for job, count in zip(jobs, left, strict=True):
        if not count:
            job.finish()
    with progress(sum(len(task.indices) for task in tasks), "copy", show) as told:

        def finished(number: int, result: Moved) -> None:
            task = tasks[number]
            told.advance(len(task.indices))
            done[task.job].append(result)
            left[task.job] -= 1
            if not left[task.job]:
                jobs[task.job].finish()

        run(copy_chunks, tasks, scheduler=on, finished=finished)
    return [job.copied(results) for job, results in zip(jobs, done, strict=True)]


def copy_chunks(task: _Task) -> Moved:
    """Copy some units of an array: the task."""
    source, target = task.source.chunks, task.target.chunks
    if task.how == "units":
        return move_units(source, target, task.indices)
    if task.how == "inner":
        return move_inner(source, target, task.indices)
    grid = blocks_of(source.metadata, target.metadata)
    blocks = [extent_at(grid, index) for index in task.indices]
    return recode(source, target, blocks, empty=task.empty)


# --------------------------------------------------------------------------------------------
# Which units


def _tasks(number: int, job: ArrayJob) -> Iterator[_Task]:
    how, empty = job.how, bool(config.get("write-empty-chunks"))
    source, target = Handle(job.source), Handle(job.target)
    before, after = job.source.metadata, job.target.metadata
    if how is None:
        grid = blocks_of(before, after)
        all_of_it = empty or not fills_alike(before, after)
        wanted = grid.indices() if all_of_it else chunks_with_data(grid, [job.source])
        shape = grid.chunk_shape
    elif how == "units" or after.shard is None:
        wanted, shape = _there(job.source), before.chunk_shape
    else:
        wanted, shape = _touched(job.source, job.target), after.chunk_shape
    size = max(prod(shape) * max(before.dtype.itemsize, after.dtype.itemsize), 1)
    count = max(min(_BATCH // size, _MOST), 1)
    if job.target.is_packed:
        # Several units are one value there: it has one writer.
        count = max(after.grid.size, 1)
    while some := list(islice(wanted, count)):
        yield _Task(number, how, source, target, some, empty)


def _there(chunks: StoredChunks) -> Iterator[Index]:
    """Yield the units that are stored, or all, if the store can't tell."""
    return stored_units(chunks) if chunks.store.listable else chunks.metadata.grid.indices()


def _touched(source: StoredChunks, target: StoredChunks) -> Iterator[Index]:
    """Yield the units of the target in which there are chunks of stored units of the source."""
    before, after = Inner(source.metadata), Inner(target.metadata)
    seen = set[Index]()
    for unit in _there(source):
        ranges = before.range_of(unit)
        if all(ranges):
            low = after.unit_of(tuple(r[0] for r in ranges))
            high = after.unit_of(tuple(r[-1] for r in ranges))
            seen.update(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))))
    yield from sorted(seen)
