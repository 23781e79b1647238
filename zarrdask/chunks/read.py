"""Read parts of a stored array.

A *unit* is a stored object: a chunk, or a shard of an array that has shards.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, groupby, islice, tee
from typing import Any, cast

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
from zarrdask.storage.large_values import get_large, large_size

#: The names of units in the store, and which part of each goes where.
_Part = tuple[list[str], Projection]


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
    metadata, cuts = chunks.metadata, _project(chunks, request)
    values = buffers.empty(request_shape(request), metadata.dtype) if out is None else out
    read, nbytes = partial(_read, chunks, out=values), values.nbytes
    in_parts(read, chunks, cuts, threads=threads, label="read", show=show, nbytes=nbytes)
    return values


def read_regions(chunks: StoredChunks, requests: Iterable[Request]) -> Iterator[np.ndarray]:
    """Yield the requested elements of an array, with later requests on their way meanwhile.

    In a store with latency the units of all requests are in flight together, as far as the settings
    allow. Each request is as in `read_region`, and so are the errors.
    """
    ahead, parts = tee(
        (request, *_named(chunks, _project(chunks, request))) for request in requests
    )
    units = _fetch(chunks, ((names, cuts) for _, names, cuts in ahead))
    for request, names, cuts in parts:
        out = buffers.empty(request_shape(request), chunks.metadata.dtype)
        _decode(chunks, names, cuts, units, out=out)
        yield out


def _project(chunks: StoredChunks, request: Request) -> Projection:
    """Return the units of a request, those of one shape together."""
    grid = chunks.metadata.grid
    cuts = project(request, grid.axes)
    return cuts if grid.is_regular else cuts.ordered(grid.shape_of)


def request_shape(request: Request) -> Shape:
    """Return the shape of the result of a request."""
    if isinstance(request, Points):
        return (len(request.coordinates[0]),) if request.coordinates else (1,)
    return tuple(map(pick_size, request))


def _named(chunks: StoredChunks, cuts: Projection) -> _Part:
    return [chunks.prefix + name for name in chunks.metadata.keys.names(cuts.indices)], cuts


def _read(chunks: StoredChunks, cuts: Projection, *, out: np.ndarray) -> None:
    """Read some of the requested units in this thread."""
    names, cuts = _named(chunks, cuts)
    _decode(chunks, names, cuts, _fetch(chunks, [(names, cuts)]), out=out)


def _fetch(chunks: StoredChunks, parts: Iterable[_Part]) -> Iterator[Any]:
    """Return the encoded units; of an array with shards, contexts in which each shard is read.

    Of remote shards, what is needed is in memory.
    """
    metadata, store, scratch = chunks.metadata, chunks.units, _scratch()
    if metadata.shard is None:
        keys: Iterable[str] = chain.from_iterable(names for names, _ in parts)
        if isinstance(parts, list):
            keys = [*keys]  # a single one is requested in this thread
        nbytes = metadata.pipeline.spec.nbytes
        if nbytes > large_size(store):
            return get_large(store, ((key, nbytes) for key in keys))
        return store.get_many(keys, scratch)
    if store.seekable:
        return (store.reading(name, scratch) for names, _ in parts for name in names)
    requests = (
        ShardRequest(name, metadata.pipeline_at(index), inside)
        for names, cuts in parts
        for name, index, inside in zip(names, cuts.indices, cuts.insides, strict=True)
    )
    return map(nullcontext, fetch_shards(store, requests, scratch))


def _decode(
    chunks: StoredChunks,
    names: list[str],
    cuts: Projection,
    units: Iterator[Any],
    *,
    out: np.ndarray,
) -> None:
    """Decode what `_fetch` returned for a projection, the next of several, to its places."""
    metadata, store = chunks.metadata, chunks.units
    if metadata.shard is not None:
        _decode_shards(chunks, names, cuts, islice(units, len(names)), out=out)
        return
    runs = [(metadata.pipeline, len(names))]
    if not metadata.grid.is_regular:
        shapes = groupby(map(metadata.grid.shape_of, cuts.indices))
        runs = [(metadata.pipeline_of(shape), sum(1 for _ in run)) for shape, run in shapes]
    again, at = None if store.seekable else store.get, 0
    for pipeline, count in runs:
        end = at + count
        part, values = cuts.some(at, end) if count < len(names) else cuts, islice(units, count)
        scatter(pipeline, names[at:end], part.insides, part.outsides, values, out=out, again=again)
        at = end


def _decode_shards(
    chunks: StoredChunks,
    names: list[str],
    cuts: Projection,
    shards: Iterable[AbstractContextManager[Value | None]],
    *,
    out: np.ndarray,
    may_repeat: bool = True,
) -> None:
    metadata, store = chunks.metadata, chunks.units
    for number, (name, shard, index, inside, outside) in enumerate(
        zip(names, shards, *cuts, strict=True)
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
                if store.seekable or not may_repeat:
                    raise error.within(name) from error.__cause__
                # It may have been damaged on its way, or replaced after its index was read.
                fetched = fetch_shards(store, [ShardRequest(name, pipeline, inside)], Scratch())
                part, again = cuts.some(number, number + 1), map(nullcontext, fetched)
                _decode_shards(chunks, [name], part, again, out=out, may_repeat=False)


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
