"""Indexes of remote shards, kept for the next read of the same shards.

An index is kept with the version of its shard. Who uses it requests chunks of that version only, so
that writers, here and elsewhere, need not know of it.
"""

import threading
from collections import OrderedDict
from typing import NamedTuple

from zarrdask import config
from zarrdask.storage.byte_ranges import Tag
from zarrdask.storage.system import after_fork, renewed_after_fork

#: Bytes that are counted for an index in addition to its size: the key, the tag, and the entry.
_ENTRY_BYTES = 512


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


class _Indexes:
    """The indexes of a process; those that were used last stay if the room is too small."""

    def __init__(self) -> None:
        self._lock = renewed_after_fork(threading.Lock())
        self.clear()

    def clear(self) -> None:
        self._kept = OrderedDict[IndexPlace, KeptIndex]()
        self._nbytes = 0

    def get(self, place: IndexPlace) -> KeptIndex | None:
        """Return the index that is kept for a place."""
        with self._lock:
            index = self._kept.get(place)
            if index is not None:
                self._kept.move_to_end(place)
            return index

    def put(self, place: IndexPlace, index: KeptIndex | None) -> None:
        """Keep an index, or none, instead of an older one; drop others to make room for it."""
        limit = config.get("index-cache-size")
        with self._lock:
            self._nbytes -= _nbytes(self._kept.pop(place, None))
            if index is not None and _nbytes(index) <= limit:
                self._kept[place] = index
                self._nbytes += _nbytes(index)
            while self._nbytes > limit:
                self._nbytes -= _nbytes(self._kept.popitem(last=False)[1])


def _nbytes(index: KeptIndex | None) -> int:
    return 0 if index is None else len(index.data) + _ENTRY_BYTES


INDEXES = _Indexes()
# The process may be forked while another thread changes them.
after_fork(INDEXES.clear)
