"""Read parts of a stored array.

A *unit* is a stored object: a chunk, or a shard of an array that has shards.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, groupby, islice, tee
from time import perf_counter
from typing import Any, cast

import numpy as np

from zarrdask.arrays.chunks.cached import (
    InnerCaches,
    copy_cached,
    get_cached,
    inner_caches,
    is_cached,
)
from zarrdask.arrays.chunks.divide import divide
from zarrdask.arrays.chunks.fetch_chunks import KeyedProjection, fetch_chunks
from zarrdask.arrays.chunks.missing_chunks import stored_only
from zarrdask.arrays.chunks.parts import in_parts
from zarrdask.arrays.chunks.presence import check_still_stored
from zarrdask.arrays.chunks.shards import FetchedShard, ShardRequest, fetch_shards
from zarrdask.arrays.chunks.stored import StoredChunks, in_doubt
from zarrdask.errors import ChunkNotFoundError, CodecError, StoreError, ZarrdaskError
from zarrdask.formats.byte_ranges import Value
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard, locate, read_shard, shard_of
from zarrdask.formats.codecs.byte_source import exact
from zarrdask.formats.codecs.decode import Blocks, put_fill, scatter
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.formats.indexing.projection import (
    Points,
    Projection,
    Request,
    project,
    project_each,
)
from zarrdask.formats.indexing.selection import Region, pick_size, region_shape
from zarrdask.runtime import buffers, measuring
from zarrdask.runtime.progress import Show
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.threads import thread_count
from zarrdask.storage.local.open_file import OpenFile

#: Shards are divided among threads into parts of at least this size, decoded.
MIN_PART_BYTES = 2**20
#: The most decoded bytes of encoded and of plain units that are read in one thread, if that takes
#: so many seconds at most.
QUICK_BYTES, QUICK_PLAIN_BYTES, QUICK_SECONDS = 2**18, 2**22, 2e-3
#: The number of projections whose keys are formatted together.
_KEYED_TOGETHER = 64


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
    ChunkNotFoundError
        If a chunk is missing and missing chunks raise errors.
    CodecError
        If a unit is damaged; the error names its key.
    StoreError
        If the store fails.
    """
    values = buffers.empty(request_shape(request), chunks.metadata.dtype) if out is None else out
    if chunks.elements is not None:
        chunks.elements.read(request, values, threads=threads)
        return values
    with chunks.measured("read"):
        # Threads would take longer to start than chunks that are cached to copy.
        if not copy_cached(chunks, request, values):
            projection = project(request, chunks.metadata.grid.axes)
            _read_units(chunks, projection, out=values, threads=threads, show=show)
    return values


def read_regions(chunks: StoredChunks, regions: Sequence[Region]) -> Iterator[np.ndarray]:
    """Yield the elements of several regions, whose reads are planned together.

    A remote store fetches the chunks or shards of all regions concurrently, as far as the settings
    allow. The errors are as in `read_region`.
    """
    if chunks.elements is not None:
        yield from (read_region(chunks, region) for region in regions)
        return
    projections = project_each(regions, chunks.metadata.grid.axes)
    parts, ahead = tee(_with_keys(chunks, projections))
    units, dtype = _fetch(chunks, ahead), chunks.metadata.dtype
    for region, part in zip(regions, parts, strict=True):
        out = buffers.empty(region_shape(region), dtype)
        if measuring.IS_ACTIVE:
            with chunks.measured("read"):
                _decode(chunks, part, units, out=out)
        else:
            _decode(chunks, part, units, out=out)
        yield out


def read_units(
    chunks: StoredChunks,
    projection: Projection,
    *,
    out: np.ndarray | Blocks,
    threads: int | None,
    show: Show | None,
) -> None:
    """Read parts of units into a block, or into several; see `read_region`."""
    with chunks.measured("read"):
        _read_units(chunks, projection, out=out, threads=threads, show=show)


def _read_units(
    chunks: StoredChunks,
    projection: Projection,
    *,
    out: np.ndarray | Blocks,
    threads: int | None,
    show: Show | None,
) -> None:
    if _read_inner_chunk(chunks, projection, out):
        return
    projection = _divide_shards(chunks, projection, threads, out.nbytes)
    read = partial(read_part, chunks, out=out)
    if threads != 1 and not show:
        left = _read_here(chunks, projection, read)
        if left is None:
            return
        projection = left
    in_parts(read, chunks, projection, threads=threads, label="read", show=show, nbytes=out.nbytes)


def _read_inner_chunk(
    chunks: StoredChunks, projection: Projection, out: np.ndarray | Blocks
) -> bool:
    """Read an inner chunk of a local shard, if it is all that is read; return whether it was.

    Many programs read one at a time. Planning a read of several takes longer than decoding one.
    """
    indices, insides, outsides = projection
    shard = chunks.metadata.shard
    if shard is None or len(indices) != 1 or isinstance(out, Blocks):
        return False
    number = shard.grid.whole_chunk(insides[0])
    if number is None or chunks.costs.overlaps or inner_caches(chunks) is not None:
        return False
    pipeline = chunks.metadata.pipeline_at(indices[0])
    if pipeline.axes is not None or shard_of(shard.chunks) is not None:
        return False
    try:
        with chunks.units.reading(chunks.key(indices[0]), buffers.THREAD.scratch) as value:
            index = cast(Shard, pipeline.serializer).read_index(value)
            if index is None:
                return False
            located = index.range_of(number)
            if located is None and chunks.is_strict:
                return False
            data: Iterator[Any] = iter([None])
            if located is not None:
                data = exact(value.parts([located]), [located], [number])
            scatter(shard.chunks, [number], [None], outsides, data, out=out)
    except ZarrdaskError:
        return False  # The chunk is read again, and the error says where it is.
    return True


def _read_here(
    chunks: StoredChunks, projection: Projection, read: Callable[[Projection], None]
) -> Projection | None:
    """Read a few units in this thread while that takes little time; return what is left, if any.

    To decode a few small units takes less time than to wake other threads, which then wait for the
    GIL after each system call. But a network file system may be slow to open files.
    """
    count, pipeline = len(projection.indices), chunks.metadata.pipeline
    is_plain = pipeline.raw is not None and not pipeline.compressors
    most = QUICK_PLAIN_BYTES if is_plain else QUICK_BYTES
    waits = chunks.costs.overlaps or chunks.units.capabilities.concurrent
    if count <= 1 or waits or count * pipeline.spec.nbytes > most:
        return projection
    begun, start = min(-(-count // 8), 4), perf_counter()
    read(projection.some(0, begun))
    left = projection.some(begun, count)
    if (perf_counter() - start) * (count - begun) > QUICK_SECONDS * begun:
        return left
    read(left)
    return None


def request_shape(request: Request) -> Shape:
    """Return the shape of the result of a request."""
    if isinstance(request, Points):
        return (len(request.coordinates[0]),) if request.coordinates else (1,)
    return tuple(map(pick_size, request))


def _divide_shards(
    chunks: StoredChunks, projection: Projection, threads: int | None, nbytes: int
) -> Projection:
    """Divide the shards of a projection if there are too few of them for all threads."""
    metadata = chunks.metadata
    # The requests for remote shards are in flight together in any case.
    if metadata.shard is None or chunks.costs.overlaps or not metadata.grid.is_regular:
        return projection
    count = min(2 * thread_count(threads), nbytes // MIN_PART_BYTES)
    shards = len(projection.indices)
    if threads == 1 or not 0 < shards < count:
        return projection
    shapes = metadata.chunk_shape, metadata.read_grid.chunk_shape
    return divide(projection, *shapes, -(-count // shards))


def read_part(chunks: StoredChunks, projection: Projection, *, out: np.ndarray | Blocks) -> None:
    """Read parts of units into a block, or into several, in this thread."""
    part = next(_with_keys(chunks, iter([projection])))
    _decode(chunks, part, _fetch(chunks, [part]), out=out)


def _with_keys(
    chunks: StoredChunks, projections: Iterator[Projection]
) -> Iterator[KeyedProjection]:
    """Yield the keys of units, and the units, in each projection units of one shape together."""
    grid, keys, prefix = chunks.metadata.grid, chunks.metadata.keys, chunks.prefix
    while batch := [*islice(projections, _KEYED_TOGETHER)]:
        if not grid.is_regular:
            batch = [projection.ordered(grid.shape_of) for projection in batch]
        names = iter(keys.names([index for projection in batch for index in projection.indices]))
        for projection in batch:
            yield [prefix + name for name in islice(names, len(projection.indices))], projection


def _fetch(chunks: StoredChunks, parts: Iterable[KeyedProjection]) -> Iterator[Any]:
    """Return the encoded units, or for an array with shards, contexts in which each shard is read.

    The needed parts of remote shards are in memory.
    """
    metadata, store, scratch = chunks.metadata, chunks.units, buffers.THREAD.scratch
    if metadata.shard is None and is_cached(chunks):
        items = chain.from_iterable(
            zip(keys, projection.indices, strict=True) for keys, projection in parts
        )
        return get_cached(chunks, [*items] if isinstance(parts, list) else items)
    if metadata.shard is None:
        return fetch_chunks(chunks, parts, scratch)
    if not chunks.costs.overlaps:
        return (store.reading(key, scratch) for keys, _ in parts for key in keys)
    cache = inner_caches(chunks)
    requests = (
        _shard_request(key, index, metadata.pipeline_at(index), inside, cache)
        for keys, projection in parts
        for key, index, inside in zip(keys, projection.indices, projection.insides, strict=True)
    )
    return map(nullcontext, fetch_shards(store, requests, scratch))


def _shard_request(
    key: str, index: Index, pipeline: Pipeline, inside: Any, cache: InnerCaches | None
) -> ShardRequest:
    return ShardRequest(key, pipeline, inside, cache and partial(cache, key, index))


def _decode(
    chunks: StoredChunks, part: KeyedProjection, units: Iterator[Any], *, out: np.ndarray | Blocks
) -> None:
    """Decode what `_fetch` returned for a part, the next of several, into the block."""
    metadata = chunks.metadata
    try:
        if metadata.shard is not None:
            _decode_shards(chunks, *part, islice(units, len(part[0])), out=out)
        elif metadata.grid.is_regular:
            _decode_chunks(chunks, metadata.pipeline, part, units, out=out)
        else:
            (keys, projection), at = part, 0
            for shape, run in groupby(map(metadata.grid.shape_of, projection.indices)):
                end = at + sum(1 for _ in run)
                some = keys[at:end], projection.some(at, end)
                _decode_chunks(chunks, metadata.pipeline_of(shape), some, units, out=out)
                at = end
    except CodecError as error:
        raise in_doubt(error) from error.__cause__


def _decode_chunks(
    chunks: StoredChunks,
    pipeline: Pipeline,
    part: KeyedProjection,
    units: Iterator[Any],
    *,
    out: np.ndarray | Blocks,
) -> None:
    """Decode the chunks of a part, which have one shape: the next ones of `units`."""
    (keys, (indices, insides, outsides)), missed = part, list[str]()
    values: Iterator[Any] = islice(units, len(keys))
    if chunks.is_strict:
        values = stored_only(values, [f"{chunks.store.url}/{key}" for key in keys], indices)
    again = chunks.units.get if chunks.costs.overlaps else None
    scatter(pipeline, keys, insides, outsides, values, out=out, again=again, missed=missed)
    if missed:
        check_still_stored(chunks)


def _decode_shards(
    chunks: StoredChunks,
    keys: list[str],
    projection: Projection,
    shards: Iterable[AbstractContextManager[Value | None]],
    *,
    out: np.ndarray | Blocks,
    may_repeat: bool = True,
) -> None:
    metadata, store, required = chunks.metadata, chunks.units, chunks.is_strict
    cache, is_missed = inner_caches(chunks), False
    for number, (key, shard, index, inside, outside) in enumerate(
        zip(keys, shards, *projection, strict=True)
    ):
        with shard as value:
            pipeline = metadata.pipeline_at(index)
            try:
                # A fetched shard already has the offsets of its chunks.
                located = value.chunks if isinstance(value, FetchedShard) else None
                if value is not None:
                    located = located or locate(pipeline, value, inside)
                if cache and located and isinstance(value, OpenFile) and value.tag is not None:
                    of_version = cache(key, index, value.tag)
                    located = located.without_cached(of_version)
                if value is not None and located is not None:
                    read_shard(pipeline, value, located, out, outside, required=required)
                elif required:
                    raise ChunkNotFoundError.of("shard", index)
                else:
                    put_fill(out, outside, metadata.fill)
                    is_missed = True
            except ChunkNotFoundError as error:
                raise error.within(f"{store.url}/{key}") from None
            except StoreError:
                raise  # it names the key
            except ZarrdaskError as error:
                if not may_repeat:
                    raise error.within(key) from error.__cause__
                # It may have been damaged in transit, or replaced after its index was read.
                request = _shard_request(key, index, pipeline, inside, cache)
                fetched = fetch_shards(store, [request], Scratch())
                part, again = projection.some(number, number + 1), map(nullcontext, fetched)
                _decode_shards(chunks, [key], part, again, out=out, may_repeat=False)
    if is_missed:
        check_still_stored(chunks)
