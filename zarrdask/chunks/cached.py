"""Read chunks by way of the cache of decoded chunks.

Each use checks whether the chunk has changed since it was cached: on a local disk by one system
call, in a remote store by a conditional request, which returns a value only if it has changed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat, tee
from operator import floordiv, mod
from threading import Lock
from typing import Any

import numpy as np

from zarrdask.chunks.stored import StoredChunks
from zarrdask.codecs.array_to_bytes.sharding import shard_of
from zarrdask.codecs.base import ChunkSpec
from zarrdask.codecs.decode import CachedChunk, ChunkCache
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.grids.base import Index, Shape
from zarrdask.indexing.projection import Points, Projection, Request, numpy_index, project
from zarrdask.runtime.decoded_chunks import CHUNKS, ChunkPlace, DecodedChunk, is_cacheable
from zarrdask.storage.byte_ranges import Buffer, Tag, Version
from zarrdask.storage.large_values import get_large_if_changed, large_size
from zarrdask.storage.system import renewed_after_fork
from zarrdask.storage.upkeep import request_each

#: (key of a shard, its shape, tag of its version) -> the cache of its inner chunks.
InnerCaches = Callable[[str, Shape, Tag], ChunkCache]

#: Locks of places, so that of several threads that need a chunk one decodes it. Places share them.
_DECODING = [renewed_after_fork(Lock()) for _ in range(64)]


def is_cached(chunks: StoredChunks) -> bool:
    """Whether chunks of an array without shards are cached when they are read."""
    return _is_cached(chunks, chunks.metadata.pipeline.spec)


def copy_cached(
    chunks: StoredChunks, request: Request, projection: Projection, out: np.ndarray
) -> bool:
    """Copy the requested elements to a block if all chunks are cached; return whether they are.

    `projection` is the projection of the request on chunks or shards. In a
    store with latency, chunks are requested together instead.
    """
    store, metadata = chunks.units, chunks.metadata
    if store.capabilities.has_latency:
        return False
    if metadata.shard is None:
        if not is_cached(chunks):
            return False
        places = _places(chunks, projection.indices)
    else:
        is_plain = metadata.grid.is_regular and metadata.pipeline.axes is None
        if not is_plain or not _is_cached_in_shards(chunks) or out.nbytes > chunks.cache_size:
            return False
        projection = project(request, metadata.read_grid.axes)
        places = _inner_places(chunks, metadata.shard.grid.counts, projection.indices)
    cached = CHUNKS.get_all(places)
    if cached is None:
        return False
    tags = dict[str, Tag]()
    for place, chunk in zip(places, cached, strict=True):
        if tags.setdefault(place.key, chunk.tag) != chunk.tag:
            return False  # These are of two versions of a shard.
    if not all(store.get_if_changed(*each, 0, 0).is_unchanged for each in tags.items()):
        return False
    insides: Iterable[Any] = projection.insides
    if isinstance(request, Points) or not all(isinstance(pick, slice) for pick in request):
        insides = (inside if inside is None else numpy_index(inside) for inside in insides)
    for chunk, inside, outside in zip(cached, insides, projection.outsides, strict=True):
        out[outside] = chunk.values if inside is None else chunk.values[inside]
    return True


def _places(chunks: StoredChunks, indices: Sequence[Index]) -> list[ChunkPlace]:
    """Return the places of chunks of an array without shards, by their indices."""
    keys = [chunks.prefix + name for name in chunks.metadata.keys.names(indices)]
    shapes = map(chunks.metadata.grid.shape_of, indices)
    return list(map(ChunkPlace, repeat(chunks.decoding), keys, shapes))


def _inner_places(
    chunks: StoredChunks, counts: Shape, indices: Sequence[Index]
) -> list[ChunkPlace]:
    """Return the places of chunks in shards with some counts of chunks, by their indices."""
    shards = [tuple(map(floordiv, index, counts)) for index in indices]
    inner = [tuple(map(mod, index, counts)) for index in indices]
    unique = list(dict.fromkeys(shards))
    names = chunks.metadata.keys.names(unique)
    keys = {shard: chunks.prefix + name for shard, name in zip(unique, names, strict=True)}
    shape = repeat(chunks.metadata.chunk_shape)
    return list(
        map(ChunkPlace, repeat(chunks.decoding), map(keys.__getitem__, shards), shape, inner)
    )


def inner_caches(chunks: StoredChunks) -> InnerCaches | None:
    """Return the caches of inner chunks; None if chunks in shards of this array are not cached."""
    if not _is_cached_in_shards(chunks):
        return None

    def cache(key: str, shape: Shape, tag: Tag) -> ChunkCache:
        place = ChunkPlace(chunks.decoding, key, shape)
        return CachedInnerChunks(place, tag, chunks.cache_size)

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
        return self.values


@dataclass(frozen=True, slots=True)
class _New(CachedChunk):
    """A chunk that is put into the cache when it is decoded, with the tag of its version."""

    place: ChunkPlace
    data: Buffer
    tag: Tag
    #: The largest size of the cache in bytes.
    limit: int

    def decoded(self, pipeline: Pipeline) -> np.ndarray:
        with _DECODING[hash(self.place) % len(_DECODING)]:
            cached = CHUNKS.get(self.place)
            if cached is not None and cached.tag == self.tag:
                return cached.values  # Another thread has decoded it.
            values = pipeline.decode_apart(self.data)
            values.flags.writeable = False
            CHUNKS.put(self.place, DecodedChunk(values, self.tag), self.limit)
            return values


def get_cached(
    chunks: StoredChunks, keys: Iterable[tuple[str, Shape]]
) -> Iterator[CachedChunk | Buffer | None]:
    """Yield the chunk of each key and shape, or its encoded bytes if it can't be cached.

    In a remote store, the requests for several chunks are in flight together.
    """
    nbytes = chunks.metadata.pipeline.spec.nbytes
    if nbytes <= large_size(chunks.units):
        return request_each(chunks.units, partial(_get, chunks), keys)
    places = (ChunkPlace(chunks.decoding, *item) for item in keys)
    found, ahead = tee((place, CHUNKS.get(place)) for place in places)
    items = ((place.key, nbytes, cached and cached.tag) for place, cached in ahead)
    versions = get_large_if_changed(chunks.units, items)
    limit = chunks.cache_size
    return (_chunk(*each, version, limit) for each, version in zip(found, versions, strict=True))


def _get(chunks: StoredChunks, item: tuple[str, Shape]) -> CachedChunk | Buffer | None:
    place = ChunkPlace(chunks.decoding, *item)
    cached = CHUNKS.get(place)
    version = chunks.units.get_if_changed(place.key, None if cached is None else cached.tag)
    return _chunk(place, cached, version, chunks.cache_size)


def _chunk(
    place: ChunkPlace, cached: DecodedChunk | None, version: Version, limit: int
) -> CachedChunk | Buffer | None:
    """Return a chunk by its present version, and by the one that was in the cache."""
    if version.is_unchanged and cached is not None:
        return _Old(cached.values)
    if version.value is None or version.tag is None:
        CHUNKS.put(place, None, limit)
        return version.value
    return _New(place, version.value, version.tag, limit)


@dataclass(frozen=True, slots=True)
class CachedInnerChunks:
    """The cached inner chunks of one version of a shard.

    Attributes
    ----------
    place : ChunkPlace
        That of the shard.
    tag : object
        The tag of the version of the shard.
    limit : int
        The largest size of the cache in bytes.
    """

    place: ChunkPlace
    tag: Tag
    limit: int

    def get(self, index: Index) -> CachedChunk | None:
        """Return a chunk that is in the cache."""
        cached = CHUNKS.get(self.place._replace(inner=index))
        return None if cached is None or cached.tag != self.tag else _Old(cached.values)

    def new(self, index: Index, data: Buffer) -> CachedChunk:
        """Return a chunk that is put into the cache when it is decoded."""
        return _New(self.place._replace(inner=index), data, self.tag, self.limit)
