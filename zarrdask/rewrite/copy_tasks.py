"""The tasks of a copy: batches of units, copied as they are stored, or decoded and encoded again.

A unit is what one key of a store holds: a chunk, or a shard.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from math import prod
from typing import NamedTuple

from zarrdask import config
from zarrdask.chunks.inventory import chunks_with_data, erase_leftovers, stored_units
from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.executor import Workers, run
from zarrdask.execution.handle import Handle
from zarrdask.grids.base import Index, extent_at
from zarrdask.hierarchy.create import create_node
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.rewrite.endpoints import Destination
from zarrdask.rewrite.move import (
    InnerGrid,
    Transfer,
    TransferResult,
    encoded_transfer,
    has_equal_fill,
    move_inner,
    move_units,
    recode,
    recode_grid,
    total_result,
)
from zarrdask.rewrite.node_plan import NodeCopy
from zarrdask.rewrite.report import CopiedArray, CopyMethod
from zarrdask.runtime.progress import Show, progress

#: The most decoded bytes, and the most units, of one task.
_TASK_BYTES, _TASK_UNITS = 2**26, 256
_METHODS: dict[Transfer, CopyMethod] = {
    "units": "moved",
    "inner": "moved within shards",
    None: "recoded",
}


def planned_array(node: NodeCopy) -> CopiedArray:
    """Return how an array will be copied: without the numbers that only the copy itself shows."""
    transfer = encoded_transfer(node.before, node.after)  # type: ignore[arg-type]
    return CopiedArray(node.path, _METHODS[transfer], notes=node.notes)


@dataclass(frozen=True)
class ArrayJob:
    """An array that is copied; its new document is written when all chunks are stored."""

    node: NodeCopy
    source: StoredChunks
    target: Destination

    @cached_property
    def transfer(self) -> Transfer:
        """How the encoded bytes are copied."""
        return encoded_transfer(self.source.metadata, self.target.metadata)

    def finish(self) -> None:
        """Write the document of the array."""
        target = self.target
        create_node(target.store, target.path, target.metadata, overwrite=False)

    def report(self, results: Sequence[TransferResult]) -> CopiedArray:
        """Return the report of the array, from the results of its tasks."""
        return CopiedArray(
            self.node.path, _METHODS[self.transfer], *total_result(results), self.node.notes
        )


class _Task(NamedTuple):
    """Some units of an array; or, if its values are recoded, blocks of `recode_grid`."""

    job: int
    transfer: Transfer
    source: Handle
    target: Handle
    indices: Sequence[Index]
    empty: bool


def copy_arrays(jobs: Sequence[ArrayJob], on: Workers, show: Show) -> list[CopiedArray]:
    """Copy the units of all arrays in parallel, and each document when its units are done."""
    for job in jobs:
        erase_leftovers(job.target.chunks)
    tasks = [task for number, job in enumerate(jobs) for task in _tasks(number, job)]
    remaining, results = [0] * len(jobs), [list[TransferResult]() for _ in jobs]
    for task in tasks:
        remaining[task.job] += 1
    for job, count in zip(jobs, remaining, strict=True):
        if not count:
            job.finish()
    count = sum(len(task.indices) for task in tasks)
    nbytes = sum(len(t.indices) * jobs[t.job].source.metadata.pipeline.spec.nbytes for t in tasks)
    with progress(count, "copy", show, nbytes=nbytes) as bar:

        def finished(number: int, result: TransferResult) -> None:
            task = tasks[number]
            bar.advance(len(task.indices))
            results[task.job].append(result)
            remaining[task.job] -= 1
            if not remaining[task.job]:
                jobs[task.job].finish()

        run(copy_chunks, tasks, on=on, finished=finished)
    return [job.report(done) for job, done in zip(jobs, results, strict=True)]


def copy_chunks(task: _Task) -> TransferResult:
    """Copy some units of an array. This is the task: dashboards of clusters show its name."""
    source, target = task.source.chunks, task.target.chunks
    if task.transfer == "units":
        return move_units(source, target, task.indices)
    if task.transfer == "inner":
        return move_inner(source, target, task.indices)
    grid = recode_grid(source.metadata, target.metadata)
    blocks = [extent_at(grid, index) for index in task.indices]
    return recode(source, target, blocks, empty=task.empty)


# --------------------------------------------------------------------------------------------
# Which units


def _tasks(number: int, job: ArrayJob) -> Iterator[_Task]:
    transfer, empty = job.transfer, bool(config.get("write-empty-chunks"))
    source, target = Handle(job.source), Handle(job.target.chunks)
    before, after = job.source.metadata, job.target.metadata
    if transfer is None:
        grid = recode_grid(before, after)
        writes_all = empty or not has_equal_fill(before, after)
        indices = grid.indices() if writes_all else chunks_with_data(grid, [job.source])
        shape = grid.chunk_shape
    elif transfer == "units" or after.shard is None:
        indices, shape = _stored_indices(job.source), before.chunk_shape
    else:
        indices, shape = _met_shards(job.source, after), after.chunk_shape
    nbytes = max(prod(shape) * max(before.dtype.itemsize, after.dtype.itemsize), 1)
    count = max(min(_TASK_BYTES // nbytes, _TASK_UNITS), 1)
    while batch := list(islice(indices, count)):
        yield _Task(number, transfer, source, target, batch, empty)


def _stored_indices(chunks: StoredChunks) -> Iterator[Index]:
    """Yield the units that are stored; all units, if the store can't be listed."""
    return stored_units(chunks) if chunks.store.listable else chunks.metadata.grid.indices()


def _met_shards(source: StoredChunks, target: ArrayMetadata) -> Iterator[Index]:
    """Yield the shards of the target that hold chunks of stored units of the source."""
    before, after = InnerGrid(source.metadata), InnerGrid(target)
    shards = set[Index]()
    for unit in _stored_indices(source):
        ranges = before.range_of(unit)
        if all(ranges):
            first = after.unit_of(tuple(r[0] for r in ranges))
            last = after.unit_of(tuple(r[-1] for r in ranges))
            shards.update(product(*(range(a, b + 1) for a, b in zip(first, last, strict=True))))
    yield from sorted(shards)
