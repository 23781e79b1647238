"""What users give as a place."""

import os
import pathlib

import fsspec
import pytest

from zarrdask import register
from zarrdask.errors import MetadataError, StoreError
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MappingStore, MemoryStore
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.resolve import resolve


def test_a_store_is_itself():
    store = MemoryStore()
    assert resolve(store) is store


def test_a_path_is_a_local_directory(tmp_path):
    expected = LocalStore(str(tmp_path))
    assert resolve(str(tmp_path)) == expected
    assert resolve(pathlib.Path(tmp_path)) == expected
    assert resolve(os.fsencode(tmp_path).decode()) == expected
    assert resolve(f"{tmp_path}/") == expected


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve("a/b") == LocalStore(f"{tmp_path}/a/b")


@pytest.mark.parametrize("name", ["2024-01-01T00::30.zarr", "a::b", "x y::z", "c:d"])
def test_colons_do_not_make_a_url_of_a_path(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert resolve(name) == LocalStore(f"{tmp_path}/{name}")


def test_a_url_of_this_host_is_a_path(tmp_path):
    assert resolve(f"file://localhost{tmp_path}") == resolve(f"file://{tmp_path}")


@pytest.mark.parametrize("url", ["s3://bucket/a", "https://host/a", "file:///tmp/a"])
def test_a_url_that_was_a_path_is_an_error(url):
    path = pathlib.Path(url)
    with pytest.raises(StoreError, match=r"pass it as text.*://"):
        resolve(path)
    assert isinstance(resolve(f"./{path}"), LocalStore)


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("~/a") == LocalStore(f"{tmp_path}/a")


def test_a_dict_is_a_memory_store_and_other_mappings_are_mapping_stores():
    class Values(dict):
        pass

    assert type(resolve({})) is MemoryStore
    assert isinstance(resolve(Values()), MappingStore)


def test_a_url_is_an_fsspec_store():
    store = resolve("memory://somewhere/deep")
    assert isinstance(store, FsspecStore)
    store.set("k", b"1")
    assert fsspec.filesystem("memory").cat_file("/somewhere/deep/k") == b"1"


@pytest.mark.parametrize("url", ["s3://bucket/a", "memory://a", "a"])
@pytest.mark.parametrize("options", ["anon", [("anon", True)]])
def test_options_without_names_are_an_error(url, options):
    with pytest.raises(MetadataError, match="storage_options"):
        resolve(url, options)


@pytest.mark.parametrize("protocol", ["", "file", "memory"])
def test_a_path_of_universal_pathlib(tmp_path, protocol):
    kind = type("UPath", (), {"__module__": "upath.core"})
    path = kind()
    path.protocol = protocol
    path.path = "/universal" if protocol == "memory" else str(tmp_path)
    path.fs = fsspec.filesystem(protocol or "file")
    resolve(path).set("k", b"1")
    assert path.fs.cat_file(f"{path.path}/k") == b"1"


@pytest.mark.parametrize("name", ["run#1", "a?b", "a%20b", "50%"])
def test_a_file_url_keeps_all_of_its_path(tmp_path, name):
    found = resolve(f"file://{tmp_path}/{name}/x.zarr")
    assert found.url == f"{tmp_path}/{name.replace('%20', ' ')}/x.zarr"


@pytest.fixture
def opened(own_registries):
    """Register openers for a scheme and a suffix; return what they are called with."""
    calls, store = [], MemoryStore()

    def open_url(url, storage_options):
        calls.append((url, storage_options))
        return store

    register.store("sqlite", open_url)
    register.store(".db", open_url)
    return calls


def test_a_registered_scheme_or_suffix_is_opened_by_its_function(opened, tmp_path):
    options = {"mode": "shared"}
    for url in ("sqlite://a/b", "SQLITE://a.zip", "memory://a.db"):
        assert isinstance(resolve(url, options), MemoryStore)
        assert opened.pop() == (url, options)
    resolve(tmp_path / "a.db")
    assert opened.pop() == (str(tmp_path / "a.db"), None)
    (tmp_path / "b.db").mkdir()
    assert resolve(tmp_path / "b.db") == LocalStore(str(tmp_path / "b.db"))
    assert not opened


def test_a_scheme_that_is_not_registered_is_one_of_fsspec(opened):
    assert isinstance(resolve("memory://a"), FsspecStore)
    with pytest.raises(StoreError, match="sqlight"):
        resolve("sqlight://a")


def test_the_name_of_a_scheme_is_checked():
    with pytest.raises(MetadataError, match="lower-case"):
        register.store("Sqlite", LocalStore)


def test_an_object_of_a_registered_package_is_a_store(own_registries):
    class Bucket:
        __module__ = "acme.buckets"

    class Other(Bucket):
        __module__ = "elsewhere"

    class Client(Bucket):
        pass

    store = MemoryStore()
    register.store_type("acme", lambda value: None if type(value) is Client else store)
    assert resolve(Bucket()) is resolve(Other()) is store
    Client.__module__ = "acme.clients"
    with pytest.raises(StoreError, match="can't store arrays"):
        resolve(Client())
