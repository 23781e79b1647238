"""A store that counts what is read from it."""

import threading

import numpy as np

import zarrdask
from zarrdask.formats.byte_ranges import coalesce, cut
from zarrdask.storage.memory import MemoryStore


class CountingStore(MemoryStore):
    """Values in memory; keeps a record (key, bytes) of each read that met a value."""

    def __init__(self):
        super().__init__()
        self.reads = []
        self._lock = threading.Lock()

    def _record(self, key, data):
        if data is not None and not key.endswith("zarr.json"):
            with self._lock:
                self.reads.append((key, len(data)))
        return data

    def get(self, key):
        return self._record(key, super().get(key))

    def get_range(self, key, start, length=None):
        value = super().get(key)
        return None if value is None else self._record(key, cut(value, start, length))

    def get_ranges(self, key, ranges, scratch):
        value = super().get(key)
        for (start, length), members in coalesce(ranges, 0, 2**30):
            part = self._record(key, cut(value, start, length))
            for offset, size in members:
                yield part[offset : offset + size]

    def keys_read(self):
        """Return the keys that were read since the last call, each as often as it was."""
        keys, self.reads = sorted(key for key, _ in self.reads), []
        return keys

    def bytes_read(self):
        """Return how many bytes were read since the last call."""
        size, self.reads = sum(n for _, n in self.reads), []
        return size


def stored(shape=(40, 30), chunks=(10, 10), store=None, **options):
    """Return a store with an array of different elements, of which nothing has been read."""
    store = CountingStore() if store is None else store
    z = zarrdask.create_array(store, shape=shape, chunks=chunks, dtype="i4", **options)
    z[...] = np.arange(z.size, dtype="i4").reshape(shape)
    store.reads.clear()
    return store
