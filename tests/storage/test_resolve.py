"""What users give as a place."""

import os
import pathlib
import zipfile

import fsspec
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import StoreError
from zarrdask.storage.fsspec import FsspecStore
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import MappingStore, MemoryStore
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


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("~/a") == LocalStore(f"{tmp_path}/a")


def test_a_file_url_is_the_local_store_with_escapes_undone(tmp_path):
    assert resolve(f"file://{tmp_path}/my%20data") == LocalStore(f"{tmp_path}/my data")


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


def test_an_fsspec_mapper_is_its_file_system():
    store = resolve(fsspec.get_mapper("memory://mapped"))
    assert isinstance(store, FsspecStore)
    store.set("k", b"1")
    assert fsspec.filesystem("memory").cat_file("/mapped/k") == b"1"


def test_a_zip_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("k", b"1")
    assert resolve(path).get("k") == b"1"


@pytest.mark.parametrize("protocol", ["", "file", "memory"])
def test_a_path_of_universal_pathlib(tmp_path, protocol):
    kind = type("UPath", (), {"__module__": "upath.core"})
    path = kind()
    path.protocol = protocol
    path.path = "/universal" if protocol == "memory" else str(tmp_path)
    path.fs = fsspec.filesystem(protocol or "file")
    resolve(path).set("k", b"1")
    assert path.fs.cat_file(f"{path.path}/k") == b"1"


@for_each("place", [None, 5, b"bytes", ["list"], object()])
def test_anything_else_is_an_error_that_says_what_would_do(place):
    with pytest.raises(StoreError, match="a URL, a path, a mutable mapping or a store"):
        resolve(place)


def test_a_local_path_takes_no_storage_options(tmp_path):
    with pytest.raises(StoreError, match="anon"):
        resolve(str(tmp_path), {"anon": True})


def test_an_unknown_scheme_is_a_store_error():
    with pytest.raises(StoreError, match="nosuch"):
        zarrdask.open("nosuch://bucket/a")


@pytest.mark.parametrize("name", ["run#1", "a?b", "a%20b", "50%"])
def test_a_file_url_keeps_all_of_its_path(tmp_path, name):
    found = resolve(f"file://{tmp_path}/{name}/x.zarr")
    assert found.url == f"{tmp_path}/{name.replace('%20', ' ')}/x.zarr"
