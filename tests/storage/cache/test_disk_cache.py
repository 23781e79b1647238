"""Remote values that are cached on the local disk."""

import errno
import os
import pickle
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import zarrdask
from tests.storage.latency import VersionedStore
from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import Version
from zarrdask.storage.cache import cache_directory
from zarrdask.storage.cache.cache_directory import CacheDirectory
from zarrdask.storage.cache.disk_cache import DiskCachedStore, _service, cached_as_set
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.retry import retrying
from zarrdask.storage.resolve import resolve
from zarrdask.testing import StoreContract

SHAPE = 24, 20
VALUES = np.arange(1, 24 * 20 + 1, dtype="i4").reshape(SHAPE)
LAYOUTS = {
    "chunks": {"chunks": (8, 5)},
    "shards": {"chunks": (4, 5), "shards": (8, 10)},
    "large": {"chunks": SHAPE, "compressors": None},
}


class Server(VersionedStore):
    """A store that counts what it sends, and has a URL that is the same in all processes."""

    url = "s3://bucket/a.zarr"

    def __init__(self, inner=None, **options):
        super().__init__(inner, seconds=0, **options)
        self.sent = Counter()

    def request(self, name, keys, call):
        value = super().request(name, keys, call)
        self.sent[name] += 1
        return value

    def get_if_changed(self, key, tag, start=0, length=None):
        version = super().get_if_changed(key, tag, start, length)
        self.sent["bytes"] += len(version.value or b"")
        self.sent["unchanged"] += version.is_unchanged
        return version

    def get_part(self, key, start, length, tag=None):
        part = super().get_part(key, start, length, tag)
        self.sent["bytes"] += 0 if part is None else len(part.value)
        return part


@pytest.fixture
def directory(tmp_path):
    return CacheDirectory.below(str(tmp_path), 2**24)


class TestDiskCachedStore(StoreContract):
    @pytest.fixture
    def store(self, directory):
        return DiskCachedStore(VersionedStore(seconds=0), directory)


def opened(memory, directory, **options):
    """Return an array behind a new cache, and the server."""
    server = Server(memory)
    return zarrdask.open_array(DiskCachedStore(server, directory, **options)), server


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_second_epoch_sends_conditional_requests_only(directory, layout, setting):
    setting({"zarrdask.range-size": 100 if layout == "large" else 2**23})
    memory = MemoryStore()
    zarrdask.create_array(memory, shape=SHAPE, dtype="i4", **LAYOUTS[layout])[...] = VALUES
    for epoch in range(3):
        z, server = opened(memory, directory)
        server.sent.clear()
        for rows in range(0, 24, 6):
            np.testing.assert_array_equal(z[rows : rows + 6, 3], VALUES[rows : rows + 6, 3])
        np.testing.assert_array_equal(z[...], VALUES)
        assert (server.sent["bytes"] == 0) == (epoch > 0)
        assert server.sent["unchanged"] == server.sent["get_if_changed"] or epoch == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_change_is_noticed(directory, layout):
    memory = MemoryStore()
    writer = zarrdask.create_array(memory, shape=SHAPE, dtype="i4", **LAYOUTS[layout])
    writer[...] = VALUES
    expected = VALUES.copy()
    z, _ = opened(memory, directory)
    for turn in range(20):
        np.testing.assert_array_equal(z[turn : turn + 4, :7], expected[turn : turn + 4, :7])
        expected[turn, 2] = writer[turn, 2] = -turn
        if turn % 5 == 4:
            memory.erase("c/0/0")
            last = np.array(writer[...])
            expected[...] = last
        np.testing.assert_array_equal(z[...], expected)


def test_two_processes_share_what_was_read_and_an_evicted_value_is_read_again(tmp_path):
    memory, small = MemoryStore(), CacheDirectory.below(str(tmp_path), 2**15)
    zarrdask.create_array(memory, shape=100_000, dtype="i4", chunks=1000, compressors=None)
    z = zarrdask.open_array(memory, mode="r+")
    z[...] = values = np.arange(100_000)
    for _ in range(2):
        z, _ = opened(memory, small)
        np.testing.assert_array_equal(z[...], values)


@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_offline_nothing_is_requested(directory, layout):
    memory = MemoryStore()
    zarrdask.create_array(memory, shape=SHAPE, dtype="i4", **LAYOUTS[layout])[:16] = VALUES[:16]
    z, _ = opened(memory, directory)
    for part in (np.s_[...], np.s_[3, :], np.s_[20, 1]):
        z[part]
    expected = VALUES.copy()
    expected[16:] = 0
    zarrdask.open_array(memory, mode="r+")[...] = -1
    z, server = opened(memory, directory, offline=True)
    for part in (np.s_[...], np.s_[3, :], np.s_[20, 1]):  # missing chunks, too
        np.testing.assert_array_equal(z[part], expected[part])
    assert not server.sent
    store = z.store.inner
    for read in (lambda: store.get("other"), lambda: store.get_tagged("zarr.json")):
        with pytest.raises(StoreError, match="cache-offline"):
            read()
    with pytest.raises(StoreError, match="cache-offline"):
        list(store.list_dir(""))
    assert not store.capabilities.writable
    assert not server.sent


def test_a_cache_that_can_not_be_written_is_of_no_consequence(directory):
    memory = MemoryStore()
    zarrdask.create_array(memory, shape=SHAPE, dtype="i4", chunks=8)[...] = VALUES
    with open(os.path.join(directory.path, "size"), "wb"):
        pass
    os.chmod(directory.path, 0o500)
    os.rename(os.path.join(directory.path), directory.path + "-moved")
    for _ in range(2):
        z, _ = opened(memory, directory)
        np.testing.assert_array_equal(z[...], VALUES)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("offline", [False, True])
def test_nothing_is_cached_where_the_disk_is_full_before_the_directory_exists(
    setting, tmp_path, monkeypatch, caplog, offline, number
):
    def makedirs(path, *_, **__):
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(cache_directory.os, "makedirs", makedirs)
    setting({"zarrdask.cache-directory": str(tmp_path)})
    store = cached_as_set(Server(MemoryStore({"k": b"v"})), offline=offline)
    assert os.strerror(number) in caplog.text
    if offline:
        with pytest.raises(StoreError, match="cache-offline"):
            store.get("k")
    else:
        assert store.get("k") == b"v"


class ForkedServer(VersionedStore):
    """A store that, in a forked process, is another one, which has no conditional requests."""

    is_forked = False

    @property
    def capabilities(self):
        has = not self.is_forked
        return replace(super().capabilities, etags=has, versions=has)

    def get_part(self, key, start, length, tag=None):
        assert not self.is_forked
        return super().get_part(key, start, length, tag)

    def get_if_changed(self, key, tag, start=0, length=None):
        if not self.is_forked:
            return super().get_if_changed(key, tag, start, length)
        assert tag is None
        return Version(self.get_range(key, start, length))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cached_values_are_requested_anew_in_a_process_without_conditional_requests(
    directory, layout
):
    memory = MemoryStore()
    zarrdask.create_array(memory, shape=SHAPE, dtype="i4", **LAYOUTS[layout])[...] = VALUES
    server = ForkedServer(memory, seconds=0)
    z = zarrdask.open_array(DiskCachedStore(server, directory))
    np.testing.assert_array_equal(z[...], VALUES)
    server.is_forked = True
    zarrdask.open_array(memory, mode="r+")[...] = VALUES + 1
    np.testing.assert_array_equal(z[...], VALUES + 1)
    np.testing.assert_array_equal(z[3:5, 2:9], VALUES[3:5, 2:9] + 1)


def test_a_pickled_store_uses_the_same_cache(directory):
    store = DiskCachedStore(MemoryStore(), directory, offline=True)
    again = pickle.loads(pickle.dumps(store))
    assert (again.directory, again.offline) == (directory, True)


def test_a_store_that_arrives_on_another_machine_has_a_cache_there(tmp_path):
    server = Server(MemoryStore({"k": b"v"}))
    directory = CacheDirectory.below(str(tmp_path / "scratch"), 2**24)
    content = pickle.dumps(DiskCachedStore(server, directory))
    shutil.rmtree(tmp_path / "scratch")
    for unchanged in (0, 1):
        store = pickle.loads(content)
        assert store.get("k") == b"v"
        assert store.source.sent["unchanged"] == unchanged


@pytest.mark.parametrize("offline", [False, True])
def test_nothing_is_cached_where_a_store_arrives_and_can_have_no_directory(
    tmp_path, offline, caplog
):
    server = Server(MemoryStore({"k": b"v"}))
    directory = CacheDirectory.below(str(tmp_path / "scratch"), 2**24)
    content = pickle.dumps(DiskCachedStore(server, directory, offline=offline))
    shutil.rmtree(tmp_path / "scratch")
    (tmp_path / "scratch").write_bytes(b"")
    store = pickle.loads(content)
    assert "can't be created" in caplog.text
    if offline:
        with pytest.raises(StoreError, match="cache-offline"):
            store.get("k")
    else:
        assert store.get("k") == b"v"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"endpoint_url": "http://a"}, {"endpoint_url": "http://b"}),
        ({"client_kwargs": {"endpoint_url": "http://a"}}, {"client_kwargs": {}}),
        ({"account_name": "a"}, {"account_name": "b"}),
        ({"key": "a", "secret": "s"}, {"key": "b", "secret": "s"}),
        ({"access_key_id": "a"}, {"access_key_id": "b"}),
        ({"profile": "a"}, {"profile": "b"}),
        ({"headers": {"Cookie": "a"}}, {"headers": {"Cookie": "b"}}),
    ],
)
def test_servers_and_accounts_are_told_apart(first, second):
    assert _service(first) != _service(second)
    assert _service(first) == _service(dict(first))


def test_secrets_that_are_renewed_do_not_matter_and_are_not_revealed():
    first = {"key": "k1", "secret": "s1", "token": "t1", "endpoint_url": "http://a"}
    second = {"key": "k2", "secret": "s2", "token": "t2", "endpoint_url": "http://a"}
    assert _service(first) == _service(second)
    first = {"access_key_id": "k1", "session_token": "t1"}
    assert _service(first) == _service({"access_key_id": "k2", "session_token": "t2"})
    assert "s1" not in _service({"secret": "s1", "account_key": "s1", "sas_token": "s1"})


def test_variables_tell_servers_apart(monkeypatch):
    service = _service({})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://a")
    assert _service({}) != service


def test_offline_nothing_is_requested_without_a_cache_either(setting, tmp_path):
    setting({"zarrdask.cache-offline": True})
    with pytest.raises(StoreError, match=r"a\.zarr: .*; set zarrdask\.cache-directory"):
        resolve("http://127.0.0.1:9/a.zarr")
    resolve("memory://a.zarr").get("key")  # sends no requests
    setting({"zarrdask.cache-directory": str(tmp_path)})
    plain = MemoryStore({"key": b"value"})
    plain.capabilities = type(plain.capabilities)()  # without versions
    with pytest.raises(StoreError, match="cache-offline"):
        cached_as_set(plain, offline=True).get("key")


def test_remote_urls_are_cached_as_the_settings_say(setting, tmp_path, caplog):
    url = "http://127.0.0.1:9/a.zarr"
    assert not isinstance(resolve(url), DiskCachedStore)
    setting({"zarrdask.cache-directory": str(tmp_path), "zarrdask.cache-bytes": "1 MiB"})
    store = resolve(url)
    assert isinstance(store, DiskCachedStore)
    assert (store.directory.limit, store.offline) == (2**20, False)
    assert store.url == url
    assert retrying(store).capabilities.versions
    assert not isinstance(resolve(str(tmp_path)), DiskCachedStore)
    setting({"zarrdask.cache-offline": True})
    assert resolve(url).offline
    plain = MemoryStore()
    plain.capabilities = type(plain.capabilities)()
    assert cached_as_set(plain, offline=False) is plain
    assert "no ETags" in caplog.text
    setting({"zarrdask.cache-directory": 7})
    with pytest.raises(MetadataError, match="cache-directory"):
        resolve(url)
