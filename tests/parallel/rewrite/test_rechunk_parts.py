"""Rewrites that read parts of large chunks, and of shards, in remote stores: as planned."""

import numpy as np
import pytest

import zarrdask
from tests.arrays.chunks.remote import Remote, blosc
from zarrdask.arrays.chunks import fetch_chunks
from zarrdask.arrays.chunks.ranges import part_requests
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES

VALUES = np.random.default_rng(0).standard_normal((8, 256, 256), dtype="f4")

SOURCES = {
    "raw": {"chunks": (1, 256, 256), "compressors": []},
    "blosc": {"chunks": (1, 256, 256), "compressors": [blosc(blocksize=2**14)]},
    "sharded": {"chunks": (1, 32, 256), "shards": (4, 256, 256), "compressors": "zstd"},
    "sharded raw": {"chunks": (1, 32, 64), "shards": (4, 256, 256), "compressors": []},
}


class Bucket(Remote):
    """Counts what is stored, too."""

    def clear(self):
        super().clear()
        self.puts, self.stored = 0, 0

    def set(self, key, value):
        self.puts += 1
        self.stored += len(value)
        super().set(key, value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_a_rewrite_of_remote_chunks_is_one_pass_that_moves_what_is_planned(name, monkeypatch):
    monkeypatch.setattr(fetch_chunks, "MIN_COMPRESSED_BYTES", 2**17)
    monkeypatch.setattr(fetch_chunks, "MIN_PLAIN_BYTES", 2**17)
    source, target = Bucket(), Bucket()
    z = zarrdask.create_array(source, shape=VALUES.shape, dtype="f4", **SOURCES[name])
    z[...] = VALUES
    INDEXES.clear()
    plan = zarrdask.rechunk(
        z,
        target,
        chunks=(8, 32, 256),
        shards=False,
        compressors=[],
        max_mem="2 MiB",
        scheduler="sync",
    )
    costs = plan.requests_planned
    assert plan.scheme.name == "one pass"
    source.clear()
    np.testing.assert_array_equal(plan.execute("sync", progress=False)[...], VALUES)
    assert costs.requests["GET"] == sum(key.startswith("c/") for key in source.keys)
    assert "fetched" not in costs.estimates
    assert costs.fetched == pytest.approx(source.fetched, rel=0.02)
    assert source.fetched < 1.5 * sum(map(len, source.inner.values.values()))


@pytest.mark.slow
def test_of_many_compressed_chunks_a_plan_reads_some_headers(monkeypatch):
    monkeypatch.setattr(fetch_chunks, "MIN_COMPRESSED_BYTES", 2**17)
    monkeypatch.setattr(part_requests.PartRequests, "limit", 4)
    source, target = Bucket(), Bucket()
    z = zarrdask.create_array(source, shape=VALUES.shape, dtype="f4", **SOURCES["blosc"])
    z[...] = VALUES
    INDEXES.clear()
    plan = zarrdask.rechunk(
        z, target, chunks=(8, 32, 256), compressors=[], max_mem="2 MiB", scheduler="sync"
    )
    source.clear()
    costs = plan.requests_planned
    assert len(source.calls) <= 4
    source.clear()
    plan.execute("sync", progress=False)
    assert costs.estimates["fetched"] == "from some of the chunks"
    sent = sum(key.startswith("c/") for key in source.keys)
    assert costs.requests["GET"] == pytest.approx(sent, rel=0.02)
    assert costs.fetched == pytest.approx(source.fetched, rel=0.02)
