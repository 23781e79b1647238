"""Read chunks by way of the cache of decoded chunks.

Whether a chunk has changed since it was cached is asked of the store at each use: on a local disk
that costs one system call, in a remote store a conditional request, which returns a value only if
it is another one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from zarrdask.chunks.stored import StoredChunks
from zarrdask.codecs.array_to_bytes.sharding import shard_of
from zarrdask.codecs.base import ChunkSpec
from zarrdask.codecs.decode import CachedChunk, ChunkCache
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.grids.base import Index, Shape
from zarrdask.indexing.projection import Projection, numpy_index
from zarrdask.runtime.decoded_chunks import CHUNKS, ChunkPlace, DecodedChunk, is_cacheable
from zarrdask.storage.byte_ranges import Buffer, Tag
from zarrdask.storage.upkeep import request_each

#: (key of a shard, its shape, tag of its version) -> the cache of its inner chunks.
InnerCaches = Callable[[str, Shape, Tag], ChunkCache]


def is_cached(chunks: StoredChunks) -> bool:
    """Whether chunks of an array without shards are cached when they are read."""
    return _is_cached(chunks, chunks.metadata.pipeline.spec)


def copy_cached(chunks: StoredChunks, cuts: Projection, out: np.ndarray) -> bool:
    """Copy what is requested of chunks to their places in a block, if all are in the cache.

    Whether they were is returned. In a store with latency they are requested together instead.
    """
    store, metadata = chunks.units, chunks.metadata
    if metadata.shard is not None or store.capabilities.has_latency or not is_cached(chunks):
        return False
    found = []
    for name, index in zip(metadata.keys.names(cuts.indices), cuts.indices, strict=True):
        key = chunks.prefix + name
        cached = CHUNKS.get(ChunkPlace(chunks.decoding, key, metadata.grid.shape_of(index)))
        if cached is None:
            return False
        found.append((key, cached))
    for (key, cached), inside, outside in zip(found, cuts.insides, cuts.outsides, strict=True):
        if not store.get_if_changed(key, cached.tag).is_unchanged:
            return False
        values = cached.values
        out[outside] = values if inside is None else values[numpy_index(inside)]
    return True


def inner_caches(chunks: StoredChunks) -> InnerCaches | None:
    """Return the caches of inner chunks; None if chunks in shards of this array are not cached."""
    shard = chunks.metadata.shard
    if shard is None or shard_of(shard.chunks) or not _is_cached(chunks, shard.chunks.spec):
        return None

    def cache(key: str, shape: Shape, tag: Tag) -> ChunkCache:
        return CachedInnerChunks(ChunkPlace(chunks.decoding, key, shape), tag)

    return cache


def _is_cached(chunks: StoredChunks, spec: ChunkSpec) -> bool:
    limit = CHUNKS.limit
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
        return self.values


@dataclass(frozen=True, slots=True)
class _New(CachedChunk):
    """A chunk that is put into the cache when it is decoded, with the tag of its version."""

    place: ChunkPlace
    data: Buffer
    tag: Tag

    def decoded(self, pipeline: Pipeline) -> np.ndarray:
        values = pipeline.decode_apart(self.data)
        values.flags.writeable = False
        CHUNKS.put(self.place, DecodedChunk(values, self.tag))
        return values


def get_cached(
    chunks: StoredChunks, keys: Iterable[tuple[str, Shape]]
) -> Iterator[CachedChunk | Buffer | None]:
    """Yield the chunk of each key and shape, or its encoded bytes if it can't be cached.

    In a remote store, the requests for several chunks are in flight together.
    """
    return request_each(chunks.units, partial(_get, chunks), keys)


def _get(chunks: StoredChunks, item: tuple[str, Shape]) -> CachedChunk | Buffer | None:
    place = ChunkPlace(chunks.decoding, *item)
    cached = CHUNKS.get(place)
    version = chunks.units.get_if_changed(place.key, None if cached is None else cached.tag)
    if version.is_unchanged and cached is not None:
        return _Old(cached.values)
    if version.value is None or version.tag is None:
        CHUNKS.put(place, None)
        return version.value
    return _New(place, version.value, version.tag)


@dataclass(frozen=True, slots=True)
class CachedInnerChunks:
    """The cached inner chunks of one version of a shard.

    Attributes
    ----------
    place : ChunkPlace
        That of the shard.
    tag : object
        The tag of the version of the shard.
    """

    place: ChunkPlace
    tag: Tag

    def get(self, index: Index) -> CachedChunk | None:
        """Return a chunk that is in the cache."""
        cached = CHUNKS.get(self.place._replace(inner=index))
        return None if cached is None or cached.tag != self.tag else _Old(cached.values)

    def new(self, index: Index, data: Buffer) -> CachedChunk:
        """Return a chunk that is put into the cache when it is decoded."""
        return _New(self.place._replace(inner=index), data, self.tag)
