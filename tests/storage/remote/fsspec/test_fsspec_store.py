"""Stores in fsspec's file systems: here its memory; others in test_fsspec_urls.py."""

import pickle
import uuid
import zipfile
from types import SimpleNamespace

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.covering import for_each
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.testing import VALUES, ReadOnlyStoreContract, StoreContract


@pytest.fixture
def store():
    return FsspecStore.from_url(f"memory://{uuid.uuid4().hex}/deep")


class TestFsspecStoreInMemory(StoreContract):
    @pytest.fixture
    def store(self):
        return FsspecStore.from_url(f"memory://{uuid.uuid4().hex}/deep")


class TestFsspecStoreOnDisk(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return FsspecStore(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "root"))


class TestZipFileSystem(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "values.zip", "w") as archive:
            for key, value in VALUES.items():
                archive.writestr(key, value)
        return FsspecStore.from_url(f"zip://::{tmp_path}/values.zip")


def test_the_url_tells_stores_apart(store):
    other = FsspecStore.from_url("memory://elsewhere")
    assert store.url.startswith("memory://")
    assert store.url != other.url
    assert store != other


def test_fsspecs_memory_is_not_shared_with_other_processes(store, tmp_path):
    assert not store.capabilities.shared
    assert FsspecStore.from_url(f"file://{tmp_path}").capabilities.shared


def test_an_unknown_protocol_is_a_store_error_that_names_the_url():
    with pytest.raises(StoreError, match="nosuch://x"):
        FsspecStore.from_url("nosuch://x/y")


def test_what_a_subclass_overrides_is_not_bypassed():
    class Other(FsspecStore):
        def get(self, key):
            return b"other"

    web = fsspec.filesystem("http")
    stores = [kind(web, "http://host/a") for kind in (FsspecStore, Other)]
    assert [store.capabilities.etags for store in stores] == [True, False]


class Broken(fsspec.AbstractFileSystem):
    protocol = "broken"

    def _open(self, *args, **kwargs):
        raise ConnectionResetError("the line was cut")

    cat_file = pipe_file = rm_file = ls = _open


@for_each(
    "act",
    [
        lambda store: store.get("k"),
        lambda store: store.get_range("k", 0, 1),
        lambda store: list(store.get_many(["k"], Scratch())),
        lambda store: list(store.get_ranges("k", [(0, 1)], Scratch())),
        lambda store: store.set("k", b"1"),
        lambda store: store.erase("k"),
        lambda store: store.list_dir("k/"),
    ],
)
def test_a_failing_file_system_is_a_store_error_with_its_words(act):
    with pytest.raises(StoreError, match="the line was cut") as caught:
        act(FsspecStore(Broken(), "root"))
    assert caught.value.key.startswith("broken://root/k")
    assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_neighbouring_ranges_are_read_as_one(store, setting, monkeypatch):
    setting({"zarrdask.coalesce-gap": 8})
    store.set("k", bytes(range(200)))
    asked = []
    cat_file = store.fs.cat_file

    def watch(path, start, end):
        asked.append((start, end))
        return cat_file(path, start=start, end=end)

    monkeypatch.setattr(store.fs, "cat_file", watch)
    ranges = [(0, 10), (12, 4), (24, 2), (100, 5)]
    found = [bytes(v) for v in store.get_ranges("k", ranges, Scratch())]
    assert asked == [(0, 26), (100, 105)]
    assert found == [bytes(range(start, start + size)) for start, size in ranges]


class Repeating(fsspec.AbstractFileSystem):
    """A file system that repeats requests as gcsfs does: by a decorator of one method."""

    protocol = "gs"

    def _request(self):
        return "repeated"

    _request.__wrapped__ = lambda self: "once"


def test_a_file_system_repeats_nothing_by_itself():
    fs = Repeating()
    store = FsspecStore(fs, "b")
    for each in (store, FsspecStore(fs, "b"), pickle.loads(pickle.dumps(store))):
        assert each.fs._request() == "once"
        assert (each, each.fs) == (store, fs)
        assert each.fs is store.fs
    assert fs._request() == "repeated"  # it may be in use elsewhere


class RepeatingAzure(fsspec.AbstractFileSystem):
    """A file system whose client repeats requests as that of adlfs does: by a policy."""

    protocol = "abfs"

    def __init__(self, **options):
        super().__init__(**options)
        policy = SimpleNamespace(total_retries=3)
        self.service_client = SimpleNamespace(_config=SimpleNamespace(retry_policy=policy))


def test_the_client_of_azure_repeats_nothing_by_itself():
    def retries(fs):
        return fs.service_client._config.retry_policy.total_retries

    fs = RepeatingAzure()
    store = FsspecStore(fs, "b")
    assert (retries(store.fs), retries(pickle.loads(pickle.dumps(store)).fs)) == (0, 0)
    assert retries(fs) == 3  # it may be in use elsewhere


class Azure(MemoryFileSystem):
    """As adlfs, which can't count a range from the end of a value."""

    protocol = ("abfs", "az")
    store, pseudo_dirs = {}, [""]

    def cat_file(self, path, start=None, end=None, **kwargs):
        assert start is None or start >= 0
        return super().cat_file(path, start, end, **kwargs)


def test_ranges_from_the_end_are_read_from_azure():
    store = FsspecStore(Azure(), "bucket")
    store.set("k", b"0123456789")
    store.set("empty", b"")
    found = [store.get_range("k", *part) for part in ((-4,), (-4, 2), (-40,), (3, 2))]
    assert found == [b"6789", b"67", b"0123456789", b"34"]
    assert store.get_range("empty", -4) == b""
    assert store.get_range("none", -4) is None
