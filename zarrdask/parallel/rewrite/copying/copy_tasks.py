"""The tasks of a copy: batches of units, copied as they are stored, or decoded and encoded again.

A unit is what one key of a store holds: a chunk, or a shard.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, product
from math import prod
from typing import NamedTuple

from zarrdask import config
from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.presence import check_still_stored
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits, chunks_with_data
from zarrdask.display.words import counted
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.metadata.convert import has_equal_fill
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.execution.executor import Workers
from zarrdask.parallel.execution.forks import changing_chunks
from zarrdask.parallel.rewrite.copying.move import (
    InnerGrid,
    Transfer,
    TransferResult,
    encoded_transfer,
    move_inner,
    move_units,
    recode,
    recode_grid,
    total_result,
)
from zarrdask.parallel.rewrite.destination import Destination
from zarrdask.parallel.rewrite.node_plan import NodeCopy
from zarrdask.parallel.rewrite.rewrite_changes import Rewrite
from zarrdask.parallel.rewrite.rewrite_report import CopiedArray, CopyMethod
from zarrdask.runtime.progress import Show, progress
from zarrdask.storage.adapters.forks import Changes
from zarrdask.storage.base import Store
from zarrdask.storage.concurrent_requests import request_on_each

#: The most decoded bytes, and the most units, of one task.
_TASK_BYTES, TASK_UNITS = 2**26, 256
_METHODS: dict[Transfer, CopyMethod] = {
    "units": "copied unchanged",
    "inner": "repacked",
    None: "recoded",
}


@dataclass(frozen=True)
class ArrayJob:
    """An array that is copied; its new document is written when all chunks are stored."""

    node: NodeCopy
    source: StoredChunks
    target: Destination

    @property
    def start(self) -> Index | None:
        """The first element that is copied, or None if all are."""
        region = self.node.region
        return None if region is None else tuple(pick.start for pick in region)

    @cached_property
    def transfer(self) -> Transfer:
        """How the encoded bytes are copied."""
        if self.node.region is not None:
            return None
        return encoded_transfer(self.source.metadata, self.target.metadata)

    def report(self, result: TransferResult | None = None) -> CopiedArray:
        """Return the report of the array: with the numbers of a result, if it has been copied."""
        units, read, written = result or (None, 0, 0)
        method = _METHODS[self.transfer]
        return CopiedArray(self.node.path, method, units, read, written, self.node.notes)


#: The result of a task for a part: the numbers, and the changes if it has written to a fork.
_Copied = tuple[TransferResult, list[Changes]]


class Part(NamedTuple):
    """Some units of an array; or, if its values are recoded, blocks of `recode_grid`."""

    job: int
    transfer: Transfer
    source: StoredChunks
    target: StoredChunks
    indices: Sequence[Index]
    nbytes: int
    empty: bool
    casting: Casting
    #: The element of the source that becomes the first one of the target.
    start: Index | None = None

    @property
    def slow_store(self) -> Store:
        """The store whose requests cost more."""
        return max(self.source, self.target, key=lambda each: each.costs).units


def copy_arrays(
    jobs: Sequence[ArrayJob],
    tasks: Sequence[Sequence[Part]],
    rewrite: Rewrite,
    on: Workers,
    show: Show,
) -> tuple[list[CopiedArray], list[str]]:
    """Copy the units of all arrays in parallel, and each document when its units are stored.

    The tasks that an earlier run has done are left out; the notes that are returned say so.
    """
    journal, done = rewrite.journal, rewrite.journal.done(0)
    written, lost = set[int](), set[int]()

    def look(number: int) -> None:
        path, target = jobs[number].node.path, jobs[number].target
        if path and rewrite.has_written(path, target):
            written.add(number)
        elif rewrite.has_lost(target):
            lost.add(number)

    if rewrite.resumed:
        request_on_each(rewrite.view.store, look, range(len(jobs)))
    done -= {n for n in done if any(part.job in lost for part in tasks[n])}
    journal.nodes.update({jobs[number].node.path: "array" for number in lost})
    waiting = rewrite.remaining(0, len(tasks))
    remaining = Counter(part.job for n in waiting for part in tasks[n])
    results = [list[TransferResult]() for _ in jobs]

    def add(numbers: Iterable[int]) -> None:
        for number in numbers:
            if not remaining[number] and number not in written:
                rewrite.add(jobs[number].node.path, jobs[number].target)

    count = sum(len(part.indices) for task in tasks for part in task)
    nbytes = sum(part.nbytes for task in tasks for part in task)
    copied = sum(len(part.indices) for n in done for part in tasks[n])
    with progress(count, "copy", show, nbytes=nbytes) as bar:
        bar.resume(copied)
        add(range(len(jobs)))

        def finished(number: int, stored: Sequence[_Copied]) -> None:
            for part, (result, _) in zip(tasks[number], stored, strict=True):
                bar.advance(len(part.indices))
                results[part.job].append(result)
                remaining[part.job] -= 1
            add({part.job for part in tasks[number]})

        rewrite.run(0, copy_chunks, _changed(tasks, jobs, rewrite, on), finished, on, _name)
        rewrite.write_documents()
    stored = counted(count, "chunk or shard")
    notes = [f"an earlier run copied {copied} of {stored}"] if copied else []
    arrays = [job.report(total_result(each)) for job, each in zip(jobs, results, strict=True)]
    return arrays, notes


def copy_chunks(parts: Sequence[Part]) -> list[_Copied]:
    """Copy some chunks or shards of arrays: a task."""
    return request_on_each(parts[0].slow_store, _copy, parts)


def _copy(part: Part) -> _Copied:
    with changing_chunks(part.target) as (target, changes):
        result = copy_part(part._replace(target=target))
    return result, changes


def _changed(
    tasks: Sequence[Sequence[Part]], jobs: Sequence[ArrayJob], rewrite: Rewrite, on: Workers
) -> Sequence[Sequence[Part]]:
    """Return tasks that write to the chunks of a rewrite."""
    targets = [rewrite.chunks(job.node.path, job.target, on) for job in jobs]
    return [[part._replace(target=targets[part.job]) for part in task] for task in tasks]


def _name(parts: Sequence[Part]) -> str:
    """Return the name of a task, with the name of the array, or of the first of several."""
    name = parts[0].target.task_name("copy")
    return name if len({part.job for part in parts}) == 1 else f"{name}_and_others"


def copy_part(part: Part) -> TransferResult:
    """Copy the chunks or shards of a part."""
    source, target = part.source, part.target
    if part.transfer == "units":
        return move_units(source, target, part.indices)
    if part.transfer == "inner":
        return move_inner(source, target, part.indices)
    grid = recode_grid(source.metadata, target.metadata)
    blocks = [grid.region(index) for index in part.indices]
    return recode(source, target, blocks, empty=part.empty, casting=part.casting, start=part.start)


# --------------------------------------------------------------------------------------------
# Which units


def plan_tasks(jobs: Sequence[ArrayJob]) -> list[list[Part]]:
    """List the units that are stored; return the parts of each task, in a fixed order."""
    if not jobs:
        return []
    parts_of = request_on_each(jobs[0].source.units, lambda pair: [*_parts(*pair)], enumerate(jobs))
    return [*_tasks(chain.from_iterable(parts_of))]


def _tasks(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yield the parts of each task: one, or several that are requested concurrently."""
    task = list[Part]()
    for part in parts:
        joined = [*task, part]
        is_small = (
            part.slow_store.capabilities.costs.overlaps
            and sum(each.nbytes for each in joined) <= _TASK_BYTES
            and sum(len(each.indices) for each in joined) <= TASK_UNITS
        )
        if task and not is_small:
            yield task
            task = []
        task.append(part)
    if task:
        yield task


def _parts(number: int, job: ArrayJob) -> Iterator[Part]:
    transfer, empty = job.transfer, bool(config.get("write-empty-chunks"))
    source, target = job.source, job.target.chunks
    before, after = job.source.metadata, job.target.metadata
    if transfer is None:
        grid = recode_grid(before, after)
        writes_all = empty or not has_equal_fill(before, after)
        if writes_all:
            indices = grid.indices()
        else:
            indices = chunks_with_data(grid, [job.source], start=job.start)
        shape = grid.chunk_shape
    elif transfer == "units" or after.shard is None:
        indices, shape = _stored_indices(job.source), before.chunk_shape
    else:
        indices, shape = _overlapped_shards(job.source, after), after.chunk_shape
    nbytes = max(prod(shape) * max(before.dtype.itemsize, after.dtype.itemsize), 1)
    count = max(min(_TASK_BYTES // nbytes, TASK_UNITS), 1)
    while batch := list(islice(indices, count)):
        size = len(batch) * nbytes
        casting = Casting.chosen()
        yield Part(number, transfer, source, target, batch, size, empty, casting, job.start)


def _stored_indices(chunks: StoredChunks) -> Iterator[Index]:
    """Yield the units that are stored, in C order; all units, if the store can't be listed."""
    grid = chunks.metadata.grid
    if not chunks.store.capabilities.listable:
        return grid.indices()
    indices = sorted(StoredUnits(chunks).indices())
    if len(indices) < grid.size:
        check_still_stored(chunks)
    return iter(indices)


def _overlapped_shards(source: StoredChunks, target: ArrayMetadata) -> Iterator[Index]:
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
