"""Large values of stores with latency: ranges of one version, in flight together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.storage.latency import FarStore, VersionedStore
from zarrdask.arrays.chunks.ranges import large_values
from zarrdask.arrays.chunks.ranges.large_values import get_large, get_large_if_changed, get_values
from zarrdask.runtime import in_flight
from zarrdask.runtime.decoded_chunks import CHUNKS
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.remote.retry import RetryingStore
from zarrdask.testing import StoreContract


class TestVersionedStore(StoreContract):
    @pytest.fixture
    def store(self):
        return RetryingStore(VersionedStore(seconds=0))


@pytest.fixture(autouse=True)
def ranges_of_100_bytes(setting, monkeypatch):
    setting({"zarrdask.range-size": 100})
    monkeypatch.setattr(large_values, "MIN_RANGES", 1)


def test_large_values_take_two_rounds():
    store = VersionedStore(seconds=0.2)  # longer than threads of a busy machine take to begin
    values = {f"k{n}": bytes([n]) * 350 for n in range(3)} | {"small": b"1", "even": bytes(100)}
    for key, value in values.items():
        store.inner.set(key, value)
    keys = [*values, "none"]
    found = [*get_large(store, [(key, 350) for key in keys])]
    assert [None if each is None else bytes(each) for each in found] == [*values.values(), None]
    assert store.calls == ["get_part"] * (3 * 4 + 1 + 1 + 1)
    assert store.rounds <= 2
    assert store.most >= 6


def test_large_values_that_are_unchanged_take_one_request():
    store = VersionedStore(seconds=0)
    store.set("a", b"a" * 350)
    store.set("b", b"b" * 350)
    tags = {key: store.get_if_changed(key, None).tag for key in "ab"}
    store.set("b", b"c" * 350)
    store.clear()
    items = [("a", 350, tags["a"]), ("b", 350, tags["b"]), ("none", 350, None)]
    old, new, none = get_large_if_changed(store, items)
    assert old.is_unchanged
    assert (bytes(new.value), new.size) == (b"c" * 350, 350)
    assert new.tag not in (None, tags["b"])
    assert none.value is none.tag is None
    assert store.calls.count("get_if_changed") == 3
    assert store.calls.count("get_part") == 3


def test_large_chunks_are_read_in_ranges_into_the_cache(setting):
    setting({"zarrdask.cache-size": 2**20})
    store, values = VersionedStore(seconds=0), np.arange(200, dtype="i4")
    zarrdask.create_array(store.inner, shape=200, dtype="i4", chunks=100, compressors=[])[...] = (
        values
    )
    z = zarrdask.open_array(store)
    for calls in (["get_if_changed"] * 2 + ["get_part"] * 6, ["get_if_changed"] * 2):
        store.clear()
        np.testing.assert_array_equal(z[...], values)
        assert sorted(store.calls) == calls
    CHUNKS.clear()


@given(st.integers(0, 450), st.integers(1, 5), st.booleans())
def test_a_value_is_never_mixed_of_two_versions(size, after, has_tags):
    old = bytes(n % 251 for n in range(size))
    store = VersionedStore(seconds=0, after=after)
    store.has_tags = has_tags
    store.inner.set("k", old)
    (value,) = get_large(store, [("k", 450)])
    assert bytes(value) in (old, old[::-1])
    assert store.calls.count("get") <= 1
    store.clear()
    (version,) = get_large_if_changed(store, [("k", 450, None)])
    assert bytes(version.value) in (old, old[::-1])
    assert version.tag in (None, str(hash(bytes(version.value))))


@pytest.mark.parametrize(("stored", "most"), [(50, 2), (10, 10)])
def test_values_that_are_read_as_a_whole_count_with_their_sizes(monkeypatch, stored, most):
    monkeypatch.setattr(in_flight, "MAX_BYTES_IN_FLIGHT", 100)
    monkeypatch.setattr(in_flight, "BYTES_IN_FLIGHT", in_flight.BytesInFlight())
    monkeypatch.setattr(large_values, "MIN_COUNTED_BYTES", 50)
    store, keys = FarStore(seconds=0.02), [f"k{number}" for number in range(30)]
    for key in keys:
        store.inner.set(key, bytes(stored))
    values = get_values(store, keys, 50, Scratch())
    assert len(next(values)) == stored
    assert store.most <= 2  # nothing is known of the sizes of compressed values
    assert [len(value) for value in values] == [stored] * 29
    assert store.most == most


def test_values_that_are_smaller_than_expected_are_not_all_in_memory(setting):
    setting({"zarrdask.requests": 4})
    store = VersionedStore(seconds=0)
    for n in range(200):
        store.inner.set(f"k{n:03}", bytes(90 if n else 350))
    next(get_large(store, [(f"k{n:03}", 350) for n in range(200)]))
    assert len({*store.keys}) < 40


def test_values_without_versions_are_read_at_the_same_time():
    store, keys = VersionedStore(seconds=0.02), "abcd"
    store.has_tags = False
    for key in keys:
        store.inner.set(key, key.encode() * 350)
    found = [*get_large(store, [(key, 350) for key in keys])]
    assert found == [key.encode() * 350 for key in keys]
    assert store.rounds <= 2


@pytest.mark.parametrize("shards", [None, (10, 10)])
def test_large_chunks_and_whole_shards_are_read_in_ranges(shards):
    store, values = VersionedStore(seconds=0), np.arange(600, dtype="i4").reshape(30, 20)
    chunks = (5, 5) if shards else (10, 10)
    options = {"chunks": chunks, "shards": shards, "compressors": []}
    z = zarrdask.create_array(store, shape=(30, 20), dtype="i4", **options)
    z[:20] = values[:20]
    store.clear()
    for read in (lambda: z[...], lambda: zarrdask.from_zarr(z).compute(scheduler="sync")):
        np.testing.assert_array_equal(read()[:20], values[:20])
    ranges = 5 if shards else 4  # of shards one more for the index
    # Where a chunk is missing, the document is looked for once.
    assert store.calls.count("get_part") == 2 * (4 * ranges + 2)
    assert set(store.calls) <= {"get_part", "get"}
    if shards:
        store.clear()
        np.testing.assert_array_equal(z[:18], values[:18])
        assert set(store.calls) == {"get_part"}


def test_values_are_read_whole_if_the_setting_or_the_size_says_so(setting, monkeypatch):
    monkeypatch.undo()
    store = VersionedStore(seconds=0)
    z = zarrdask.create_array(store, shape=50, dtype="i2")
    z[...] = 1
    for size in (25, 0):
        setting({"zarrdask.range-size": size})
        store.clear()
        assert z[...].sum() == 50
        assert store.calls == ["get_range"]  # of the whole value
