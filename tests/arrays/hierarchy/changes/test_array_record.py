"""The record of a write: who excludes whom."""

from threading import Thread

import pytest

import zarrdask
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.array_record import ArrayRecord
from zarrdask.arrays.nodes.array import chunks_of

PATIENCE = 60


@pytest.fixture
def array(tmp_path):
    return zarrdask.create_array(tmp_path / "a.zarr", shape=4, dtype="i4", chunks=2)


def record(array, region=""):
    written = ArrayRegion(chunks_of(array))
    return ArrayRecord(
        array.node_path, written, {"array": "plan"}, start_again="restart", region=region
    )


def held_by_another(lock):
    """Return a thread that holds a lock for a moment."""

    def hold():
        with lock:
            pass

    thread = Thread(target=hold, daemon=True)
    thread.start()
    return thread


def test_writes_of_two_regions_do_not_exclude_each_other(array):
    with record(array, "first").lock():
        thread = held_by_another(record(array, "second").lock())
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_write_of_a_whole_array_excludes_a_rewrite(array):
    with record(array).lock():
        thread = held_by_another(array.node_path.lock("rewrite"))
        thread.join(0.2)
        assert thread.is_alive()
    thread.join(PATIENCE)
    assert not thread.is_alive()
