"""Decoded chunks, cached for later reads of other parts of the same chunks.

A chunk is cached with the version of the stored object that it is from. Each use compares that with
the present version, so that writers need not invalidate the cache.
"""

from typing import Any, NamedTuple

import numpy as np

from zarrdask.runtime.bounded_cache import BoundedCache
from zarrdask.storage.byte_ranges import Tag


class ChunkPlace(NamedTuple):
    """Where a chunk is, and what decides how it is decoded.

    Attributes
    ----------
    array : str
        The token of the store, and what the codecs and the data type are.
    key : str
        The key of the stored object.
    shape : tuple of int
        The shape of the stored object in elements.
    inner : tuple of int, optional
        The index of the chunk in its shard; None for a chunk without a shard.
    """

    array: str
    key: str
    shape: tuple[int, ...]
    inner: tuple[int, ...] | None = None


class DecodedChunk(NamedTuple):
    """A decoded chunk, which must not be changed, and the tag of its stored object's version."""

    values: np.ndarray
    tag: Tag


#: The decoded chunks that this process caches.
CHUNKS = BoundedCache[ChunkPlace, DecodedChunk]("cache-size", lambda chunk: chunk.values.nbytes)


def is_cacheable(dtype: np.dtype[Any]) -> bool:
    """Whether the size in bytes of elements is known, and elements can't be changed in place."""
    return not dtype.hasobject and dtype.kind != "T"
