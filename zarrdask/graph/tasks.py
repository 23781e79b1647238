"""The tasks of a write: blocks that lie right, each stored by one task, and what comes after."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.core import flatten
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep

from zarrdask import config
from zarrdask.chunks.stored import StoredChunks
from zarrdask.chunks.write import Beyond
from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.execution.handle import Handle, Target
from zarrdask.indexing.selection import Region
from zarrdask.plan.align import Chunks
from zarrdask.plan.write import plan_writes


def write_blocks(
    x: da.Array,
    stored: StoredChunks,
    place: Region,
    beyond: Beyond = "keep",
    *,
    empty: bool | None = None,
) -> tuple[da.Array, Chunks, Target]:
    """Return the tasks that write a Dask array.

    Parameters
    ----------
    x : dask.array.Array
    stored : Chunks
        The stored array.
    place : tuple of slice
        Where in it, of the shape of `x`.
    beyond : {"keep", "fill"}
        What becomes of what units hold beyond the end of the array.
    empty : bool, optional
        Whether units that hold only the fill value are stored; by default as configured.

    Returns
    -------
    dask.array.Array
        Receipts, one a block: how many units it stored.
    tuple of tuple of int
        The blocks.
    Target
        What the tasks write to.
    """
    plan = plan_writes(
        x.chunks,
        x.dtype,
        stored.metadata,
        place,
        block_size=config.get("block-size"),
        keeps=beyond == "keep",
    )
    blocks = plan.blocks
    if blocks != x.chunks:
        # Where that takes several steps, no block between is larger than those that are written.
        x = x.rechunk(blocks, block_size_limit=plan.block_bytes)
    start = tuple(pick.start for pick in place)
    # Not by what it is made of: a write that is asked for again has to be done again.
    name = f"write-zarr-{uuid4().hex}"
    empty = config.get("write-empty-chunks") if empty is None else empty
    target = Target(Handle(stored), start, empty=empty, name=name, beyond=beyond)
    receipts = _map_blocks(
        write_block,
        x,
        target,
        blocks,
        dtype=np.intp,
        chunks=tuple((1,) * len(axis) for axis in blocks),
        meta=np.empty((0,) * x.ndim, np.intp),
        name=name,
    )
    return receipts, blocks, target


def _map_blocks(
    task: Callable[..., np.ndarray], x: da.Array, target: Target, blocks: Chunks, **options: Any
) -> da.Array:
    """Map a task over blocks: it is given the block, the target, and where the block lies."""
    if not EXPRESSIONS:
        return x.map_blocks(task, target, ArraySliceDep(blocks), **options)
    # Array expressions can't hand out slices yet; block numbers they can.
    return x.map_blocks(_at, _Numbered(task, target, blocks), **options)


class _Numbered(NamedTuple):
    task: Callable[..., np.ndarray]
    target: Target
    blocks: Chunks


def _at(values: np.ndarray, numbered: _Numbered, block_id: tuple[int, ...] = ()) -> np.ndarray:
    ends = (sum(axis[: i + 1]) for axis, i in zip(numbered.blocks, block_id, strict=True))
    block = tuple(
        slice(end - axis[i], end)
        for end, axis, i in zip(ends, numbered.blocks, block_id, strict=True)
    )
    return numbered.task(values, numbered.target, block)


def write_block(values: np.ndarray, target: Target, block: tuple[slice, ...]) -> np.ndarray:
    """Write one block: the task. The receipt is small, whatever the block."""
    return np.full((1,) * len(block), target.write(values, block), np.intp)


#: What is done once all blocks of a write are stored.
Action = Callable[[], object]


class Finish:
    """The last task of one or more writes: it waits for all blocks, then commits each write.

    Parameters
    ----------
    commits : sequence of callable
        What is done for each write, in order.
    """

    # Not a tuple or a dataclass, which Dask would search for tasks.

    def __init__(self, commits: Sequence[Action | None]) -> None:
        self.commits = [commit for commit in commits if commit is not None]

    def __call__(self, *receipts: Any) -> None:
        """Run the task."""
        for commit in self.commits:
            commit()


def gather(receipts: Sequence[da.Array], commits: Sequence[Action | None]) -> Delayed:
    """Return one Delayed that stores all blocks of writes, and then commits these.

    Parameters
    ----------
    receipts : sequence of dask.array.Array
        The receipts of each write, as `write_blocks` returns them.
    commits : sequence of callable
        What is done for each write once all blocks of all writes are stored.
    """
    # Array expressions are optimised when they are computed.
    blocks = receipts if EXPRESSIONS else _delayed(receipts)
    finish = delayed(Finish(commits), pure=False, traverse=False)
    return finish(*blocks, dask_key_name=f"to-zarr-{uuid4().hex}")


def _delayed(arrays: Sequence[da.Array]) -> list[Delayed]:
    """Return the blocks of arrays, optimised together so that tasks they share stay shared."""
    if not arrays:
        return []
    keys = [key for x in arrays for key in flatten(x.__dask_keys__())]
    graph = HighLevelGraph.merge(*(x.__dask_graph__() for x in arrays))
    layer = f"delayed-{arrays[0].name}"
    tasks = HighLevelGraph.from_collections(layer, arrays[0].__dask_optimize__(graph, keys))
    return [Delayed(key, tasks, layer=layer) for key in keys]


def read_blocks(
    receipts: da.Array, blocks: Chunks, target: Target, commit: Action | None
) -> da.Array:
    """Return a stored array, each block read after it was written.

    Parameters
    ----------
    receipts, blocks
        As `write_blocks` returns them.
    target : Target
        Where the blocks are in the end.
    commit : callable, optional
        What is done after all blocks were written, and before one is read.
    """
    metadata = target.handle.chunks.metadata
    if commit is not None:
        done = da.from_delayed(gather([receipts], [commit]), (), meta=np.empty((), object))
        receipts = receipts.map_blocks(_after, done, dtype=receipts.dtype, meta=receipts._meta)
    return _map_blocks(
        read_block,
        receipts,
        target,
        blocks,
        dtype=metadata.dtype,
        chunks=blocks,
        meta=np.empty((0,) * receipts.ndim, metadata.dtype),
        name=f"stored-{receipts.name}",
    )


def _after(receipt: np.ndarray, done: Any) -> np.ndarray:
    return receipt


def read_block(receipt: np.ndarray, target: Target, block: tuple[slice, ...]) -> np.ndarray:
    """Read a block that was written: the task."""
    return target.read(block)
