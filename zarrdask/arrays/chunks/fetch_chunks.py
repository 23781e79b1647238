"""Fetch chunks that are stored one by one, and of large chunks only the requested part."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import prod
from typing import Any, cast

from zarrdask.arrays.chunks.ranges.large_values import get_values
from zarrdask.arrays.chunks.ranges.remote_parts import ChunkRequest, fetch_remote, range_overhead
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.codecs.chunk_parts import (
    ChunkPart,
    FetchedChunk,
    PartReader,
    SizedValue,
)
from zarrdask.formats.codecs.part_layout import RANGE_BYTES
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.grids.axis import Axis, Even
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.projection import Points, Projection, Regions, Request
from zarrdask.formats.indexing.selection import Region, pick_size
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store

#: The decoded size in bytes below which reading a whole value is as fast as reading parts: for
#: uncompressed elements, and for compressed blocks, which need a read of the header. Where that is
#: a round trip, the half that is saved of a chunk, compressed to a half, takes as long.
MIN_PLAIN_BYTES, MIN_COMPRESSED_BYTES = 2**18, 2**21

#: The keys of chunks in the store, and which part of each is needed.
KeyedProjection = tuple[list[str], Projection]


def fetch_chunks(
    chunks: StoredChunks, parts: Iterable[KeyedProjection], scratch: Scratch
) -> Iterator[Buffer | FetchedChunk | None]:
    """Yield the needed part of each chunk, or None if it is missing; valid until the next one."""
    store, nbytes = chunks.units, chunks.metadata.pipeline.spec.nbytes
    if reads_parts(chunks):
        requests: Iterable[ChunkRequest]
        if isinstance(parts, list):
            requests = [each for part in parts for each in _requests(chunks, *part)]
            is_parted = any(each.inside is not None for each in requests)
        else:
            requests = (each for part in parts for each in _requests(chunks, *part))
            is_parted = True
        if is_parted and store.capabilities.requests_parts:
            return fetch_remote(store, requests, chunks.metadata.pipeline)
        if is_parted:
            return _fetch(store, requests, nbytes, scratch)
    # A single key of a list is requested in this thread.
    keys = (key for part, _ in parts for key in part)
    return get_values(store, [*keys] if isinstance(parts, list) else keys, nbytes, scratch)


def reads_parts(chunks: StoredChunks) -> bool:
    """Whether parts of chunks may be read without the rest."""
    pipeline = chunks.metadata.pipeline
    least = MIN_COMPRESSED_BYTES if pipeline.compressors else MIN_PLAIN_BYTES
    if pipeline.partial is None or pipeline.spec.nbytes < least:
        return False
    return chunks.units.capabilities.reads_parts


def _requests(
    chunks: StoredChunks, keys: list[str], projection: Projection
) -> Iterator[ChunkRequest]:
    for key, index, inside in zip(keys, projection.indices, projection.insides, strict=True):
        yield chunk_request(chunks, key, index, inside)


def chunk_request(chunks: StoredChunks, key: str, index: Index, inside: Any) -> ChunkRequest:
    """Return the needed part of a chunk, or all of it if that is more than half."""
    pipeline = chunks.metadata.pipeline_at(index)
    if isinstance(inside, Regions):
        inside = inside.regions[0] if len(inside.regions) == 1 else None
    if inside is not None and 2 * _request_size(inside) > prod(pipeline.spec.shape):
        inside = None
    return ChunkRequest(key, pipeline, inside)


def _fetch(
    store: Store, requests: Iterable[ChunkRequest], nbytes: int, scratch: Scratch
) -> Iterator[Buffer | FetchedChunk | None]:
    """Yield chunks, and parts of them from values that the store keeps open."""
    for is_part, run in groupby(requests, lambda each: each.inside is not None):
        if not is_part:
            yield from get_values(store, (each.key for each in run), nbytes, scratch)
            continue
        for key, pipeline, inside in run:
            with store.reading(key, scratch) as value:
                yield _read(pipeline, cast(Request, inside), cast(SizedValue, value))


def _read(pipeline: Pipeline, inside: Request, value: SizedValue) -> Buffer | ChunkPart | None:
    """Return a part of an open chunk, or all of it if that is necessary; None if it is missing."""
    reader = PartReader(pipeline)
    layout = reader.find(inside)
    part = None if layout is None else reader.read(layout, value)
    return next(value.parts([(0, value.size)])) if part is None else part


def divided_axes(chunks: StoredChunks, region: Region) -> tuple[Axis, ...] | None:
    """Return the parts of the chunks of a region that are read without the rest, along each axis.

    They are counted from where the region begins. The first bytes of one chunk say how it is
    divided; the others are assumed to be alike. None is returned if chunks are read whole.
    """
    grid, pipeline = chunks.metadata.grid, chunks.metadata.pipeline
    is_plain = chunks.is_stored and chunks.elements is None and chunks.metadata.shard is None
    if not is_plain or not grid.is_regular or not reads_parts(chunks):
        return None
    numbers = [axis.numbers(pick) for axis, pick in zip(grid.axes, region, strict=True)]
    if not all(numbers):
        return None
    overhead = range_overhead() if chunks.units.capabilities.requests_parts else RANGE_BYTES
    for share in (0, 0.5, 1):
        index = tuple(each[int(share * (len(each) - 1))] for each in numbers)
        with chunks.units.reading(chunks.key(index), Scratch()) as value:
            shape = PartReader(pipeline).shape(value, overhead)
        if shape is not None:
            return tuple(map(_divided, grid.axes, shape, region))
    return None


def _divided(axis: Axis, length: int, pick: slice) -> Axis:
    """Return the chunks of a slice, divided into parts of a length, or of the next that fits."""
    chunk = axis.longest
    fitting = next(n for n in range(max(length, 1), chunk + 1) if chunk % n == 0)
    return Even(axis.size, fitting).part(pick)


def _request_size(request: Request) -> int:
    """Return the number of requested elements."""
    if isinstance(request, Points):
        return len(request.coordinates[0]) if request.coordinates else 1
    return prod(map(pick_size, request))
