"""Read parts of a stored array.

A *unit* is a stored object: a chunk, or a shard of an array that has shards.
"""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import groupby, islice
from time import perf_counter
from typing import cast

import numpy as np

from zarrdask.chunks.parts import in_parts
from zarrdask.chunks.shards import ShardRequest, fetch_shards
from zarrdask.chunks.stored import StoredChunks
from zarrdask.codecs.array_to_bytes.sharding import Shard, read_shard
from zarrdask.codecs.decode import put_fill, scatter
from zarrdask.errors import ZarrdaskError
from zarrdask.grids.base import Shape
from zarrdask.indexing.projection import Points, Projection, Request, project
from zarrdask.indexing.selection import pick_size
from zarrdask.runtime import buffers
from zarrdask.runtime.progress import Show
from zarrdask.storage.base import Scratch
from zarrdask.storage.byte_ranges import Value
from zarrdask.storage.system import after_fork

#: Lets one thread at a time read small units; see `_read_in_turns`.
_SMALL_READS = threading.Lock()

#: The size in bytes, decoded, below which a unit is small.
_SMALL_UNIT_BYTES = 2**16

#: How many small units a thread reads while it holds the lock: at first, and if they come fast.
_FIRST_TURN, _LATER_TURN = 16, 256

#: The time in seconds for one unit above which reads are slow, so that threads wait in parallel.
_SLOW_SECONDS = 150e-6

#: The most bytes, decoded, that are requested together from a remote store.
_REQUEST_BYTES = 2**28


def read_region(
    chunks: StoredChunks,
    request: Request,
    *,
    threads: int | None = 1,
    out: np.ndarray | None = None,
    show: Show | None = False,
) -> np.ndarray:
    """Return the requested elements of an array.

    Parameters
    ----------
    chunks : StoredChunks
        The array.
    request : Request
        For each axis a slice with a positive step, or an array of positions; or points. All lie
        within the shape of the array.
    threads : int, optional
        The number of threads that decode in parallel, by default 1: a Dask task uses one, since
        the workers run in parallel. None means as many as configured.
    out : ndarray, optional
        An array for the result, with the data type of the array and the shape of the request. By
        default a new one.
    show : bool, file or callable, default False
        Whether and how to show a progress bar. None shows one if the read is large.

    Returns
    -------
    ndarray
        `out`, or a new array in C order with one axis for each slice or array of positions, or a
        single axis for points.

    Raises
    ------
    CodecError
        If a unit is damaged; the error names its key.
    StoreError
        If the store fails.
    """
    metadata = chunks.metadata
    cuts = project(request, metadata.grid.axes)
    if not metadata.grid.is_regular:
        cuts = cuts.ordered(metadata.grid.shape_of)
    values = buffers.empty(request_shape(request), metadata.dtype) if out is None else out
    read, nbytes = partial(_read, chunks, out=values), values.nbytes
    in_parts(read, chunks, cuts, threads=threads, label="read", show=show, nbytes=nbytes)
    return values


def request_shape(request: Request) -> Shape:
    """Return the shape of the result of a request."""
    if isinstance(request, Points):
        return (len(request.coordinates[0]),) if request.coordinates else (1,)
    return tuple(map(pick_size, request))


def _read(chunks: StoredChunks, cuts: Projection, *, out: np.ndarray) -> None:
    """Read some of the requested units in this thread."""
    metadata, store = chunks.metadata, chunks.units
    size, count = metadata.pipeline.spec.nbytes, len(cuts.indices)
    if not store.seekable and metadata.shard is None:
        # Units that are requested together are in memory at the same time.
        step = max(_REQUEST_BYTES // max(size, 1), 1)
        for at in range(0, count, step):
            _read_units(chunks, cuts.some(at, at + step), out)
    elif count > 1 and size < _SMALL_UNIT_BYTES and metadata.shard is None:
        _read_in_turns(chunks, cuts, out)
    else:
        _read_units(chunks, cuts, out)


def _read_in_turns(chunks: StoredChunks, cuts: Projection, out: np.ndarray) -> None:
    """Read small units, one thread at a time unless the store is slow."""
    # Reading a small unit is a few short system calls. Each releases the GIL and must acquire it
    # again, so that threads which do this at the same time are slower than one after the other.
    # But if each unit takes long, as on a network file system, all threads should wait at once.
    at, step, end = 0, _FIRST_TURN, len(cuts.indices)
    while at < end:
        part = cuts.some(at, at + step)
        with _SMALL_READS:
            start = perf_counter()
            _read_units(chunks, part, out)
            seconds = perf_counter() - start
        at += step
        if seconds > _SLOW_SECONDS * len(part.indices):
            _read_units(chunks, cuts.some(at, end), out)
            return
        step = _LATER_TURN


def _read_units(chunks: StoredChunks, cuts: Projection, out: np.ndarray) -> None:
    metadata, store = chunks.metadata, chunks.units
    names = [chunks.prefix + name for name in metadata.keys.names(cuts.indices)]
    scratch = _scratch()
    if metadata.shard is not None:
        _read_shards(chunks, names, cuts, scratch, out=out)
        return
    encoded = store.get_many(names, scratch)
    if metadata.grid.is_regular:
        scatter(metadata.pipeline, names, cuts.insides, cuts.outsides, encoded, out=out)
        return
    at = 0
    for shape, run in groupby(map(metadata.grid.shape_of, cuts.indices)):
        end = at + sum(1 for _ in run)
        part, values = cuts.some(at, end), islice(encoded, end - at)
        pipeline = metadata.pipeline_of(shape)
        scatter(pipeline, names[at:end], part.insides, part.outsides, values, out=out)
        at = end


def _read_shards(
    chunks: StoredChunks, names: list[str], cuts: Projection, scratch: Scratch, *, out: np.ndarray
) -> None:
    """Read shards in parts; remote ones with the needed parts in memory."""
    metadata, store = chunks.metadata, chunks.units
    shards: Iterable[AbstractContextManager[Value | None]]
    if store.seekable:
        shards = (store.reading(name, scratch) for name in names)
    else:
        pipelines = map(metadata.pipeline_at, cuts.indices)
        requests = map(ShardRequest, names, pipelines, cuts.insides)
        shards = map(nullcontext, fetch_shards(store, requests, scratch))
    for name, shard, (index, inside, outside) in zip(
        names, shards, zip(*cuts, strict=True), strict=True
    ):
        with shard as value:
            if value is None:
                put_fill(out, outside, metadata.fill)
                continue
            pipeline = metadata.pipeline_at(index)
            try:
                read_shard(pipeline, cast(Shard, pipeline.serializer), value, inside, out, outside)
            except ZarrdaskError as error:
                raise error.within(name) from error.__cause__


#: The buffer of each thread for encoded bytes.
_LOCAL = threading.local()

#: The size in bytes above which a buffer is not kept: a thread reads a huge unit only once.
_MAX_KEPT_BYTES = 2**25


def _scratch() -> Scratch:
    """Return this thread's buffer for encoded bytes."""
    scratch: Scratch | None = getattr(_LOCAL, "scratch", None)
    if scratch is None or len(scratch.view) > _MAX_KEPT_BYTES:
        scratch = _LOCAL.scratch = Scratch()
    return scratch


def _after_fork() -> None:
    # The thread that held the lock does not exist in the forked process: it would never release it.
    global _SMALL_READS  # noqa: PLW0603
    _SMALL_READS = threading.Lock()


after_fork(_after_fork)
