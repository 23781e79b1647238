"""Writes to a store with latency: many requests in flight, nothing lost."""

import numpy as np
import pytest

import zarrdask
from tests.storage.latency import LatencyStore
from zarrdask.chunks import write
from zarrdask.errors import StoreError

VALUES = np.arange(64.0).reshape(8, 8)


def far(**options):
    store = LatencyStore()
    z = zarrdask.create_array(store, shape=(8, 8), dtype="f8", chunks=(1, 8), **options)
    store.clear()
    return z, store


def test_chunks_are_stored_at_the_same_time():
    z, store = far()
    z.write((slice(0, 8, 1), slice(0, 8, 1)), VALUES, threads=1)
    assert store.most > 4
    assert sorted(store.keys) == [f"c/{i}/0" for i in range(8)]
    np.testing.assert_array_equal(z[...], VALUES)


def test_chunks_that_are_written_in_part_are_read_and_stored_at_the_same_time():
    z, store = far()
    z[...] = VALUES
    store.clear()
    z.write((slice(0, 8, 1), slice(2, 5, 1)), np.full((8, 3), -1.0), threads=1)
    assert store.most > 4
    expected = VALUES.copy()
    expected[:, 2:5] = -1
    np.testing.assert_array_equal(z[...], expected)


def test_bytes_in_flight_are_bounded(monkeypatch):
    monkeypatch.setattr(write, "_MAX_BYTES_IN_FLIGHT", 150)
    z, store = far(compressors=[])
    z.write((slice(0, 8, 1), slice(0, 8, 1)), VALUES, threads=1)
    assert store.most <= 2
    np.testing.assert_array_equal(z[...], VALUES)


def test_an_error_comes_when_all_requests_have_ended():
    z, store = far()
    original = store.inner.set

    def fail(key, value):
        if key == "c/3/0":
            raise OSError(28, "No space left on device")
        original(key, value)

    store.inner.set = fail
    with pytest.raises((StoreError, OSError), match="No space"):
        z[...] = VALUES
    assert store._now == 0


def test_the_fill_value_is_not_stored():
    z, _ = far()
    z[...] = VALUES
    z.write((slice(0, 8, 1), slice(0, 8, 1)), np.zeros((8, 8)), threads=1)
    assert z.nchunks_stored() == 0
