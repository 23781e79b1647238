"""Decoded chunks, cached for later reads of other parts of the same chunks.

A chunk is cached with the version of the stored object that it is from. Each use compares that with
the present version, so that writers need not invalidate the cache.
"""

from typing import Any, NamedTuple

import numpy as np

from zarrdask.runtime.bounded_cache import BoundedCache

#: The token of an array, which says where its chunks are and how they are decoded; and the index of
#: a chunk in it. A plain tuple, as a row through small chunks looks up very many.
CacheKey = tuple[str, tuple[int, ...]]


class DecodedChunk(NamedTuple):
    """A decoded chunk, which must not be changed, with the key and tag of its stored object."""

    values: np.ndarray
    tag: Any
    key: str


#: The decoded chunks that this process caches.
CHUNKS = BoundedCache[CacheKey, DecodedChunk]("cache-size", lambda chunk: chunk.values.nbytes)


def is_cacheable(dtype: np.dtype[Any]) -> bool:
    """Whether the size in bytes of elements is known, and elements are immutable."""
    return not dtype.hasobject and dtype.kind != "T"
