"""Write parts of a stored array.

A *unit* is a stored object: a chunk, or a shard of an array that has shards. Units that are covered
completely are encoded and stored; others are read, changed and stored under a lock.
"""

import random
import time
import warnings
from functools import cache, partial
from typing import Any, Literal, cast

import numpy as np

from zarrdask.chunks.parts import in_parts
from zarrdask.chunks.stored import StoredChunks
from zarrdask.codecs.array_to_bytes.sharding import Shard, shard_of
from zarrdask.codecs.decode import put_fill
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.dtypes.fill_values import only_fill
from zarrdask.errors import CodecError, LinkError, StoreError, UnsupportedError, ZarrdaskError
from zarrdask.grids.base import ChunkGrid, Index
from zarrdask.indexing.projection import Points, Projection, Request, numpy_index, permute, project
from zarrdask.runtime import buffers
from zarrdask.runtime.locks import ChunkLocks, Lock
from zarrdask.runtime.progress import Show
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.in_flight import Requests

#: How a write treats the elements of a unit that are beyond the end of the array: in a new array
#: they are set to the fill value; in an existing one they are kept, since another writer may be
#: appending to the array.
Beyond = Literal["fill", "keep"]

#: Encoded bytes of one task that may be on their way to a store with latency.
_MAX_BYTES_IN_FLIGHT = 2**26
#: How often a partial write is repeated because another machine has changed the unit meanwhile.
_MAX_SWAPS = 100


def write_region(
    chunks: StoredChunks,
    request: Request,
    values: np.ndarray,
    *,
    empty: bool,
    beyond: Beyond = "keep",
    threads: int | None = 1,
    among: Lock | None = None,
    show: Show | None = False,
) -> int:
    """Write values to the requested elements of an array.

    Parameters
    ----------
    chunks : StoredChunks
        The array.
    request : Request
        The elements to write, as in `zarrdask.chunks.read.read_region`.
    values : ndarray
        The values, with the shape of the request and the data type of the array.
    empty : bool
        Whether units that hold nothing but the fill value are stored; otherwise they are erased.
    beyond : {"keep", "fill"}
        Whether elements of units beyond the end of the array are kept, which requires reading the
        units (the default), or set to the fill value.
    threads : int, optional
        The number of threads that encode in parallel, by default 1. None means as many as
        configured.
    among : Lock, optional
        A lock to take for a unit that is covered in part, which excludes writers on other
        machines. Writers on this machine are always excluded.
    show : bool, file or callable, default False
        Whether and how to show a progress bar. None shows one if the write is large.

    Returns
    -------
    int
        The number of units that were stored.

    Raises
    ------
    CodecError
        If values can't be encoded, or a unit that is written in part is damaged.
    StoreError
        If the store fails.
    """
    cuts = project(request, chunks.metadata.grid.axes)
    locks = ChunkLocks(chunks.store, among)

    def write(part: Projection) -> int:
        return _write(chunks, part, values, locks, empty=empty, beyond=beyond)

    nbytes = values.nbytes
    return sum(
        in_parts(write, chunks, cuts, threads=threads, label="write", show=show, nbytes=nbytes)
    )


def _write(
    chunks: StoredChunks,
    cuts: Projection,
    values: np.ndarray,
    locks: ChunkLocks,
    *,
    empty: bool,
    beyond: Beyond,
) -> int:
    if chunks.units.seekable or len(cuts.indices) == 1:
        return _write_in_turn(chunks, cuts, values, locks, empty=empty, beyond=beyond)
    return _write_at_once(chunks, cuts, values, locks, empty=empty, beyond=beyond)


def _write_at_once(
    chunks: StoredChunks,
    cuts: Projection,
    values: np.ndarray,
    locks: ChunkLocks,
    *,
    empty: bool,
    beyond: Beyond,
) -> int:
    """Write to a store with latency: while one object is encoded, others are on their way."""
    grid, counts = chunks.metadata.grid, list[int]()
    in_thread_of_task = locks.is_distributed and not chunks.units.swappable

    def change(index: Index, inside: Any, part: np.ndarray) -> None:
        counts.append(_change(chunks, index, inside, part, locks, empty=empty))

    with Requests(_MAX_BYTES_IN_FLIGHT) as requests:
        for index, inside, outside in zip(*cuts, strict=True):
            part = values[outside]
            if _is_replaced(grid, index, inside, beyond):
                data = _encode(chunks, index, inside, part, empty=empty)
                counts.append(data is not None)
                # Some codecs return a view of memory that the next chunk is encoded into.
                data = None if data is None else bytes(data)
                requests.send(partial(_put_whole, chunks, index, data, locks), len(data or b""))
            elif in_thread_of_task:
                # A lock of the cluster belongs to the thread of the task.
                change(index, inside, part)
            else:
                size = chunks.metadata.pipeline.spec.nbytes
                requests.send(partial(change, index, inside, part), 2 * size)
    return sum(counts)


def _write_in_turn(
    chunks: StoredChunks,
    cuts: Projection,
    values: np.ndarray,
    locks: ChunkLocks,
    *,
    empty: bool,
    beyond: Beyond,
) -> int:
    grid, count = chunks.metadata.grid, 0
    for index, inside, outside in zip(*cuts, strict=True):
        if _is_replaced(grid, index, inside, beyond):
            data = _encode(chunks, index, inside, values[outside], empty=empty)
            _put_whole(chunks, index, data, locks)
            count += data is not None
        else:
            count += _change(chunks, index, inside, values[outside], locks, empty=empty)
    return count


def _is_replaced(grid: ChunkGrid, index: Index, inside: Any, beyond: Beyond) -> bool:
    """Whether no element of the stored unit is kept."""
    return inside is None or (beyond == "fill" and _reaches_edges(grid, index, inside))


def _change(
    chunks: StoredChunks,
    index: Index,
    inside: Any,
    values: np.ndarray,
    locks: ChunkLocks,
    *,
    empty: bool,
) -> bool:
    """Change part of a unit, and return whether it was stored rather than erased."""
    name, units = chunks.lock_name(index), chunks.units
    if units.swappable:
        try:
            with locks.hold_here(name):
                return _swap(chunks, index, inside, values, empty=empty)
        except UnsupportedError:
            # Not every server of S3 has conditional writes. In a cluster that is an error, as this
            # may be a thread that can't take its locks.
            if locks.is_distributed:
                raise
    if units.concurrent and units.shared:
        _warn_of_other_machines(units.url)
    with locks.hold(name):
        old = units.get(chunks.key(index))
        data = _encode_part(chunks, index, inside, values, old, empty=empty)
        _put(chunks, index, data)
    return data is not None


def _swap(
    chunks: StoredChunks, index: Index, inside: Any, values: np.ndarray, *, empty: bool
) -> bool:
    """Change part of a unit again and again, until no other machine has changed it meanwhile."""
    key = chunks.key(index)
    for attempt in range(_MAX_SWAPS):
        old, tag = chunks.units.get_tagged(key)
        data = _encode_part(chunks, index, inside, values, old, empty=empty)
        if data is None and tag is None:
            return False
        if data is None:
            data = _encoded_fill(chunks, index)  # stores can't erase on a condition
        if chunks.units.swap(key, data, tag):
            return True
        time.sleep(random.uniform(0, min(0.01 * 2**attempt, 1)))
    raise StoreError(
        "others changed this chunk or shard each time that part of it was to be written; let "
        "regions that are written at the same time end at the edges of chunks, or of shards",
        key=f"{chunks.units.url}/{key}",
        found=f"{_MAX_SWAPS} attempts",
    )


@cache
def _warn_of_other_machines(url: str) -> None:
    warnings.warn(
        f"{url}: part of a chunk or shard is changed, and this store can't detect that another "
        "machine changes it at the same time. If other machines write to this array now, let the "
        "regions that they write end at the edges of chunks, or of shards",
        stacklevel=2,
    )


def _put_whole(chunks: StoredChunks, index: Index, data: Buffer | None, locks: ChunkLocks) -> None:
    name = chunks.lock_name(index)
    version = locks.version(name)
    _put(chunks, index, data)
    if not locks.is_outdated(version):
        return
    # A partial write at the same time may have stored a unit that was read before this write. It
    # is one of this machine, and the locks of a cluster belong to the threads of its tasks.
    with locks.hold_here(name):
        _put(chunks, index, data)


def _put(chunks: StoredChunks, index: Index, data: Buffer | None) -> None:
    key = chunks.key(index)
    if data is None:
        try:
            chunks.units.erase(key)
            return
        except LinkError:
            # Nothing is erased through a symbolic link. A unit of the fill value reads the same.
            data = _encoded_fill(chunks, index)
    chunks.units.set(key, data)


def _encoded_fill(chunks: StoredChunks, index: Index) -> Buffer:
    pipeline = chunks.metadata.pipeline_at(index)
    return pipeline.encode(fill_chunk(pipeline))


def _encode(
    chunks: StoredChunks, index: Index, inside: Any, values: np.ndarray, *, empty: bool
) -> Buffer | None:
    """Return an encoded unit, or None if it need not be stored."""
    pipeline = chunks.metadata.pipeline_at(index)
    if inside is not None:
        padded = fill_chunk(pipeline)
        padded[inside] = values
        values = padded
    return _encoded(chunks, index, pipeline, values, empty=empty)


def _encoded(
    chunks: StoredChunks, index: Index, pipeline: Pipeline, values: np.ndarray, *, empty: bool
) -> Buffer | None:
    if not empty and only_fill(values, pipeline.spec.fill_value):
        return None
    try:
        return pipeline.encode(values)
    except ZarrdaskError as error:
        raise error.within(chunks.key(index)) from error.__cause__


def _encode_part(
    chunks: StoredChunks,
    index: Index,
    inside: Any,
    values: np.ndarray,
    old: Buffer | None,
    *,
    empty: bool,
) -> Buffer | None:
    """Return an encoded unit of which a part is changed, or None if it need not be stored."""
    pipeline, key = chunks.metadata.pipeline_at(index), chunks.key(index)
    try:
        if shard_of(pipeline) is not None and _is_box(inside):
            return _update_shard(pipeline, inside, values, old, empty=empty)
        merged = _merge(pipeline, inside, values, old)
    except CodecError as error:
        if _reaches_edges(chunks.metadata.grid, index, inside):
            # The damaged unit has no other element in the array that would have to be kept.
            return _encode(chunks, index, inside, values, empty=empty)
        raise error.within(key) from error.__cause__
    except ZarrdaskError as error:
        raise error.within(key) from error.__cause__
    return _encoded(chunks, index, pipeline, merged, empty=empty)


def fill_chunk(pipeline: Pipeline) -> np.ndarray:
    """Return a new chunk, or shard, in which every element is the fill value."""
    spec = pipeline.spec
    chunk = buffers.chunk(spec.shape, spec.dtype)
    put_fill(chunk, ..., spec.fill_value)
    return chunk


def _is_box(request: Request) -> bool:
    """Whether a request is a contiguous block: slices of step 1 along all axes."""
    return not isinstance(request, Points) and all(
        isinstance(pick, slice) and pick.step == 1 for pick in request
    )


def _reaches_edges(grid: ChunkGrid, index: Index, inside: Any) -> bool:
    """Whether a request covers all elements of a unit that are within the array."""
    return _is_box(inside) and all(
        pick.start == 0 and pick.stop == min(length, size - at)
        for pick, length, at, size in zip(
            inside, grid.shape_of(index), grid.start(index), grid.shape, strict=True
        )
    )


def _merge(pipeline: Pipeline, inside: Any, values: np.ndarray, old: Buffer | None) -> np.ndarray:
    unit = fill_chunk(pipeline) if old is None else pipeline.decode(old)
    if not unit.flags.writeable or unit.dtype != pipeline.spec.dtype:
        unit = np.array(unit, pipeline.spec.dtype)
    unit[numpy_index(inside)] = values
    return unit


def _update_shard(
    pipeline: Pipeline, inside: Any, values: np.ndarray, old: Buffer | None, *, empty: bool
) -> Buffer | None:
    shard, axes = cast(Shard, pipeline.serializer), pipeline.axes
    if axes is not None:
        inside, values = permute(inside, axes), values.transpose(axes)
    encoded = shard.update(old, inside, values)
    return shard.assemble({}) if encoded is None and empty else encoded
