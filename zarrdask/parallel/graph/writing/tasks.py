"""The tasks of a write: one for each block, and those that finish it or read the blocks back."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.array import core
from dask.core import flatten
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep

from zarrdask import config
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.write import Beyond
from zarrdask.arrays.hierarchy.changes.block_log import BlockLog
from zarrdask.arrays.hierarchy.changes.later_claim import LaterClaim
from zarrdask.arrays.hierarchy.changes.marker import LaterMarker
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.formats.indexing.selection import Region
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.execution.block_writer import BlockWriter, are_compared
from zarrdask.parallel.execution.client import local_threads
from zarrdask.parallel.execution.expected_array import ExpectedArray
from zarrdask.parallel.execution.forks import TaskStores, changes_of
from zarrdask.parallel.execution.locks import check_parts_are_locked
from zarrdask.parallel.graph.fuse.optimization import optimized
from zarrdask.parallel.graph.missing_blocks import equal_blocks
from zarrdask.parallel.graph.writing.block_writes import BlockWrites
from zarrdask.parallel.graph.writing.manifests import ManifestUpdate, update_manifests
from zarrdask.parallel.plan.write_plan import plan_writes
from zarrdask.storage.adapters.forks import Changes


def write_blocks(
    x: da.Array,
    to: ArrayRegion,
    beyond: Beyond = "keep",
    *,
    empty: bool | None = None,
    is_blank: bool = False,
    log: BlockLog | None = None,
    marker: LaterMarker | None = None,
    expected: tuple[NodePath, ArrayMetadata] | LaterClaim | None = None,
    stores: TaskStores | None = None,
) -> BlockWrites:
    """Return the tasks that write a Dask array to a region of a stored array, one for each block.

    `empty` and `beyond` are as in `write_region`. If nothing is stored in the
    region when the tasks run (`is_blank`), only one of equal blocks has to be computed to know that
    none of them is stored. Blocks that are stored are recorded in `log`, if there is one.
    They are written to `stores`, by default to the store of the region itself. The first task
    stores the `marker`, if there is one. Tasks check that an `expected` array is there as it was,
    or hold the claim of a new one.
    """
    plan = plan_writes(
        x.chunks,
        x.dtype,
        to.metadata,
        to.region,
        block_size=config.get("block-size"),
        keeps=beyond == "keep",
    )
    if plan.read_modify_write:
        check_parts_are_locked(to.stored.store)
    if stores is not None:
        to = stores.region(to, reads=plan.read_modify_write > 0)
    blocks = plan.blocks
    if blocks != x.chunks:
        # If rechunking takes several steps, no intermediate block exceeds the written ones.
        x = x.rechunk(blocks, block_size_limit=plan.block_bytes)
    # A unique name, not one by content: a write that is requested again has to be done again.
    name = f"{to.stored.task_name('write')}-{uuid4().hex}"
    empty = config.get("write-empty-chunks") if empty is None else empty
    threads = max(1, local_threads() // max(plan.tasks, 1))
    found = (
        ExpectedArray(*expected, to.region, beyond, name)
        if isinstance(expected, tuple)
        else expected
    )
    options = {"log": log, "marker": marker, "expected": found, "threads": threads}
    writer = BlockWriter(to, empty=empty, name=name, beyond=beyond, **options)  # type: ignore[arg-type]
    receipts = x.map_blocks(
        write_block,
        writer,
        ArraySliceDep(blocks),
        dtype=np.intp,
        chunks=tuple((1,) * len(axis) for axis in blocks),
        meta=np.empty((0,) * x.ndim, np.intp),
        name=name,
    )
    return BlockWrites(receipts, blocks, writer, equal_blocks(x) if is_blank else None)


def write_block(values: np.ndarray, writer: BlockWriter, block: Region) -> np.ndarray:
    """Write a block, and return its receipt: the task."""
    receipt = writer.write(values, block)
    return np.full((1,) * len(block), receipt, writer.receipt_dtype)


#: An action that finishes a write, after all its blocks were stored.
Action = Callable[[], object]


def finish(
    commits: Sequence[Action | None], updates: Sequence[ManifestUpdate], *receipts: Any
) -> Changes | None:
    """Commit writes, after all their blocks were stored, and update manifests: the last task.

    Return the changes of forks that still have to be merged in the process that has the store. If
    new arrays were compared with what this would store, the writes were committed before.
    """
    if are_compared(receipts):
        return None
    changes = Changes.joined(each for receipt in receipts for each in changes_of(receipt))
    for commit in commits:
        if commit is not None:
            commit()
    return update_manifests(updates, changes)


def release(claims: Sequence[LaterClaim], result: Any) -> Any:
    """Erase the claims of writes that were committed, and return the result: the very last task.

    It is one of its own, so that a commit that runs again finds the claims.
    """
    for claim in claims:
        claim.forget()
    return result


def gather(
    receipts: Sequence[da.Array],
    commits: Sequence[Action | None],
    updates: Sequence[ManifestUpdate] = (),
    claims: Sequence[LaterClaim] = (),
) -> Delayed:
    """Return one Delayed that stores all blocks of all writes, then finishes them."""
    blocks = _delayed(receipts)
    # Dask would search arguments for tasks, but not the arguments of a partial function.
    last = delayed(partial(finish, commits, updates), pure=False, traverse=False)
    name = f"to-zarr-{uuid4().hex}"
    if not claims:
        return last(*blocks, dask_key_name=name)
    committed = last(*blocks, dask_key_name=f"commit-{name}")
    after = delayed(partial(release, claims), pure=False, traverse=False)
    return after(committed, dask_key_name=name)


def _delayed(arrays: Sequence[da.Array]) -> list[Delayed]:
    """Return the blocks of arrays, optimised together so that common tasks stay common."""
    if not arrays:
        return []
    keys = [key for x in arrays for key in flatten(x.__dask_keys__())]
    graph = HighLevelGraph.merge(*(x.__dask_graph__() for x in arrays))
    layer = f"delayed-{arrays[0].name}"
    tasks = optimized(graph, keys)
    needed = {key for task in tasks.values() for key in getattr(task, "dependencies", ())}
    # Dask drops the futures of persisted blocks, which a cluster releases with the last reference.
    tasks.update({key: graph[key] for key in needed - tasks.keys()})
    whole = HighLevelGraph.from_collections(layer, tasks)
    return [Delayed(key, whole, layer=layer) for key in keys]


def read_blocks(
    writes: BlockWrites,
    written: ArrayRegion,
    commit: Action | None,
    claims: Sequence[LaterClaim] = (),
) -> da.Array:
    """Return a written region as a Dask array that reads each block after it was written.

    If there is a commit, all blocks are written before any block is read; then claims are erased.
    """
    receipts, blocks = writes.receipts, writes.blocks
    if commit is not None:
        last = gather([receipts], [commit], claims=claims)
        committed = core.from_delayed(last, (), meta=np.empty((), object))
        receipts = receipts.map_blocks(_after, committed, dtype=receipts.dtype, meta=receipts._meta)
    return receipts.map_blocks(
        read_block,
        written,
        ArraySliceDep(blocks),
        dtype=written.dtype,
        chunks=blocks,
        meta=np.empty((0,) * receipts.ndim, written.dtype),
        name=f"stored-{receipts.name}",
    )


def _after(receipt: np.ndarray, committed: Any) -> np.ndarray:
    """Return a receipt, after the write was committed."""
    return receipt


def read_block(receipt: np.ndarray, written: ArrayRegion, block: Region) -> np.ndarray:
    """Read a written block: the task."""
    return written.read(block)
