"""Arrays that are filled, and stores that count what is asked for."""

import math

import numpy as np

from zarrdask import Array, create_array
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.formats.byte_ranges import cut
from zarrdask.storage.memory import MemoryStore


class Counting(MemoryStore):
    """A store that counts what is asked for."""

    def __init__(self, values):
        super().__init__(values)
        self.gets, self.parts, self.sets = [], [], []

    def get(self, key):
        self.gets.append(key)
        return super().get(key)

    def get_many(self, keys, scratch):
        return map(self.get, keys)

    def get_range(self, key, start, length=None):
        self.parts.append((key, start, length))
        value = self.values.get(key)
        return None if value is None else cut(value, start, length)

    def get_ranges(self, key, ranges, scratch):
        self.parts += [(key, *r) for r in ranges]
        value = self.values.get(key)
        return (None if value is None else value[s : s + n] for s, n in ranges)

    def set(self, key, value):
        self.sets.append(key)
        super().set(key, value)


def filled(shape=(7, 10), chunks=(3, 4), dtype="i4", **options):
    """Return an array of 0, 1, 2 ... and the same as an ndarray."""
    z = create_array({}, shape=shape, dtype=dtype, chunks=chunks, **options)
    values = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    z[...] = values
    return z, values


def keys(z):
    """Return the keys of the chunks that are stored."""
    documents = ("zarr.json", ".zarray", ".zattrs", ".zgroup")
    return sorted(k for k in z.store.list_prefix("") if k.rpartition("/")[2] not in documents)


def counting(z):
    store = Counting(z.store.values)
    return Array(NodePath(store, ""), z.metadata, "r+"), store
