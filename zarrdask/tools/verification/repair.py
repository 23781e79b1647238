"""Repair stored units: copy the damaged ones from another array with the same elements."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import MetadataError, NodeTypeError, ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.codecs.decode import fill_chunk
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.projection import project
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.execution.executor import run_shown
from zarrdask.parallel.rewrite.copying.move import encoded_transfer
from zarrdask.runtime.progress import Show
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.tools.verification.absent_chunks import only_there
from zarrdask.tools.verification.check import Tally, check_unit, check_units
from zarrdask.tools.verification.compare import element_properties

#: The units of one task: few, as each is read and stored by itself.
_TASK_UNITS = 16


def find_array(node: NodePath) -> StoredChunks:
    """Return the units of an array."""
    with strictness(strict=False, quiet=True):
        node, metadata = node.find()
    if not isinstance(metadata, ArrayMetadata):
        raise NodeTypeError(
            "expected an array but found a group; repair from a hierarchy of the same structure",
            key=node.location,
            found="group",
            expected="array",
        )
    return node.chunks(metadata)


class RepairTask(NamedTuple):
    """Some units of an array that one task repairs.

    If `missing`, the other array also decides what is stored: units, and chunks in shards, that are
    missing here are copied, and bad units that are missing there are erased.
    """

    chunks: StoredChunks
    other: StoredChunks
    path: str
    indices: list[Index]
    missing: bool


def plan_repair(
    damaged: NodePath,
    intact: NodePath,
    paths: Iterable[str],
    bad: Mapping[str, Sequence[Index]],
    *,
    missing: bool,
) -> list[RepairTask]:
    """Return the tasks of a repair. All arrays are checked before anything is changed."""
    with strictness(strict=False, quiet=True):
        intact.find()  # an error if there is none, even if there is nothing to repair
    tasks = list[RepairTask]()
    for path in paths:
        chunks = find_array(damaged.at(path))
        below = path[len(damaged.path) :].strip("/")
        other = find_array(intact.join(below))
        check_same(chunks, other)
        indices = [*bad.get(path, ()), *(_missing(chunks, other) if missing else ())]
        tasks += [
            RepairTask(chunks, other, path, indices[start : start + _TASK_UNITS], missing)
            for start in range(0, len(indices), _TASK_UNITS)
        ]
    return tasks


def _missing(chunks: StoredChunks, other: StoredChunks) -> list[Index]:
    """Return the units that may have elements, or chunks of a shard, only in the other array."""
    grid, read_grid = chunks.metadata.grid, chunks.metadata.read_grid
    stored, stored_there = set(StoredUnits(chunks).indices()), set(StoredUnits(other).indices())
    if grid == other.metadata.grid:
        units = stored_there - stored
    else:
        units = {index for index in grid.indices() if index not in stored}
    if chunks.metadata.shard is not None:
        regions = map(read_grid.region, only_there(chunks, other))
        units.update(index for each in regions for index in project(each, grid.axes).indices)
    return sorted(units)


def run_repair(
    tasks: Sequence[RepairTask], *, scheduler: Any, progress: Show
) -> list[tuple[Tally, Tally]]:
    """Run the tasks of a repair; return the counts and problems of each, before and after it."""
    stores = [each.store for task in tasks[:1] for each in (task.chunks, task.other)]
    options = {"scheduler": scheduler, "show": progress, "sizes": [len(t.indices) for t in tasks]}
    with stores[0].batch() if stores else nullcontext():
        return run_shown(repair_chunks, tasks, "repair", *stores, **options)


def check_same(chunks: StoredChunks, other: StoredChunks) -> None:
    """Check that units of one array can be repaired from another."""
    properties = element_properties(chunks.metadata)
    for name, value in element_properties(other.metadata).items():
        if value != properties[name]:
            raise MetadataError(
                f"the array can't be repaired from one with another {name}",
                key=f"{other.store.url}/{other.prefix}".rstrip("/"),
                found=value,
                expected=properties[name],
            )


def repair_chunks(task: RepairTask) -> tuple[Tally, Tally]:
    """Repair some units, and check them again: the task, whose name dashboards of clusters show."""
    chunks, other, indices = task.chunks, task.other, task.indices
    before, locks = check_units(chunks, indices), ChunkLocks(chunks.store)
    # A storage transformer may change the bytes of units.
    transformers = chunks.metadata.transformers or other.metadata.transformers
    equal_bytes = not transformers and encoded_transfer(chunks.metadata, other.metadata) == "units"
    for index in indices:
        with locks.hold(chunks.lock_name(index)):
            _repair_unit(chunks, other, index, missing=task.missing, equal_bytes=equal_bytes)
    return before, check_units(chunks, indices)


def _repair_unit(
    chunks: StoredChunks, other: StoredChunks, index: Index, *, missing: bool, equal_bytes: bool
) -> None:
    # Check again: another writer may have replaced the unit before it was locked.
    verdict = check_unit(chunks, index)
    is_missing = verdict.size is None
    is_shard = chunks.metadata.shard is not None
    if not verdict.is_bad and not (missing and (is_missing or is_shard)):
        return
    key = chunks.key(index)
    if verdict.is_bad or is_missing:
        value = _intact_value(chunks, other, index, equal_bytes=equal_bytes)
    else:
        value = _completed_shard(chunks, other, index)
    if value is not None:
        chunks.units.set(key, value)
    elif missing and verdict.is_bad and _is_missing(other, chunks, index):
        chunks.units.erase(key)


def _intact_value(
    chunks: StoredChunks, other: StoredChunks, index: Index, *, equal_bytes: bool
) -> Buffer | None:
    """Return the encoded unit, or None if it is missing or bad in the other array."""
    if equal_bytes:
        verdict = check_unit(other, index)
        usable = not verdict.is_bad and verdict.size is not None
        return other.units.get(other.key(index)) if usable else None
    if _is_missing(other, chunks, index):
        return None
    pipeline = chunks.metadata.pipeline_at(index)
    region = chunks.metadata.grid.region(index)
    unit = fill_chunk(pipeline.spec)
    try:
        unit[_within(region, region)] = read_region(other, region)
        return pipeline.encode(unit)
    except ZarrdaskError:
        return None  # it can't be read in the other array either


def _completed_shard(chunks: StoredChunks, other: StoredChunks, index: Index) -> Buffer | None:
    """Return a shard with its own chunks, and the chunks that only the other array has.

    It is None if these can't be read.
    """
    metadata, region = chunks.metadata, chunks.metadata.grid.region(index)
    [(first, sizes)] = StoredUnits(chunks).chunk_sizes([index])
    pipeline = metadata.pipeline_at(index)
    shard = fill_chunk(pipeline.spec)
    try:
        shard[_within(region, region)] = read_region(chunks, region)
        for offset in np.argwhere(sizes < 0):
            chunk = tuple(int(at + n) for at, n in zip(first, offset, strict=True))
            if all(at < count for at, count in zip(chunk, metadata.read_grid.counts, strict=True)):
                part = metadata.read_grid.region(chunk)
                shard[_within(part, region)] = read_region(other, part)
        return pipeline.encode(shard)
    except ZarrdaskError:
        return None


def _within(part: tuple[slice, ...], region: tuple[slice, ...]) -> Any:
    """Return the selection of a part of a region in the elements of the region."""
    axes = zip(part, region, strict=True)
    return (*(slice(p.start - r.start, p.stop - r.start) for p, r in axes), ...)


def _is_missing(other: StoredChunks, chunks: StoredChunks, index: Index) -> bool:
    """Return whether another array stores no element of a unit."""
    projection = project(chunks.metadata.grid.region(index), other.metadata.grid.axes)
    return all(other.units.get_range(other.key(each), 0, 1) is None for each in projection.indices)
