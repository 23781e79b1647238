"""Zip archives as stores: written by one, read by many, and never seen half written."""

import os
import pickle
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.storage.zips import Entry, hidden, pack
from zarrdask.errors import MetadataError, StoreError
from zarrdask.storage.zip.store import ZipStore
from zarrdask.testing import VALUES, StoreContract


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


@pytest.mark.parametrize("mode", ["r", "r+", "w"])
def test_a_fifo_is_no_archive(tmp_path, mode):
    os.mkfifo(tmp_path / "fifo.zip")
    with pytest.raises(StoreError, match="expected a regular file"):
        zarrdask.open_group(tmp_path / "fifo.zip", mode=mode)
