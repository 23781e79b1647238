"""The tasks of a copy: on any scheduler, and when something fails."""

import dask
import numpy as np
import pytest
from distributed import Client

import zarrdask
from tests.parallel.rewrite.hierarchies import VALUES, check, hierarchy, make
from tests.storage.faults import Faults, FaultyStore
from tests.storage.latency import LatencyStore
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.errors import (
    CodecError,
    MetadataError,
    NodeNotFoundError,
    StoreError,
)
from zarrdask.storage.wrapper import WrappedStore


class FullStore(WrappedStore):
    """A store in which no room is left for chunks after a few."""

    def __init__(self, inner, room):
        super().__init__(inner)
        self.room = room

    def set(self, key, value):
        chunk = not key.endswith(("zarr.json", ".zarray", ".zattrs", ".zarrdask-creator"))
        if chunk and not self.room:
            raise StoreError("full", key=key)
        self.room -= chunk
        super().set(key, value)


class TestFailures:
    @pytest.mark.parametrize("after", [0, 1, 7, 19])
    @pytest.mark.parametrize("changes", [{"zarr_format": 2}, {"codecs": ["zstd"]}], ids=str)
    def test_a_failing_copy_leaves_no_array(self, tmp_path, after, changes):
        z = make(tmp_path / "a")
        inner = zarrdask.storage.LocalStore(str(tmp_path / "b"))
        with pytest.raises(StoreError, match="full"):
            zarrdask.copy(z, FullStore(inner, after), scheduler="sync", **changes)
        assert len(list(inner.list())) == after
        with pytest.raises(NodeNotFoundError):
            zarrdask.open_array(inner)
        # What is left does no harm.
        zarrdask.copy(z, inner, **changes)
        np.testing.assert_array_equal(zarrdask.open_array(inner)[...], VALUES)

    def test_arrays_that_are_complete_stay(self, tmp_path, monkeypatch):
        monkeypatch.setattr(journal, "WRITE_INTERVAL", 0)
        root = hierarchy(tmp_path / "a")
        inner = zarrdask.storage.LocalStore(str(tmp_path / "b"))
        with pytest.raises(StoreError, match="full"):
            zarrdask.copy(root, FullStore(inner, 30), scheduler="sync")
        found = zarrdask.open_group(inner)
        assert [path for path, _ in found.walk()] == ["a", "g", "g/empty"]
        np.testing.assert_array_equal(found["a"][...], VALUES)

    def test_what_fails_for_a_moment_is_tried_again(self, tmp_path):
        z = make(tmp_path / "a", shards=(4, 6))
        failures = 0
        with dask.config.set({"zarrdask.retry-delay": 0.0, "zarrdask.retries": 20}):
            for at, changes in enumerate(({}, {"shards": False}, {"codecs": ["zstd"]})):
                inner = zarrdask.storage.LocalStore(str(tmp_path / f"b{at}"))
                store = FaultyStore(inner, Faults(lost=0.3, late=0.2, torn=0.2), at)
                zarrdask.copy(z, store, scheduler="sync", **changes)
                failures += store.failures
                np.testing.assert_array_equal(zarrdask.open_array(inner)[...], VALUES)
        assert failures

    def test_a_damaged_chunk_that_has_to_be_decoded(self, tmp_path):
        root = zarrdask.create_group(tmp_path / "a")
        z = make(root, "z")
        make(root, "y")
        z.store.set("z/c/1/1", b"nonsense")
        with pytest.raises(CodecError, match="z/c/1/1"):
            zarrdask.copy(root, tmp_path / "b", codecs=["zstd"])
        assert "z" not in zarrdask.open_group(tmp_path / "b")


class TestSchedulers:
    @pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
    def test_any(self, tmp_path, scheduler):
        z = make(tmp_path / "a", shards=(4, 6))
        for options in ({}, {"shards": False}, {"codecs": ["zstd"]}):
            zarrdask.copy(z, tmp_path / "b", scheduler=scheduler, overwrite=True, **options)
            np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "b")[...], VALUES)

    @pytest.mark.slow  # the first test that uses processes pays for their server
    def test_memory_of_one_process_is_not_that_of_others(self, tmp_path):
        z = make({})
        with pytest.raises(StoreError, match="memory of one process"):
            zarrdask.copy(z, tmp_path / "b", scheduler="processes")
        with pytest.raises(MetadataError, match="scheduler"):
            zarrdask.copy(z, tmp_path / "b", scheduler="nobody")

    def test_a_cluster_of_two_processes(self, tmp_path, cluster):
        root = hierarchy(tmp_path / "a")
        with Client(cluster) as client:
            zarrdask.copy(root, tmp_path / "b", zarr_format=2)
            check(zarrdask.open_group(tmp_path / "b"), 2)
            zarrdask.copy(root, tmp_path / "c", shards=(4, 6), scheduler=client)
            check(zarrdask.open_group(tmp_path / "c"), 3)
            zarrdask.copy(
                root, tmp_path / "d", codecs=["zstd"], scheduler=cluster.scheduler_address
            )
            check(zarrdask.open_group(tmp_path / "d"), 3)
            with pytest.raises(StoreError, match="memory of one process"):
                zarrdask.copy(root, {})


def test_a_copy_by_threads_needs_no_cluster_to_see_its_stores(cluster_address):
    source = zarrdask.create_array({}, shape=4, dtype="i4")
    source[...] = 3
    with Client(cluster_address):
        report = zarrdask.copy(source, {}, scheduler="threads")
    assert report.objects == 1


def test_requests_for_many_arrays_are_in_flight_together():
    store = LatencyStore(seconds=0.04)
    group = zarrdask.create_group(store.inner, "source")
    for number in range(16):
        group.create_array(f"a{number}", shape=6, dtype="i4", chunks=2)[...] = number + 1
    for target, changes in (("moved", {}), ("recoded", {"compressors": []})):
        store.clear()
        zarrdask.copy(zarrdask.open_group(store, "source"), store, target, **changes)
        assert store.most >= 16
        assert store.rounds < 24
        # Of source and target, with six for the chunks; the record, once a second; and the claim.
        assert len(store.keys) < 16 * 15 + 12
        for number in range(16):
            values = zarrdask.open_array(store, f"{target}/a{number}")[...]
            np.testing.assert_array_equal(values, number + 1)
