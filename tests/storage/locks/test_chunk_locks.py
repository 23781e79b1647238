"""Locks of stored units: who holds one does so alone, among threads and among processes."""

import multiprocessing
import os
import threading
import time
from contextlib import contextmanager

import dask
import numpy as np
import pytest

import zarrdask
from tests.parallel.graph.writes import SlowStore
from tests.storage.locks.holders import PATIENCE, is_held, thread
from zarrdask.arrays.chunks.write import write_region
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks import chunk_locks as locks
from zarrdask.storage.locks.chunk_locks import ChunkLocks, canonical_location
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.zarr.draft_store import DraftStore

pytestmark = pytest.mark.usefixtures("directory")


def test_a_place_is_the_same_by_any_store_and_prefix(tmp_path):
    (tmp_path / "real" / "g").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "a b").mkdir()
    real = str(tmp_path / "real")
    expected = f"{os.path.realpath(real)}/g/a/"
    for store, prefix in (
        (LocalStore(real), "g/a/"),
        (LocalStore(f"{real}/g"), "a/"),
        (LocalStore(f"{real}/g/a"), ""),
        (LocalStore(str(tmp_path / "link")), "g/a/"),
        (FsspecStore.from_url(f"local://{real}"), "g/a/"),
        (DraftStore(LocalStore(real)), "g/a/"),
    ):
        assert canonical_location(store, prefix) == expected
    assert canonical_location(LocalStore(f"{tmp_path}/a b"), "").endswith("/a b/")
    assert canonical_location(LocalStore("/"), "") == "//"
    memory = FsspecStore.from_url("memory://b")
    assert canonical_location(memory, "a/") == "memory:///b/a/"


def test_two_stores_of_one_dict_are_one_place():
    values = {}
    assert canonical_location(MemoryStore(values), "a/") == canonical_location(
        MemoryStore(values), "a/"
    )
    assert canonical_location(MemoryStore(values), "") != canonical_location(MemoryStore(), "")
    own = MemoryStore()
    assert canonical_location(own, "") == canonical_location(MemoryStore(own.values), "")


def test_threads_wait_for_each_other(store):
    holders, most, done = [], [], []

    def work():
        for _ in range(20):
            with ChunkLocks(store).hold("unit"):
                holders.append(1)
                most.append(len(holders))
                time.sleep(0.0005)
                holders.pop()
        done.append(1)

    with thread(work), thread(work), thread(work):
        pass
    assert (len(done), max(most)) == (3, 1)


def test_other_units_are_free(store):
    unit_locks = ChunkLocks(store)
    with unit_locks.hold("unit"), thread(lambda: unit_locks.hold("other").__enter__()):
        pass


def test_nothing_is_left(store, directory):
    with ChunkLocks(store).hold("unit"):
        pass
    assert not directory.exists() or os.listdir(directory) == ["traces"]
    assert not locks._THREAD_LOCKS


def test_ctrl_c_while_a_lock_is_released_does_not_keep_it(directory, tmp_path, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    locks = ChunkLocks(LocalStore(str(tmp_path)))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt), locks.hold("a"):
        patched.setattr(os, "unlink", interrupt)
    with locks.hold("a"):
        pass


def test_another_lock_is_held_around_it(store):
    order = []

    @contextmanager
    def among(name):
        order.append(("wait", name))
        assert not is_held(ChunkLocks(store), name)
        yield
        order.append(("done", name))

    with ChunkLocks(store, among).hold("unit"):
        order.append("here")
    assert order == [("wait", "unit"), "here", ("done", "unit")]


def test_parts_of_a_unit_are_written_by_threads(store):
    z = zarrdask.create_array(SlowStore(store), "a", shape=8, dtype="i4", chunks=8)

    def part(i):
        zarrdask.open_array(z.store, "a", mode="r+")[i : i + 1] = i + 1

    with thread(lambda: part(0)), thread(lambda: part(1)), thread(lambda: part(2)):
        part(3)
    assert z[:4].tolist() == [1, 2, 3, 4]


def _part(place, directory, i):
    dask.config.set({"zarrdask.lock-directory": directory})
    z = zarrdask.open_array(SlowStore(LocalStore(place)), mode="r+")
    for value in range(10):
        z[i : i + 1] = value


def test_parts_of_a_unit_are_written_by_processes(tmp_path, directory):
    place = str(tmp_path / "a")
    zarrdask.create_array(place, shape=8, dtype="i4", chunks=8)
    context = multiprocessing.get_context("forkserver")
    processes = [context.Process(target=_part, args=(place, str(directory), i)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert zarrdask.open_array(place)[...].tolist() == [9, 9, 9, 0, 0, 0, 0, 0]


def replaced_while_a_part_is_changed(store, layout, *, part_ends_first):
    """Return a unit that one thread stores as a whole, after another has read it to change a part.

    The part is stored after the whole. If it ends first, the writer of the whole goes on only when
    the other has given back the lock.
    """
    reading, replaced, done = threading.Event(), threading.Event(), threading.Event()

    class Paused(type(store)):
        __hash__ = object.__hash__

        def get(self, key):
            found = super().get(key)
            if key == "c/0" and threading.current_thread().name == "part":
                reading.set()
                assert replaced.wait(PATIENCE)
            return found

        def set(self, key, value):
            super().set(key, value)
            if key == "c/0" and threading.current_thread().name == "whole":
                replaced.set()
                assert not part_ends_first or done.wait(PATIENCE)

    paused = Paused(*([] if not store.capabilities.shared else [store.root]))
    z = zarrdask.create_array(paused, shape=8, dtype="i4", **layout)
    z[...] = 1

    def part():
        write_region(chunks_of(z), (slice(1, 3, 1),), np.full(2, 2, "i4"), empty=False, threads=1)
        done.set()

    def whole():
        assert reading.wait(PATIENCE)
        write_region(chunks_of(z), (slice(0, 8, 1),), np.full(8, 3, "i4"), empty=False, threads=1)

    threads = [threading.Thread(target=part, name="part")]
    threads.append(threading.Thread(target=whole, name="whole"))
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    return z[...].tolist()


@pytest.mark.parametrize("layout", [{"chunks": 8}, {"chunks": 2, "shards": 8}], ids=str)
def test_a_unit_that_is_replaced_while_a_part_is_changed_is_not_lost(store, layout):
    """The part was read before the whole was stored, and is stored after it."""
    found = replaced_while_a_part_is_changed(store, layout, part_ends_first=False)
    # The whole came later: not a mixture of it and of what was there before.
    assert found == [3] * 8


@pytest.mark.parametrize("layout", [{"chunks": 8}, {"chunks": 2, "shards": 8}], ids=str)
def test_so_it_is_if_the_part_is_done_before_the_whole_looks(store, layout):
    """The part was read before the whole was stored, and stored and given back after it."""
    assert replaced_while_a_part_is_changed(store, layout, part_ends_first=True) == [3] * 8


def test_what_is_beyond_the_array_is_kept_where_somebody_makes_it_longer(store):
    z = zarrdask.create_array(store, shape=6, dtype="i4", chunks=4)
    z[...] = 1
    longer = zarrdask.open_array(store, mode="r+")
    longer.resize(8)
    longer[...] = 2
    z[...] = 3  # it knows of six
    assert longer[...].tolist() == [3] * 6 + [2] * 2
    z.resize(6)
    longer[...] = 4
    assert z[...].tolist() == [4] * 6


@pytest.mark.parametrize("layout", [{"chunks": 4}, {"chunks": 2, "shards": 4}], ids=str)
def test_a_damaged_unit_is_replaced_if_all_of_it_is_written(store, layout):
    z = zarrdask.create_array(store, shape=6, dtype="i4", **layout)
    z[...] = 1
    store.set("c/1", b"nonsense" * 20)
    with pytest.raises(zarrdask.errors.CodecError):
        z[4:5] = 2
    z[4:] = 2
    assert z[...].tolist() == [1] * 4 + [2] * 2


def test_a_damaged_shard_that_is_stored_transposed_is_replaced(store):
    bare = [{"name": "bytes", "configuration": {"endian": "little"}}]
    inner = {"chunk_shape": [2, 2], "codecs": bare, "index_codecs": bare}
    codecs = [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "sharding_indexed", "configuration": inner},
    ]
    z = zarrdask.create_array(store, shape=(3, 3), dtype="u1", chunks=4, codecs=codecs)
    store.set("c/0/0", b"nonsense" * 20)
    z[...] = np.arange(9).reshape(3, 3)
    assert z[...].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_whole_units_take_no_lock(store, monkeypatch):
    z = zarrdask.create_array(store, shape=(9, 6), dtype="i4", chunks=3)
    monkeypatch.setattr(ChunkLocks, "hold", None)
    z[...] = 1
    z[3:, :3] = 2
    with pytest.raises(TypeError):
        z[4:, :3] = 3
