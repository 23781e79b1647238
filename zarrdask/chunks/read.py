"""Read regions of a stored array."""

import os
import threading
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from time import perf_counter
from typing import cast

import numpy as np

from zarrdask.chunks.shards import ShardRequest, fetch_shards
from zarrdask.chunks.stored import StoredChunks, StoredValue
from zarrdask.codecs.array_to_bytes.sharding import Shard, read_shard
from zarrdask.codecs.byte_source import Value
from zarrdask.codecs.decode import put_fill, scatter
from zarrdask.errors import ZarrdaskError
from zarrdask.grids.base import Shape
from zarrdask.indexing.projection import Cuts, Points, Request, cut
from zarrdask.indexing.selection import pick_size
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.runtime import buffers
from zarrdask.runtime.threads import in_parts
from zarrdask.storage.base import Scratch, Store

# Small units are read by one thread at a time; see `_read_in_turns`.
_TURN = threading.Lock()

_SMALL = 2**16

# Units of one turn: at first, and when those came fast, in seconds a unit.
_TRIAL, _RUN = 16, 256

_PATIENCE = 150e-6

# Bytes, decoded, that are asked for together.
_TOGETHER = 2**28


def read_region(
    chunks: StoredChunks,
    request: Request,
    *,
    threads: int | None = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Return what is wanted of an array.

    Parameters
    ----------
    chunks : Chunks
    request : Request
        One slice (with a positive step) or array of positions an axis, within the shape; or
        points.
    threads : int, optional
        How many decode at a time; as configured, if None. A Dask task uses one: the cluster is
        the parallelism.
    out : ndarray, optional
        Where to, of the array's dtype and the request's shape.

    Returns
    -------
    ndarray
        `out`; or a new one, in C order, of the array's dtype: one axis a pick, or one axis for
        points.

    Raises
    ------
    CodecError
        If a unit is damaged. The error names its key.
    StoreError
        If the store fails.
    """
    metadata = chunks.metadata
    cuts = cut(request, metadata.grid.axes)
    if not metadata.grid.is_regular:
        cuts = cuts.ordered(metadata.grid.shape_of)
    into = buffers.empty(request_shape(request), metadata.dtype) if out is None else out
    in_parts(lambda part: _read(chunks, part, into), cuts, threads)
    return into


def request_shape(request: Request) -> Shape:
    """Return the shape of what a request gives."""
    if isinstance(request, Points):
        return (len(request.coordinates[0]),) if request.coordinates else (1,)
    return tuple(map(pick_size, request))


def _read(chunks: StoredChunks, cuts: Cuts, out: np.ndarray) -> None:
    """Read some of a region's units, one after another."""
    metadata, store = chunks.metadata, chunks.units
    size, count = metadata.pipeline.spec.nbytes, len(cuts.indices)
    if not store.seekable and metadata.shard is None:
        # Units that are asked for together are in memory together.
        step = max(_TOGETHER // max(size, 1), 1)
        for at in range(0, count, step):
            _read_units(chunks, cuts.some(at, at + step), out)
    elif count > 1 and size < _SMALL and metadata.shard is None:
        _read_in_turns(chunks, cuts, out)
    else:
        _read_units(chunks, cuts, out)


def _read_in_turns(chunks: StoredChunks, cuts: Cuts, out: np.ndarray) -> None:
    """Read small units, as a rule while no other thread does."""
    # Small chunks are many short calls, each of which lets go of the GIL and has to get it back:
    # threads that do this at the same time are slower than one after the other. But where units
    # come slowly, from a disk far away, all should wait at once.
    at, step, end = 0, _TRIAL, len(cuts.indices)
    while at < end:
        part = cuts.some(at, at + step)
        with _TURN:
            start = perf_counter()
            _read_units(chunks, part, out)
            spent = perf_counter() - start
        at += step
        if spent > _PATIENCE * len(part.indices):
            _read_units(chunks, cuts.some(at, end), out)
            return
        step = _RUN


def _read_units(chunks: StoredChunks, cuts: Cuts, out: np.ndarray) -> None:
    metadata, store = chunks.metadata, chunks.units
    names = [chunks.prefix + name for name in metadata.keys.names(cuts.indices)]
    scratch = _scratch()
    if metadata.shard is not None:
        shards = _shards(store, metadata, names, cuts, scratch)
        _read_shards(metadata, names, cuts, shards, out=out)
        return
    encoded = store.get_many(names, scratch)
    if metadata.grid.is_regular:
        scatter(metadata.pipeline, names, cuts.insides, cuts.outsides, encoded, out=out)
        return
    at = 0
    for shape, alike in groupby(map(metadata.grid.shape_of, cuts.indices)):
        end = at + sum(1 for _ in alike)
        part, values = cuts.some(at, end), islice(encoded, end - at)
        pipeline = metadata.pipeline_of(shape)
        scatter(pipeline, names[at:end], part.insides, part.outsides, values, out=out)
        at = end


def _read_shards(
    metadata: ArrayMetadata,
    names: list[str],
    cuts: Cuts,
    values: Iterable[Value | None],
    *,
    out: np.ndarray,
) -> None:
    for name, value, (index, inside, outside) in zip(
        names, values, zip(*cuts, strict=True), strict=True
    ):
        if value is None:
            put_fill(out, outside, metadata.fill)
            continue
        pipeline = metadata.pipeline_at(index)
        try:
            read_shard(pipeline, cast(Shard, pipeline.serializer), value, inside, out, outside)
        except ZarrdaskError as error:
            raise error.within(name) from error.__cause__


def _shards(
    store: Store, metadata: ArrayMetadata, names: list[str], cuts: Cuts, scratch: Scratch
) -> Iterator[Value | None]:
    """Return each shard: where a request takes time, with what is needed of it in memory."""
    if store.seekable:
        return (StoredValue(store, name, scratch) for name in names)
    pipelines = map(metadata.pipeline_at, cuts.indices)
    return fetch_shards(store, map(ShardRequest, names, pipelines, cuts.insides), scratch)


_LOCAL = threading.local()

# A thread that once read something huge must not hold on to it.
_KEPT = 2**25


def _scratch() -> Scratch:
    """Return this thread's buffer for encoded bytes."""
    found: Scratch | None = getattr(_LOCAL, "scratch", None)
    if found is None or len(found.view) > _KEPT:
        found = _LOCAL.scratch = Scratch()
    return found


def _after_fork() -> None:
    # A forked process has none of its parent's threads: not the one that held a lock.
    global _TURN  # noqa: PLW0603
    _TURN = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
