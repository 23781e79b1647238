"""What is below a directory or a bucket that is no node: the message names it."""

import pytest

from tests.covering import for_each
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.hierarchy.stores_below import (
    MAX_LISTED,
    advice_for_bucket,
    advice_for_directory,
)
from zarrdask.storage.memory import MemoryStore

ICECHUNK = ("manifests", "snapshots", "transactions")


class Bucket(MemoryStore):
    url = "s3://bucket"


def directory(tmp_path, *names):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    return str(tmp_path)


def test_the_hierarchies_in_a_directory_are_named(tmp_path):
    path = directory(tmp_path, "a/zarr.json", "b/.zgroup", "c.zarr.zip", "d/notes.txt", "e.txt")
    assert advice_for_directory(path) == ", but below it: pass one of 'a', 'b', 'c.zarr.zip'"


def test_only_some_of_many_are_named(tmp_path):
    path = directory(tmp_path, *(f"{number:02}/zarr.json" for number in range(MAX_LISTED + 1)))
    assert advice_for_directory(path).endswith("'07', ...")


def test_a_repository_of_icechunk_is_recognised(tmp_path):
    path = directory(tmp_path, *(f"{name}/x" for name in ICECHUNK))
    assert advice_for_directory(path) == f", but a repository of icechunk: pass icechunk::{path}"
    store = Bucket({f"{name}/x": b"" for name in ICECHUNK})
    assert advice_for_bucket(StorePath(store, "")).endswith("icechunk::s3://bucket")


@for_each("path", ["missing", "a.txt"])
def test_nothing_is_said_of_other_directories(path, tmp_path):
    directory(tmp_path, "a.txt", "b/c.txt")
    assert advice_for_directory(str(tmp_path / path)) == ""
    assert advice_for_directory(str(tmp_path)) == ""


def test_the_hierarchies_in_a_bucket_are_named():
    store = Bucket({"a.zarr/c/0": b"", "b/zarr.json": b"{}", "c.zarr.zip": b"", "d/x": b""})
    advice = advice_for_bucket(StorePath(store, ""))
    assert advice == ", but below it: pass one of 'a.zarr', 'b', 'c.zarr.zip'"
    assert advice_for_bucket(StorePath(store, "d")) == ""


@pytest.mark.parametrize("url", ["s3://bucket/prefix", "https://host", "/data"])
def test_nothing_is_requested_where_no_bucket_was_named(url):
    class Elsewhere(MemoryStore):
        def list_dir(self, prefix):
            raise AssertionError("nothing may be listed")

    Elsewhere.url = url
    assert advice_for_bucket(StorePath(Elsewhere(), "")) == ""
