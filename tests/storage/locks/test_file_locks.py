"""Locks of processes."""

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

import zarrdask
from tests.storage.locks.holders import PATIENCE, holder, is_held, thread
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks.chunk_locks import ChunkLocks

pytestmark = pytest.mark.usefixtures("directory")


def test_processes_wait_for_each_other(directory):
    unit_locks, got = ChunkLocks(LocalStore("/")), []

    def work():
        with unit_locks.hold("unit"):
            got.append(time.monotonic())

    with holder(directory) as process, thread(work):
        assert is_held(unit_locks, "unit")
        time.sleep(0.2)
        assert not got
        process.stdin.write("\n")
        process.stdin.flush()
    assert got


def test_a_process_that_is_killed_holds_nothing(directory):
    unit_locks = ChunkLocks(LocalStore("/"))
    with holder(directory) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        with unit_locks.hold("unit"):
            pass
    assert not is_held(unit_locks, "unit")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_holds_nothing_of_its_parent(store):
    unit_locks = ChunkLocks(store)
    with unit_locks.hold("unit"):
        child = os.fork()
        if not child:
            signal.alarm(20)
            if not store.capabilities.shared:  # it has a memory of its own
                with unit_locks.hold("unit"):
                    os._exit(0)
            time.sleep(0.5)
            os._exit(0)
    # The child still has what was open then.
    with unit_locks.hold("unit"):
        pass
    assert os.waitpid(child, 0)[1] == 0


def test_a_directory_that_was_tidied_up_is_made_again(directory):
    unit_locks = ChunkLocks(LocalStore("/"))
    with unit_locks.hold("unit"):
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    with unit_locks.hold("unit"):
        assert len(list(directory.iterdir())) == 2
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_can_not_be_made_is_an_error_that_says_what_to_do(setting, tmp_path):
    (tmp_path / "file").touch()
    setting({"zarrdask.lock-directory": str(tmp_path / "file" / "locks")})
    z = zarrdask.create_array(tmp_path / "a", shape=4, dtype="i4", chunks=2)
    with pytest.raises(zarrdask.errors.StoreError, match=r"zarrdask\.lock-directory"):
        z[1:] = 1
    z[:2] = 5
    assert z[...].tolist() == [5, 5, 1, 1] or z[...].tolist() == [5, 5, 0, 0]


def test_by_default_a_user_has_a_directory_of_temporary_files(setting):
    setting({"zarrdask.lock-directory": None})
    expected = Path(tempfile.gettempdir()) / f"zarrdask-{os.geteuid()}"
    with ChunkLocks(LocalStore("/")).hold("unit"):
        assert list(expected.iterdir())
