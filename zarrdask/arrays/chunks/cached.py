"""Read chunks through the cache of decoded chunks.

Each use checks whether the chunk has changed since it was cached: on a local disk by one system
call, in a remote store by a conditional request, which returns a value only if it has changed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat, takewhile, tee
from operator import add, mul
from threading import Lock

import numpy as np

from zarrdask.arrays.chunks.ranges.large_values import get_large_if_changed, large_size
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.byte_ranges import Buffer, Tag, Version
from zarrdask.formats.codecs.array_to_bytes.sharding import shard_of
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.decode import CachedChunk, ChunkCache
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.formats.indexing.projection import Points, Projection, Request, numpy_index, project
from zarrdask.runtime import measuring
from zarrdask.runtime.decoded_chunks import CHUNKS, CacheKey, DecodedChunk, is_cacheable
from zarrdask.runtime.system import after_fork
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.concurrent_requests import request_each

#: (key of a shard, its index, tag of its version) -> the cache of its inner chunks.
InnerCaches = Callable[[str, Index, Tag], ChunkCache]

#: The locks of chunks that are being decoded: if several threads need a chunk, one decodes it.
_DECODING = dict[CacheKey, Lock]()


def is_cached(chunks: StoredChunks) -> bool:
    """Whether chunks of an array without shards are cached when they are read."""
    return _is_cached(chunks, chunks.metadata.pipeline.spec)


def copy_cached(chunks: StoredChunks, request: Request, out: np.ndarray) -> bool:
    """Copy the requested elements to a block if all chunks are cached; return whether they are.

    In a remote store, chunks are requested together instead.
    """
    metadata = chunks.metadata
    if not chunks.cache_size or chunks.costs.overlaps:
        return False
    if metadata.shard is None:
        axes = metadata.grid.axes
        if not is_cached(chunks):
            return False
    else:
        axes = metadata.read_grid.axes
        is_plain = metadata.grid.is_regular and metadata.pipeline.axes is None
        if not is_plain or not _is_cached_in_shards(chunks) or out.nbytes > chunks.cache_size:
            return False
    projection = project(request, axes)
    cached = CHUNKS.get_all(zip(repeat(chunks.decoding), projection.indices))
    if cached is None:
        return False
    tags = dict[str, Tag]()
    for chunk in cached:
        if tags.setdefault(chunk.key, chunk.tag) != chunk.tag:
            return False  # These are of two versions of a shard.
    read = chunks.units.get_if_changed
    if not all(read(key, tag, 0, 0).is_unchanged for key, tag in tags.items()):
        return False
    if measuring.IS_ACTIVE:
        THIS_THREAD.counts.count("cache_hits", len(cached))
    is_region = not isinstance(request, Points) and all(isinstance(p, slice) for p in request)
    _copy([chunk.values for chunk in cached], projection, out, is_region=is_region)
    return True


def _copy(
    chunks: list[np.ndarray], projection: Projection, out: np.ndarray, *, is_region: bool
) -> None:
    """Copy the requested part of each chunk to a block."""
    indices, insides, outsides = projection
    if not is_region:
        insides = [inside if inside is None else numpy_index(inside) for inside in insides]
    parts = [
        chunk if inside is None else chunk[inside]
        for chunk, inside in zip(chunks, insides, strict=True)
    ]
    # The chunks of a region that differ only in the last index follow one another.
    row = sum(1 for _ in takewhile(lambda index: index[:-1] == indices[0][:-1], indices))
    if not is_region or row <= 1:
        for part, outside in zip(parts, outsides, strict=True):
            out[outside] = part
        return
    # A row at once: each assignment takes about as long as to copy a few KiB.
    for at in range(0, len(parts), row):
        np.concatenate(parts[at : at + row], axis=-1, out=out[outsides[at][:-1]])


def inner_caches(chunks: StoredChunks) -> InnerCaches | None:
    """Return the caches of inner chunks; None if chunks in shards of this array are not cached."""
    if not _is_cached_in_shards(chunks):
        return None

    # Shards of other lengths have other numbers of chunks.
    shard, is_regular = chunks.metadata.shard, chunks.metadata.grid.is_regular
    counts = shard.grid.counts if shard is not None and is_regular else None

    def cache(key: str, index: Index, tag: Tag) -> ChunkCache:
        return CachedInnerChunks(chunks.decoding, key, index, counts, tag, chunks.cache_size)

    return cache


def _is_cached_in_shards(chunks: StoredChunks) -> bool:
    shard = chunks.metadata.shard
    if shard is None or shard_of(shard.chunks):
        return False
    return _is_cached(chunks, shard.chunks.spec)


def _is_cached(chunks: StoredChunks, spec: ChunkSpec) -> bool:
    limit = chunks.cache_size
    return bool(
        limit
        and chunks.units.capabilities.versions
        and spec.nbytes <= limit
        and is_cacheable(spec.dtype)
    )


@dataclass(frozen=True, slots=True)
class _Old(CachedChunk):
    """A chunk that is in the cache."""

    values: np.ndarray

    def decoded(self, pipeline: Pipeline) -> np.ndarray:
        if measuring.IS_ACTIVE:
            THIS_THREAD.counts.count("cache_hits")
        return self.values


@dataclass(frozen=True, slots=True)
class _New(CachedChunk):
    """A chunk that is put into the cache when it is decoded, with the tag of its version."""

    cache_key: CacheKey
    key: str
    data: Buffer
    tag: Tag
    #: The largest size of the cache in bytes.
    limit: int

    def decoded(self, pipeline: Pipeline) -> np.ndarray:
        with _DECODING.setdefault(self.cache_key, Lock()):
            try:
                cached = CHUNKS.get(self.cache_key)
                if cached is not None and cached.tag == self.tag:
                    return cached.values  # Another thread has decoded it.
                values = pipeline.decode_apart(self.data)
                values.flags.writeable = False
                CHUNKS.put(self.cache_key, DecodedChunk(values, self.tag, self.key), self.limit)
                return values
            finally:
                _DECODING.pop(self.cache_key, None)


def get_cached(
    chunks: StoredChunks, keys: Iterable[tuple[str, Index]]
) -> Iterator[CachedChunk | Buffer | None]:
    """Yield the chunk of each key and index, or its encoded bytes if it can't be cached.

    In a remote store, the requests for several chunks are in flight together.
    """
    nbytes, limit = chunks.metadata.pipeline.spec.nbytes, chunks.cache_size
    if nbytes <= large_size(chunks.units):
        return request_each(chunks.units, partial(_get, chunks, limit), keys)
    cache_keys = ((key, (chunks.decoding, index)) for key, index in keys)
    lookups, ahead = tee((key, cache_key, CHUNKS.get(cache_key)) for key, cache_key in cache_keys)
    items = ((key, nbytes, cached and cached.tag) for key, _, cached in ahead)
    versions = get_large_if_changed(chunks.units, items)
    return (_chunk(*each, version, limit) for each, version in zip(lookups, versions, strict=True))


def _get(chunks: StoredChunks, limit: int, item: tuple[str, Index]) -> CachedChunk | Buffer | None:
    key, index = item
    cache_key = chunks.decoding, index
    cached = CHUNKS.get(cache_key)
    version = chunks.units.get_if_changed(key, None if cached is None else cached.tag)
    return _chunk(key, cache_key, cached, version, limit)


def _chunk(
    key: str, cache_key: CacheKey, cached: DecodedChunk | None, version: Version, limit: int
) -> CachedChunk | Buffer | None:
    """Return a chunk by its present version, and by the one that was in the cache."""
    if version.is_unchanged and cached is not None:
        return _Old(cached.values)
    if version.value is None or version.tag is None:
        CHUNKS.put(cache_key, None, limit)
        return version.value
    return _New(cache_key, key, version.value, version.tag, limit)


@dataclass(frozen=True, slots=True)
class CachedInnerChunks:
    """The cached inner chunks of one version of a shard.

    Attributes
    ----------
    array : str
        The `decoding` of the array.
    key : str
        The key of the shard.
    index : tuple of int
        Its index.
    counts : tuple of int, optional
        The number of chunks along each axis of all shards, if it is the same.
    tag : object
        The tag of the version of the shard.
    limit : int
        The largest size of the cache in bytes.
    """

    array: str
    key: str
    index: Index
    counts: Shape | None
    tag: Tag
    limit: int

    def get(self, index: Index) -> CachedChunk | None:
        """Return a chunk that is in the cache."""
        cached = CHUNKS.get(self._cache_key(index))
        return None if cached is None or cached.tag != self.tag else _Old(cached.values)

    def new(self, index: Index, data: Buffer) -> CachedChunk:
        """Return a chunk that is put into the cache when it is decoded."""
        return _New(self._cache_key(index), self.key, data, self.tag, self.limit)

    def _cache_key(self, inner: Index) -> CacheKey:
        if self.counts is None:
            return self.array, (*self.index, *inner)
        first = map(mul, self.index, self.counts)
        return self.array, tuple(map(add, first, inner))


# The threads of the parent process, which hold these locks, do not run in a forked one.
after_fork(_DECODING.clear)
