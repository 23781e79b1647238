"""Read parts of a stored array.

A *unit* is a stored object: a chunk, or a shard of an array that has shards.
"""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import groupby, islice
from typing import cast

import numpy as np

from zarrdask.chunks.parts import in_parts
from zarrdask.chunks.shards import ShardRequest, fetch_shards
from zarrdask.chunks.stored import StoredChunks
from zarrdask.codecs.array_to_bytes.sharding import Shard, read_shard
from zarrdask.codecs.decode import put_fill, scatter
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.grids.base import Shape
from zarrdask.indexing.projection import Points, Projection, Request, project
from zarrdask.indexing.selection import pick_size
from zarrdask.runtime import buffers
from zarrdask.runtime.progress import Show
from zarrdask.storage.base import Scratch
from zarrdask.storage.byte_ranges import Value


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
    names = [chunks.prefix + name for name in metadata.keys.names(cuts.indices)]
    scratch = _scratch()
    if metadata.shard is not None:
        _read_shards(chunks, names, cuts, scratch, out=out)
        return
    encoded, far = store.get_many(names, scratch), not store.seekable
    if metadata.grid.is_regular:
        scatter(metadata.pipeline, names, cuts.insides, cuts.outsides, encoded, out=out, far=far)
        return
    at = 0
    for shape, run in groupby(map(metadata.grid.shape_of, cuts.indices)):
        end = at + sum(1 for _ in run)
        part, values = cuts.some(at, end), islice(encoded, end - at)
        pipeline = metadata.pipeline_of(shape)
        scatter(pipeline, names[at:end], part.insides, part.outsides, values, out=out, far=far)
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
            except StoreError:
                raise  # it names the key
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
