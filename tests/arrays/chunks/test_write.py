"""Writes to a store with latency: many requests in flight, nothing lost."""

import threading
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import zarrdask
from tests.storage.latency import LatencyStore
from zarrdask.arrays.chunks import write
from zarrdask.arrays.chunks.write import write_region
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import StoreError, UnsupportedError
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrdask.runtime import in_flight
from zarrdask.storage.locks import unchanged
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(64.0).reshape(8, 8)


def far(**options):
    store = LatencyStore()
    z = zarrdask.create_array(store, shape=(8, 8), dtype="f8", chunks=(1, 8), **options)
    store.clear()
    return z, store


def test_chunks_are_stored_at_the_same_time():
    z, store = far()
    write_region(chunks_of(z), (slice(0, 8, 1), slice(0, 8, 1)), VALUES, empty=False, threads=1)
    assert store.most > 4
    assert sorted(store.keys) == [f"c/{i}/0" for i in range(8)]
    np.testing.assert_array_equal(z[...], VALUES)


def test_chunks_that_are_written_in_part_are_read_and_stored_at_the_same_time():
    z, store = far()
    z[...] = VALUES
    store.clear()
    write_region(
        chunks_of(z),
        (slice(0, 8, 1), slice(2, 5, 1)),
        np.full((8, 3), -1.0),
        empty=False,
        threads=1,
    )
    assert store.most > 4
    expected = VALUES.copy()
    expected[:, 2:5] = -1
    np.testing.assert_array_equal(z[...], expected)


def test_bytes_in_flight_are_bounded(monkeypatch):
    monkeypatch.setattr(in_flight, "MAX_BYTES_IN_FLIGHT", 150)
    z, store = far(compressors=[])
    write_region(chunks_of(z), (slice(0, 8, 1), slice(0, 8, 1)), VALUES, empty=False, threads=1)
    assert store.most <= 2
    np.testing.assert_array_equal(z[...], VALUES)


def test_encoded_bytes_are_sent_as_they_are_however_many(monkeypatch):
    z, store = far(compressors=["gzip"])
    # NumPy has no texts of so many bytes; nothing writes to the memory of these.
    encoded, sizes = bytes(2**32), []
    monkeypatch.setattr(GzipCodec, "encode", lambda codec, data: encoded)
    monkeypatch.setattr(store.inner, "set", lambda key, value: sizes.append(len(value)))
    write_region(chunks_of(z), (slice(0, 2, 1), slice(0, 8, 1)), VALUES[:2], empty=False, threads=1)
    assert sizes == [2**32] * 2


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
    assert store.in_flight == 0


@pytest.mark.parametrize("store", [LatencyStore, MemoryStore])
def test_the_fill_value_is_not_stored_and_stored_units_are_counted(store):
    z = zarrdask.create_array(store(), shape=(8, 8), dtype="f8", chunks=(1, 8))
    z[...] = VALUES
    columns, values = slice(0, 8, 1), np.zeros((8, 8))
    values[3] = 1
    counts = [
        write.write_region(chunks_of(z), (slice(0, 8, 1), columns), values, empty=False),
        write.write_region(
            chunks_of(z), (slice(2, 4, 1), slice(0, 4, 1)), values[2:4, :4], empty=False
        ),
    ]
    assert counts == [1, 1]
    assert z.nchunks_stored() == 1


class Swapping(LatencyStore):
    """A store whose values are tagged by themselves, and that others change before each swap."""

    @property
    def capabilities(self):
        return replace(super().capabilities, compare_and_swap=True)

    def others(self):
        """Do what others do meanwhile."""

    def get_tagged(self, key):
        value = self.get(key)
        return value, value

    def swap(self, key, value, tag):
        self.others()
        if self.inner.get(key) != tag:
            return False
        self.set(key, value)
        return True


def test_part_of_a_chunk_is_written_again_if_another_machine_changed_it():
    store, turns = Swapping(), iter(range(2))
    z = zarrdask.create_array(store, shape=8, dtype="u1", chunks=8, compressors=[])

    def others():
        turn = next(turns, None)
        if turn is not None:
            value = bytearray(store.inner.get("c/0") or bytes(8))
            value[turn] = 7
            store.inner.set("c/0", value)

    store.others = others
    z[6:] = 9
    assert z[...].tolist() == [7, 7, 0, 0, 0, 0, 9, 9]
    z[6:] = 0  # what was changed elsewhere is not erased
    assert z[...].tolist() == [7, 7, 0, 0, 0, 0, 0, 0]


def test_elements_that_another_machine_writes_while_an_array_becomes_smaller_are_kept():
    store, turns = Swapping(), iter(range(1))
    z = zarrdask.create_array(store, shape=8, dtype="u1", chunks=4, compressors=[])
    z[...] = 9

    def others():
        if store.inner.get("c/1") is not None and next(turns, None) is not None:
            store.inner.set("c/1", bytes([7, 9, 9, 9]))

    store.others = others
    z.resize(6)
    z.resize(8)
    assert z[...].tolist() == [9, 9, 9, 9, 7, 9, 0, 0]


def test_a_chunk_that_others_never_leave_alone_is_an_error(monkeypatch):
    monkeypatch.setattr(unchanged, "MAX_ATTEMPTS", 3)
    store, numbers = Swapping(), iter(range(1, 9))
    z = zarrdask.create_array(store, shape=4, dtype="u1", chunks=4, compressors=[])
    store.others = lambda: store.inner.set("c/0", bytes([next(numbers)] * 4))
    with pytest.raises(StoreError, match="other writers changed this value during each of 3"):
        z[3] = 1
    assert store.inner.get("c/0") == bytes([3] * 4)


def test_where_the_server_has_no_conditional_writes_part_of_a_chunk_is_written_under_a_lock():
    class Refusing(Swapping):
        def swap(self, key, value, tag):
            raise UnsupportedError("no conditional writes")

    z = zarrdask.create_array(Refusing(), shape=(8, 8), dtype="f8", chunks=(1, 8))
    z[:, 2:] = VALUES[:, 2:]
    z[3, :2] = VALUES[3, :2]
    np.testing.assert_array_equal(z[:, 2:], VALUES[:, 2:])
    np.testing.assert_array_equal(z[3], VALUES[3])


def test_locks_of_a_cluster_are_taken_in_the_thread_of_the_task_only(monkeypatch):
    threads = set()

    def among(name):
        threads.add(threading.current_thread())
        return nullcontext()

    z, _ = far()
    monkeypatch.setattr(ChunkLocks, "is_outdated", lambda self, version: True)
    for end in (8, 2):
        request = slice(0, 8, 1), slice(0, end, 1)
        locks = ChunkLocks(chunks_of(z).store, among)
        write.write_region(chunks_of(z), request, VALUES[:, :end], empty=False, locks=locks)
    assert threads == {threading.current_thread()}
    np.testing.assert_array_equal(z[...], VALUES)


def test_where_other_machines_are_not_noticed_a_warning_says_so():
    class Far(LatencyStore):
        @property
        def capabilities(self):
            return replace(super().capabilities, concurrent=True, shared=True)

    z = zarrdask.create_array(Far(), shape=4, dtype="i4", chunks=2)
    z[:2] = 1
    with pytest.warns(UserWarning, match="another machine"):
        z[1:3] = 1
    z[1:3] = 2  # once is enough
    assert z[...].tolist() == [1, 2, 2, 0]
