"""Indexes of remote shards, cached for the next read of the same shards.

So are the headers of large chunks that are read in parts, which say where these are. An index is
cached with the version of its shard. Requests for chunks are pinned to that version, so
that writers need not invalidate the cache.
"""

from typing import Any, NamedTuple

from zarrdask import config
from zarrdask.runtime.bounded_cache import BoundedCache
from zarrdask.storage.base import Store


class IndexLocation(NamedTuple):
    """The token of a store, the key of a shard, and the range of the index in the shard."""

    store: str
    key: str
    start: int
    length: int


class CachedIndex(NamedTuple):
    """The encoded index of a shard, and the tag of the version of the shard."""

    data: bytes
    tag: Any


def caches_indexes(store: Store) -> bool:
    """Whether the indexes of values of a store are cached: it sends ETags, and there is a cache."""
    has = store.capabilities
    return has.concurrent and has.etags and config.get("index-cache-size") > 0


#: The indexes that this process caches.
INDEXES = BoundedCache[IndexLocation, CachedIndex](
    "index-cache-size", lambda index: len(index.data)
)
