"""A store with ETags that counts the ranges that are read, and arrays of large chunks in it."""

import dask
import numpy as np

import zarrdask
from tests.storage.latency import VersionedStore
from zarrdask.arrays.chunks import fetch_chunks
from zarrdask.arrays.chunks.ranges import part_requests, remote_parts
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES

SHAPE, CHUNKS = (70, 50, 60), (48, 50, 40)
VALUES = np.random.default_rng(0).integers(0, 1000, SHAPE).astype("f4")
NOISE = np.random.default_rng(1).standard_normal(SHAPE, dtype="f4")


class Remote(VersionedStore):
    """A store with ETags; `then` is called after a number of parts of chunks were read."""

    then, number = staticmethod(lambda: None), -1

    def __init__(self, seconds=0):
        super().__init__(seconds=seconds)

    def clear(self):
        super().clear()
        self.ranges, self.fetched = [], 0

    def get_range(self, key, start, length=None):
        value = super().get_range(key, start, length)
        self.fetched += len(value or b"")
        return value

    def get_part(self, key, start, length, tag=None):
        part = super().get_part(key, start, length, tag)
        self.ranges.append((start, length))
        self.fetched += len(part.value) if part else 0
        if len(self.ranges) == self.number:
            self.then()
        return part


def blosc(cname="zstd", shuffle="shuffle", blocksize=9000, typesize=4, clevel=5):
    options = {"cname": cname, "clevel": clevel, "shuffle": shuffle}
    return {
        "name": "blosc",
        "configuration": options | {"blocksize": blocksize, "typesize": typesize},
    }


LAYOUTS = {
    "raw": {"compressors": []},
    "raw v2 F": {"compressors": [], "zarr_format": 2, "order": "F"},
    "zstd": {"compressors": [blosc()]},
    "lz4 bits F": {"compressors": [blosc("lz4", "bitshuffle", 0)], "order": "F"},
    "copied": {"compressors": [blosc(clevel=0)]},
    "gzip": {"compressors": "gzip"},
}


def stored(store, values=VALUES, chunks=CHUNKS, **options):
    z = zarrdask.create_array(
        store, shape=values.shape, chunks=chunks, dtype=values.dtype, **options
    )
    z[...] = values
    store.clear()
    return z


def patch_sizes(monkeypatch):
    """Read parts of chunks of a few hundred KiB, so that tests need no larger ones."""
    monkeypatch.setattr(fetch_chunks, "MIN_COMPRESSED_BYTES", 2**17)
    monkeypatch.setattr(fetch_chunks, "MIN_PLAIN_BYTES", 2**17)
    monkeypatch.setattr(remote_parts, "HEAD_BYTES", 2**12)
    monkeypatch.setattr(part_requests, "HEAD_BYTES", 2**12)
    monkeypatch.setattr(remote_parts, "RANGE_BYTES", 2**10)
    INDEXES.clear()
    return dask.config.set({"zarrdask.coalesce-gap": 2**10})
