"""What stands in the place of a chunk, or of a directory of chunks, is no missing chunk."""

import os
import socket
from contextlib import contextmanager

import numpy as np
import pytest

import zarrdask
from tests.covering import covering
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore

LAYOUTS = {
    "v3": {"chunks": 2},
    "v3, sharded": {"chunks": 1, "shards": 2},
    "v3, 1-d": {"shape": 4, "chunks": 2},
    "v3, v2 keys": {"chunks": 2, "chunk_key_encoding": "v2"},
    "v2": {"chunks": 2, "zarr_format": 2},
    "v2, nested": {"chunks": 2, "zarr_format": 2, "chunk_key_encoding": ("v2", "/")},
    "draft": {"chunks": 2, "zarr_format": "v3-draft"},
    "older draft": {"chunks": 2, "zarr_format": "v3-draft-protocol"},
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def array(request, tmp_path):
    """An array in a group, in which all chunks are 1."""
    options = {"shape": (4, 4), "dtype": "i4"} | request.param
    if isinstance(options.get("chunk_key_encoding"), tuple):
        name, separator = options["chunk_key_encoding"]
        options["chunk_key_encoding"] = {"name": name, "configuration": {"separator": separator}}
    z = zarrdask.create_array(tmp_path / "g", "a", **options)
    z[...] = 1
    return z


def file_of(array, index):
    """The file of a chunk."""
    store, key = array.store, chunks_of(array).key(index)
    if not isinstance(store, LocalStore):
        store, key = store.inner, store.layout.real(key)
    return store.path(key), key


def a_directory(path):
    os.mkdir(path)


def a_directory_of_things(path):
    os.makedirs(f"{path}/x/y")
    with open(f"{path}/x/y/z", "wb") as file:
        file.write(b"1")


def a_socket(path):
    here = os.getcwd()
    os.chdir(os.path.dirname(path))  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.basename(path))
    finally:
        os.chdir(here)


def a_link(target):
    def make(path):
        os.symlink(target, path)

    return make


OBSTACLES = {
    "directory": a_directory,
    "directory of things": a_directory_of_things,
    "fifo": os.mkfifo,
    "socket": a_socket,
    "link to a directory": a_link("."),
    "link to a device that never ends": a_link("/dev/zero"),
    "link to an empty device": a_link("/dev/null"),
}


@covering(strength=1, make=OBSTACLES, array=LAYOUTS, indirect=["array"])
@pytest.mark.timeout(60)
def test_only_a_regular_file_is_a_chunk(array, make, tmp_path):
    index = (0,) * array.ndim
    path, key = file_of(array, index)
    os.unlink(path)
    make(path)
    readings = [
        lambda: array[...],
        lambda: zarrdask.from_zarr(array).compute(scheduler="sync"),
        lambda: array.__setitem__((0,) * array.ndim, 2),
        lambda: zarrdask.copy(array, MemoryStore(), scheduler="sync"),
        lambda: zarrdask.copy(array, tmp_path / "copy", scheduler="sync"),
    ]
    for read in readings:
        with pytest.raises(zarrdask.errors.StoreError, match="remove or move") as caught:
            read()
        assert key in str(caught.value)
    report = zarrdask.verify(tmp_path / "g", scheduler="sync")
    assert not report.ok
    bad = [(p.key, p.index) for p in report.problems if p.kind == "unreadable"]
    assert bad == [(key, index)]


@contextmanager
def feeder(path):
    """Have a FIFO whose other end gives something."""
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    os.write(fd, np.full(4, 5, "i4").tobytes())
    try:
        yield
    finally:
        os.close(fd)


@pytest.mark.timeout(60)
def test_what_comes_out_of_a_fifo_is_no_value(tmp_path):
    store = LocalStore(str(tmp_path))
    with feeder(tmp_path / "k"):
        for read in (
            lambda: store.get("k"),
            lambda: list(store.get_many(["k"], Scratch())),
            lambda: store.get_range("k", 0, 4),
            lambda: list(store.get_ranges("k", [(0, 4)], Scratch())),
        ):
            with pytest.raises(zarrdask.errors.StoreError, match="expected a regular file"):
                read()


@pytest.mark.timeout(60)
def test_a_document_that_is_a_fifo_does_not_block(tmp_path):
    zarrdask.create_group(tmp_path / "g")
    os.unlink(tmp_path / "g" / "zarr.json")
    os.mkfifo(tmp_path / "g" / "zarr.json")
    with pytest.raises(zarrdask.errors.StoreError, match=r"zarr\.json: expected a regular file"):
        zarrdask.open(tmp_path / "g")


def test_a_file_in_the_place_of_a_directory_of_chunks_is_an_error(tmp_path):
    for at, (options, name) in enumerate(
        [
            ({}, "c"),
            ({}, "c/0"),
            ({"chunks": 1, "shards": 2}, "c/0"),
            ({"zarr_format": "v3-draft"}, "c0"),
        ]
    ):
        root = tmp_path / f"g{at}"
        z = zarrdask.create_array(root, "a", shape=(4, 4), dtype="i4", **({"chunks": 2} | options))
        place = os.path.dirname(file_of(z, (0, 0))[0]) if name != "c" else root / "a" / "c"
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(b"?")
        with pytest.raises(zarrdask.errors.StoreError, match="but found a file"):
            z[...]
        report = zarrdask.verify(root, scheduler="sync")
        assert not report.ok
        [problem] = report.problems
        assert (problem.kind, problem.path) == ("unreadable", "a")
        assert str(root / problem.key) == str(place)


def test_other_files_and_directories_are_no_obstacle(tmp_path):
    group = zarrdask.create_group(tmp_path / "g")
    z = group.create_array("a", shape=(4, 4), dtype="i4", chunks=2)
    z[:2] = 1
    (tmp_path / "g" / "a" / "notes").mkdir()
    (tmp_path / "g" / "a" / "c" / "README").touch()
    (tmp_path / "g" / "file").touch()
    (tmp_path / "g" / "folder").mkdir()
    assert z[...].sum() == 8
    report = zarrdask.verify(tmp_path / "g", scheduler="sync")
    assert report.ok
    assert {p.kind for p in report.problems} == {"extra"}
    assert "file" not in group
    assert "folder" not in group
    assert sorted(group) == ["a"]
    with pytest.raises(zarrdask.errors.NodeNotFoundError):
        group["file/deeper"]


def test_nested_arrays_of_old_writers_are_still_found(tmp_path, setting):
    z = zarrdask.create_array(
        tmp_path / "a",
        shape=(4, 4),
        dtype="i4",
        chunks=2,
        zarr_format=2,
        chunk_key_encoding={"name": "v2", "configuration": {"separator": "/"}},
    )
    z[...] = 1
    document = (tmp_path / "a" / ".zarray").read_text()
    [line] = [each for each in document.splitlines() if "dimension_separator" in each]
    (tmp_path / "a" / ".zarray").write_text(
        document.replace(f"{line}\n", "") if line.endswith(",") else document
    )
    setting({"zarrdask.v2-nested-legacy": True})
    assert zarrdask.open_array(tmp_path / "a")[...].sum() == 16


@pytest.mark.timeout(60)
def test_a_link_to_a_directory_around_it_is_not_followed_for_ever(tmp_path):
    z = zarrdask.create_array(tmp_path / "g", "a", shape=(4, 4), dtype="i4", chunks=2)
    z[...] = 1
    (tmp_path / "g" / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "g" / "a" / "c" / "self").symlink_to(".")
    assert z.nchunks_stored() == 4
    assert zarrdask.verify(tmp_path / "g", scheduler="sync").ok
    assert sorted(LocalStore(str(tmp_path / "g" / "a")).list_prefix("c/")) == [
        "c/0/0",
        "c/0/1",
        "c/1/0",
        "c/1/1",
    ]


def test_chunks_behind_a_file_are_not_copied_as_if_they_were_missing(tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=(4, 4), dtype="i4", chunks=2)
    z[2:] = 1
    (tmp_path / "a" / "c" / "0").touch()
    with pytest.raises(
        zarrdask.errors.StoreError, match="a file has the name of a directory of chunks"
    ):
        zarrdask.copy(z, tmp_path / "copy", scheduler="sync")
