"""Archives that several processes write, and writers that are killed."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import zarrdask
from tests.storage.zips import ROOT, hidden, run_python
from zarrdask.errors import StoreError
from zarrdask.storage.zip.lock import lock_archive


def read_value(store):
    try:
        return store.get("k")
    except StoreError as error:
        return str(error)


def write_value(store):
    try:
        store.set("new", b"1")
    except StoreError as error:
        return str(error)
    return None


class TestProcesses:
    def test_those_of_a_computation_cannot_write(self, store, pool):
        store.set("k", b"1")
        with store.batch():
            store.set("own", b"1")
            message = pool.submit(write_value, store).result()
        assert "written by one process" in message
        assert "write a directory and zarrdask.copy" in message
        assert sorted(store.list()) == ["k", "own"]

    def test_they_read_an_archive_that_is_complete_but_not_another_one(self, store, pool):
        store.set("k", b"1")
        assert pool.submit(read_value, store).result() == b"1"
        packed = pickle.dumps(store)
        store.set("k", b"2")
        assert "was changed after this task" in pool.submit(_read_packed, packed).result()
        assert pool.submit(read_value, store).result() == b"2"

    def test_they_cannot_read_in_a_batch(self, store, pool):
        store.set("k", b"1")
        with store.batch():
            store.set("l", b"2")
            assert "can't read" in pool.submit(read_value, store).result()

    def test_they_cannot_write_without_a_batch(self, store, pool):
        store.set("k", b"1")
        assert "written by one process" in pool.submit(write_value, store).result()
        assert list(store.list()) == ["k"]

    def test_another_process_that_writes_is_kept_away(self, store):
        store.set("k", b"1")
        with store.batch():
            store.set("k", b"2")
            code = (
                "import sys; from zarrdask.storage.zip.store import ZipStore\n"
                "ZipStore(sys.argv[1]).set('k', b'3')"
            )
            done = run_python(code, store.path)
            assert done.returncode
            assert b"another process is writing" in done.stderr
        assert store.get("k") == b"2"

    def test_of_two_that_make_an_archive_the_first_one_stays(self, store):
        code = (
            "import sys; from zarrdask.storage.zip.store import ZipStore\n"
            "ZipStore(sys.argv[1]).set('k', b'theirs')"
        )

        def write():
            with store.batch():
                store.set("k", b"ours")
                assert run_python(code, store.path).returncode == 0

        with pytest.raises(StoreError, match="another process created"):
            write()
        assert store.get("k") == b"theirs"
        assert hidden(Path(store.path).parent) == []

    def test_a_forked_process_reads_what_was_opened_before(self, store):
        with store.batch():
            for n in range(50):
                store.set(str(n), bytes([n]) * 5000)
        store.get("0")
        children = [fork(lambda: check_values(store)) for _ in range(3)]
        check_values(store)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 3

    @pytest.mark.parametrize("there", [False, True])
    def test_a_process_that_is_forked_in_a_batch_reads_and_writes_after_it(self, store, there):
        if there:
            store.set("k", b"1")
        with store.batch():
            store.set("a", b"1")
            for action in (lambda: store.set("b", b"2"), lambda: store.get("a")):
                child = fork(lambda action=action: check_refused(action))
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert store.get("a") == b"1"
        assert "b" not in store.list()

    def test_a_forked_process_uses_the_archive_when_the_batch_has_ended(self, store):
        ready, go = os.pipe()
        with store.batch():
            store.set("a", b"1")

            def use():
                os.read(ready, 1)
                store.set("b", store.get("a") + b"2")

            child = fork(use)
        os.write(go, b".")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert store.get("b") == b"12"

    def test_the_lock_is_not_released_by_a_forked_process(self, store):
        store.set("k", b"1")
        with store.batch():
            store.set("k", b"2")
            child = fork(lambda: (check_refused(lambda: store.set("l", b"3")), gc.collect()))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            with ExitStack() as stack, pytest.raises(StoreError, match="is writing"):
                lock_archive(store.path, stack)
        assert store.get("k") == b"2"

    def test_a_program_that_changes_the_archive_during_a_batch_loses_nothing(self, store):
        store.set("k", b"1")

        def write():
            with store.batch():
                store.set("l", b"2")
                with zipfile.ZipFile(store.path, "a") as archive:
                    archive.writestr("theirs", b"3")

        with pytest.raises(StoreError, match="nothing of this write is stored"):
            write()
        assert zipfile.ZipFile(store.path).namelist() == ["k", "theirs"]
        assert hidden(Path(store.path).parent) == []

    def test_a_write_hides_what_the_archive_hides(self, store):
        store.set("k", b"1")
        os.chmod(store.path, 0o600)
        with store.batch():
            store.set("l", b"2")
            (name,) = hidden(Path(store.path).parent)
            assert (Path(store.path).parent / name).stat().st_mode & 0o777 == 0o600
        assert os.stat(store.path).st_mode & 0o777 == 0o600


def _read_packed(packed):
    return read_value(pickle.loads(packed))


def fork(action):
    child = os.fork()
    if child:
        return child
    try:
        action()
    except BaseException:
        os._exit(1)
    os._exit(0)


def check_refused(action):
    try:
        action()
    except StoreError:
        return
    raise AssertionError("no error")


def check_values(store):
    for _ in range(20):
        for n in range(50):
            if store.get(str(n)) != bytes([n]) * 5000:
                raise AssertionError(n)


WRITES = """
import sys, time
from zarrdask.storage.zip.store import ZipStore
store = ZipStore(sys.argv[1])
with store.batch():
    for n in range(10**9):
        store.set(f"new/{n}", b"x" * 10_000)
        if n == 20:
            print("begun", flush=True)
"""


class TestKilledWriter:
    @pytest.mark.parametrize("there", [False, True])
    def test_the_archive_is_as_it_was(self, store, there):
        if there:
            store.set("old", b"1")
        before = Path(store.path).read_bytes() if there else None
        command = [sys.executable, "-c", WRITES, store.path]
        writer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        try:
            assert writer.stdout.readline() == b"begun\n"
        finally:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait(60)
            writer.stdout.close()
        after = Path(store.path).read_bytes() if os.path.exists(store.path) else None
        assert after == before
        store.set("later", b"2")
        assert zipfile.ZipFile(store.path).namelist() == (["old"] if there else []) + ["later"]


def test_a_full_disk_is_an_error_of_the_store_and_leaves_the_archive(tmp_path):
    resource = pytest.importorskip("resource")
    place = str(tmp_path / "a.zip")
    zarrdask.create_array(place, shape=8, dtype="i8")[...] = 1
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(place) + 8, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"a\.zip"):
            zarrdask.to_zarr(np.arange(9), tmp_path / "a.zip", overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    np.testing.assert_array_equal(zarrdask.open_array(place), 1)
    assert os.listdir(tmp_path) == ["a.zip"]
