"""Processes see that a chunk or shard was changed meanwhile."""

import gc
import os

import pytest

from tests.storage.locks.holders import PATIENCE, holder, is_held
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.locks.version_stamps import FileStamps

pytestmark = pytest.mark.usefixtures("directory")


def test_who_changed_a_part_leaves_a_trace_for_those_who_store_the_whole(store):
    unit_locks, others = ChunkLocks(store), ChunkLocks(store)
    version = unit_locks.version("unit")
    assert not unit_locks.is_outdated(version)
    with others.hold("unit"):
        assert unit_locks.is_outdated(version)
        inside = unit_locks.version("unit")
    assert unit_locks.is_outdated(version)
    assert unit_locks.is_outdated(inside)
    assert not unit_locks.is_outdated(unit_locks.version("unit"))
    version = unit_locks.version("unit")
    with pytest.raises(KeyError), others.hold("unit"):
        raise KeyError
    assert unit_locks.is_outdated(version)


def test_a_trace_of_another_process_is_seen(directory):
    unit_locks = ChunkLocks(LocalStore("/"))
    version = unit_locks.version("unit")
    with holder(directory) as process:
        process.communicate("\n", PATIENCE)
    assert not is_held(unit_locks, "unit")
    assert unit_locks.is_outdated(version)


def test_where_no_trace_can_be_left_the_lock_stays_to_be_seen(directory, monkeypatch):
    unit_locks = ChunkLocks(LocalStore("/"))
    version = unit_locks.version("unit")

    def full(*_):
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("zarrdask.storage.locks.version_stamps.pwrite", full)
        with ChunkLocks(LocalStore("/")).hold("unit"):
            pass
    assert unit_locks.is_outdated(version)
    with unit_locks.hold("unit"):
        pass
    assert not is_held(unit_locks, "unit")


def test_traces_that_were_tidied_up_begin_again(directory):
    with ChunkLocks(LocalStore("/")).hold("unit"):
        pass
    (directory / "traces").unlink()
    mine, others = ChunkLocks(LocalStore("/")), ChunkLocks(LocalStore("/"))
    version = mine.version("unit")
    with others.hold("unit"):
        pass
    assert mine.is_outdated(version)


def test_the_file_is_closed_with_the_stamps(tmp_path):
    fd = os.open(path := tmp_path / "stamps", os.O_RDWR | os.O_CREAT)
    stamps = FileStamps(fd)
    stamps.renew(1)
    assert len(stamps.read(1)) > 0
    assert is_open(fd, path)
    del stamps
    gc.collect()
    assert not is_open(fd, path)


def is_open(fd, path):
    """Whether a file is open with a number, which other threads may get for another file."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False
