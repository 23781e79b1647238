"""Indexes of remote shards, cached for the next read of the same shards.

An index is cached with the version of its shard. Who uses it requests chunks of that version only,
so that writers, here and elsewhere, need not know of it.
"""

from typing import NamedTuple

from zarrdask.runtime.bounded_cache import BoundedCache
from zarrdask.storage.byte_ranges import Tag


class IndexPlace(NamedTuple):
    """Where an index is: the token of the store, the key of the shard, and the range in it."""

    store: str
    key: str
    start: int
    length: int


class KeptIndex(NamedTuple):
    """The encoded index of a shard, and the tag of the version of the shard."""

    data: bytes
    tag: Tag


#: The indexes that this process caches.
INDEXES = BoundedCache[IndexPlace, KeptIndex]("index-cache-size", lambda index: len(index.data))
