"""Zip archives as stores: written by one, read by many, and never seen half written."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.storage.zips import Entry, pack
from zarrdask.chunks.read import read_region
from zarrdask.errors import MetadataError, ReadOnlyError, StoreError
from zarrdask.nodes.array import chunks_of
from zarrdask.storage.base import Scratch
from zarrdask.storage.resolve import resolve
from zarrdask.storage.zip import remote as zip_remote
from zarrdask.storage.zip.lock import lock_archive
from zarrdask.storage.zip.remote import RemoteZipStore
from zarrdask.storage.zip.store import ZipStore
from zarrdask.testing import VALUES, ReadOnlyStoreContract, StoreContract

ROOT = Path(__file__).parents[2]
DATA = np.arange(96 * 64, dtype="i4").reshape(96, 64)


@pytest.fixture
def store(tmp_path):
    return ZipStore(tmp_path / "a.zip")


def zipped(path, values):
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in values.items():
            archive.writestr(key, value)
    return path


def hidden(folder):
    """Return what was made beside an archive, and is left."""
    return [path.name for path in Path(folder).iterdir() if path.name.startswith(".")]


class TestZipStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return ZipStore(tmp_path / "a.zip")


class TestPrefixOfAZipStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return ZipStore(tmp_path / "a.zip", "in/side/")


class TestZipStoreInABatch(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        store = ZipStore(tmp_path / "a.zip")
        with store.batch():
            yield store


class TestRemoteZipStore(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        path = zipped(tmp_path / "values.zip", VALUES)
        name = f"/{tmp_path.name}.zip"
        fsspec.filesystem("memory").pipe_file(name, path.read_bytes())
        return resolve(f"zip://::memory:/{name}")


class TestRemotePrefix(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        path = zipped(tmp_path / "values.zip", {f"x/{key}": VALUES[key] for key in VALUES})
        return RemoteZipStore(fsspec.filesystem("file"), str(path), "x/")


# --------------------------------------------------------------------------------------------
# What is written


class TestBatch:
    def test_nothing_is_seen_before_its_end(self, store):
        store.set("old", b"1")
        before = Path(store.path).read_bytes()
        with store.batch():
            store.set("new", b"2")
            store.erase("old")
            assert (store.get("new"), store.get("old")) == (b"2", None)
            assert Path(store.path).read_bytes() == before
        assert (store.get("new"), store.get("old")) == (b"2", None)
        assert zipfile.ZipFile(store.path).namelist() == ["new"]
        assert hidden(Path(store.path).parent) == []

    def test_after_an_error_what_was_written_before_it_is_there(self, store):
        def fail():
            with store.batch():
                store.set("a", b"1")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert store.get("a") == b"1"
        assert hidden(Path(store.path).parent) == []

    def test_one_without_writes_changes_nothing(self, store):
        with store.batch():
            store.erase("absent")
            pickle.dumps(store)
        assert not os.path.exists(store.path)

    def test_blocks_of_several_threads_end_together(self, store):
        barrier = threading.Barrier(4)

        def write(number):
            with store.batch():
                barrier.wait(60)
                for n in range(50):
                    store.set(f"{number}/{n}", b"%d" % n * 99)
                barrier.wait(60)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        with zipfile.ZipFile(store.path) as archive:
            assert archive.testzip() is None
            assert len(archive.namelist()) == 200
        assert store.get("3/7") == b"7" * 99

    def test_threads_write_the_same_archive_without_one(self, store):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: store.set(f"k{n}", b"%d" % n), range(40)))
        assert {key: store.get(key) for key in store.list()} == {
            f"k{n}": b"%d" % n for n in range(40)
        }

    def test_an_archive_of_others_is_added_to(self, tmp_path):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("ünïcode/a", b"there " * 100)
        path.chmod(0o440)
        ZipStore(path).set("b", b"new")
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            assert archive.read("ünïcode/a") == b"there " * 100
        assert path.stat().st_mode & 0o777 == 0o440

    def test_names_in_an_old_encoding_are_kept(self, tmp_path):
        data = bytearray(pack([Entry("t\u00e9", b"old"), Entry("b", b"1")]))
        path = tmp_path / "a.zip"
        path.write_bytes(data.replace("\u00e9".encode(), "\u251c\u2310".encode("cp437")))
        before = ZipStore(path).get("t\u251c\u2310")
        ZipStore(path).set("c", b"new")
        with zipfile.ZipFile(path) as archive:
            assert archive.read("t\u251c\u2310") == before == b"old"
            assert archive.read("b") == b"1"

    def test_an_archive_behind_a_link_is_replaced_where_it_is(self, tmp_path):
        (tmp_path / "real").mkdir()
        ZipStore(tmp_path / "real" / "a.zip").set("k", b"1")
        (tmp_path / "a.zip").symlink_to(tmp_path / "real" / "a.zip")
        store = ZipStore(tmp_path / "a.zip")
        store.set("k", b"2")
        assert (tmp_path / "a.zip").is_symlink()
        assert ZipStore(tmp_path / "real" / "a.zip").get("k") == b"2"

    def test_archives_of_the_same_values_are_the_same_bytes(self, tmp_path):
        for name in ("a.zip", "b.zip"):
            with ZipStore(tmp_path / name).batch():
                for key, value in VALUES.items():
                    ZipStore(tmp_path / name).set(key, value)
        assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()

    def test_emptying_an_archive_frees_its_space(self, store):
        store.set("a", bytes(100_000))
        with store.batch():
            store.erase_prefix("")
            store.set("b", b"1")
        assert os.path.getsize(store.path) < 1000

    @pytest.mark.parametrize("key", ["../a", "/a", "a//b", "a\\b", "a/./b", "C:/a"])
    def test_names_that_an_archive_should_not_have_are_refused(self, store, key):
        store.set("k", b"1")
        with pytest.raises(MetadataError):
            store.set(key, b"2")
        assert list(store.list()) == ["k"]

    def test_something_else_is_not_overwritten(self, tmp_path):
        (tmp_path / "a.zip").write_bytes(b"no archive")
        with pytest.raises(StoreError, match=r"a\.zip: .*not a zip archive"):
            ZipStore(tmp_path / "a.zip").set("k", b"1")
        assert (tmp_path / "a.zip").read_bytes() == b"no archive"
        assert hidden(tmp_path) == []

    def test_a_directory_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StoreError, match=r"a\.zip"):
            ZipStore(tmp_path / "file" / "a.zip").set("k", b"1")

    @given(
        steps=st.lists(
            st.tuples(
                st.sampled_from(["set", "erase", "erase_prefix", "commit"]),
                st.sampled_from(["a", "b/c", "b/d", "e/f/g", "ü/k"]),
                st.binary(max_size=200),
            ),
            max_size=25,
        )
    )
    def test_it_holds_what_a_dict_would(self, steps, tmp_path_factory):
        store = ZipStore(tmp_path_factory.mktemp("z") / "a.zip")
        expected = {}
        batch = store.batch()
        batch.__enter__()
        for action, key, value in steps:
            if action == "set":
                store.set(key, value)
                expected[key] = value
            elif action == "erase":
                store.erase(key)
                expected.pop(key, None)
            elif action == "erase_prefix":
                prefix = key[: key.rfind("/") + 1]
                store.erase_prefix(prefix)
                expected = {k: v for k, v in expected.items() if not k.startswith(prefix)}
            else:
                batch.__exit__(None, None, None)
                batch = store.batch()
                batch.__enter__()
            assert {k: store.get(k) for k in store.list()} == expected
        batch.__exit__(None, None, None)
        assert {k: store.get(k) for k in store.list()} == expected
        if os.path.exists(store.path):
            with zipfile.ZipFile(store.path) as archive:
                assert {n: archive.read(n) for n in archive.namelist()} == expected


# --------------------------------------------------------------------------------------------
# Several processes


def set_values(store, number):
    for n in range(20):
        store.set(f"{number}/{n}", bytes([n]) * 1000)
    store.erase("gone")
    return os.getpid()


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


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


class TestProcesses:
    def test_values_of_other_processes_are_handed_to_the_one_that_writes(self, store, pool):
        store.set("gone", b"1")
        with store.batch():
            store.set("own", b"1")
            list(pool.map(set_values, [store] * 4, range(4)))
            assert store.get("2/5") == b"\5" * 1000
            assert store.get("gone") is None
        assert len(list(store.list())) == 81
        assert zipfile.ZipFile(store.path).testzip() is None
        assert hidden(Path(store.path).parent) == []

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
        with store.batch():
            packed = pickle.dumps(store)
        assert "no longer being written" in pool.submit(_write_packed, packed).result()
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

        with pytest.raises(StoreError, match="meanwhile"):
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

    def test_a_process_that_is_forked_in_a_batch_hands_over_what_it_writes(self, store):
        with store.batch():
            store.set("a", b"1")
            child = fork(lambda: store.set("b", b"2"))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert [(key, store.get(key)) for key in store.list()] == [("a", b"1"), ("b", b"2")]

    def test_the_lock_is_not_released_by_a_forked_process(self, store):
        store.set("k", b"1")
        with store.batch():
            store.set("k", b"2")
            child = fork(lambda: (store.set("l", b"3"), gc.collect()))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            with ExitStack() as stack, pytest.raises(StoreError, match="is writing"):
                lock_archive(store.path, stack)


def _read_packed(packed):
    return read_value(pickle.loads(packed))


def _write_packed(packed):
    return write_value(pickle.loads(packed))


def run_python(code, *args):
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=False)


def fork(action):
    child = os.fork()
    if child:
        return child
    try:
        action()
    except BaseException:
        os._exit(1)
    os._exit(0)


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

    def test_a_value_that_a_task_wrote_in_part_is_not_taken(self, store):
        with store.batch():
            store.set("own", b"1")
            folder = Path(pickle_folder(store))
            part = folder / "part-0"
            whole = source_of_part(folder, "done", b"value")
            part.write_bytes(whole + source_of_part(folder, "torn", b"x" * 99)[:-1])
        assert {key: store.get(key) for key in store.list()} == {"own": b"1", "done": b"value"}


def pickle_folder(store):
    """Return the folder to which other processes write in the batch that is open."""
    return store.__reduce__()[1][2]


def source_of_part(folder, key, value):
    """Return the bytes that another process appends for a value."""
    from zarrdask.storage.zip.writer import PartWriter

    writer = PartWriter(str(folder), "a.zip")
    writer.set(key, value)
    (path,) = folder.glob("part-*")
    data = path.read_bytes()
    path.unlink()
    return data


# --------------------------------------------------------------------------------------------
# What is read


class TestReading:
    @pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_threads_read_parts_of_shards(self, tmp_path, compression):
        folder = tmp_path / "a.zarr"
        zarrdask.create_array(folder, shape=DATA.shape, dtype="i4", chunks=4, shards=32)[...] = DATA
        with zipfile.ZipFile(tmp_path / "a.zip", "w", compression) as archive:
            for path in folder.rglob("*"):
                archive.write(path, path.relative_to(folder))
        z = zarrdask.open_array(tmp_path / "a.zip")

        def read(seed):
            random = np.random.default_rng(seed)
            for _ in range(20):
                i, j = random.integers(0, 80), random.integers(0, 50)
                np.testing.assert_array_equal(
                    read_region(chunks_of(z), (slice(i, i + 9, 1), slice(j, j + 7, 1)), threads=1),
                    DATA[i : i + 9, j : j + 7],
                )

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(read, range(8)))
        np.testing.assert_array_equal(zarrdask.from_zarr(tmp_path / "a.zip").compute(), DATA)

    def test_one_that_is_changed_in_its_place_is_an_error(self, tmp_path):
        path = zipped(tmp_path / "a.zip", {"k": b"1" * 1000, "l": b"2"})
        store = ZipStore(path)
        assert store.get("l") == b"2"
        data = path.read_bytes()
        path.write_bytes(data.replace(b"1" * 1000, b"9" * 1000) + b"more")
        for read in (
            lambda: store.get("k"),
            lambda: store.get_range("k", 0, 4),
            lambda: list(store.get_many(["k"], Scratch())),
            lambda: list(store.get_ranges("k", [(0, 4)], Scratch())),
        ):
            with pytest.raises(StoreError, match="was changed"):
                read()

    def test_one_that_took_its_place_is_seen_by_those_that_open_it(self, tmp_path):
        path = zipped(tmp_path / "a.zip", {"k": b"1"})
        store = ZipStore(path)
        assert store.get("k") == b"1"
        os.replace(zipped(tmp_path / "b.zip", {"k": b"22"}), path)
        assert store.get("k") == b"1"
        assert ZipStore(path).get("k") == b"22"

    def test_a_store_pickles_small(self, store):
        with store.batch():
            for n in range(1000):
                store.set(f"a/{n}", b"x")
        store.get("a/1")
        assert len(pickle.dumps(store)) < 500

    def test_fsspec_is_not_imported(self, store):
        store.set("k", b"1")
        code = (
            "import sys\nfrom zarrdask.storage.resolve import resolve\n"
            "store = resolve(sys.argv[1]); store.set('l', store.get('k'))\n"
            "print({'fsspec'} & set(sys.modules))"
        )
        done = run_python(code, store.path)
        assert (done.stdout, done.returncode) == (b"set()\n", 0), done.stderr


class Counting(fsspec.get_filesystem_class("file")):
    """Files, whose requests are counted."""

    protocol = "counting"
    cachable = False

    def __init__(self, **options):
        super().__init__(**options)
        self.requests = []

    def cat_file(self, path, start=None, end=None, **options):
        self.requests.append((start, end))
        return super().cat_file(path, start, end, **options)

    def cat_ranges(self, paths, starts, ends, **options):
        self.requests += zip(starts, ends, strict=True)
        values = zip(paths, starts, ends, strict=True)
        return [super(Counting, self).cat_file(*each) for each in values]


class TestRemote:
    @pytest.fixture
    def remote(self, tmp_path):
        values = {f"{n}": bytes([n % 256]) * 1000 for n in range(100)}
        path = zipped(tmp_path / "a.zip", values | {"big": bytes(1_000_000)})
        return RemoteZipStore(Counting(), str(path))

    def test_few_ranges_are_read(self, remote):
        remote.get("0")
        assert len(remote.fs.requests) == 2  # the end with the directory, the value
        remote.fs.requests.clear()
        found = [bytes(value) for value in remote.get_many(map(str, range(50)), Scratch())]
        assert found == [bytes([n]) * 1000 for n in range(50)]
        assert len(remote.fs.requests) == 1
        remote.fs.requests.clear()
        list(remote.get_ranges("big", [(500_000, 10), (900_000, 10)], Scratch()))
        assert sum(end - start for start, end in remote.fs.requests) < 1000

    def test_it_is_read_only(self, remote):
        for action in (lambda: remote.set("k", b"1"), lambda: remote.erase("0")):
            with pytest.raises(ReadOnlyError, match="local disk"):
                action()

    def test_it_pickles_and_sees_that_the_archive_is_another_one(self, remote, tmp_path):
        remote.get("0")
        packed = pickle.dumps(remote)
        assert pickle.loads(packed).get("5") == b"\5" * 1000
        zipped(tmp_path / "a.zip", {"5": b"other"})
        zip_remote._REMOTE.clear()  # as in another process
        with pytest.raises(StoreError, match="was changed after this task"):
            pickle.loads(packed).get("5")

    def test_none_is_there(self, tmp_path):
        store = resolve(f"zip://::memory://{tmp_path.name}-absent.zip")
        assert (store.get("k"), list(store.list())) == (None, [])
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.open(f"memory://{tmp_path.name}-absent.zip/x.zip")

    def test_a_path_within_and_options_of_the_file_system(self, tmp_path):
        name = f"/{tmp_path.name}.zip"
        data = zipped(tmp_path / "a.zip", {"x/y/k": b"1"}).read_bytes()
        fsspec.filesystem("memory").pipe_file(name, data)
        assert resolve(f"zip://x/y::memory:/{name}", {"memory": {}}).get("k") == b"1"
        assert resolve(f"memory:/{name}").get("x/y/k") == b"1"


@pytest.mark.parametrize("mode", ["r", "r+", "w"])
def test_a_fifo_is_no_archive(tmp_path, mode):
    os.mkfifo(tmp_path / "fifo.zip")
    with pytest.raises(StoreError, match="not a regular file"):
        zarrdask.open_group(tmp_path / "fifo.zip", mode=mode)
