"""Finished writes are remembered until what they stored has changed."""

import os

import pytest

import zarrdask
from zarrdask.arrays.hierarchy.changes import finished
from zarrdask.arrays.nodes.array import chunks_of

PLAN = {"source": "1", "target": "2"}


@pytest.fixture
def directory(tmp_path, setting):
    """Return the directory of lock files."""
    found = tmp_path / "locks"
    setting({"zarrdask.lock-directory": str(found)})
    return found


@pytest.fixture
def array(tmp_path, directory):
    array = zarrdask.create_array(tmp_path / "a.zarr", shape=4, dtype="i4", chunks=2)
    array[...] = 1
    return array


def test_the_same_write_of_the_same_chunks_is_finished(array):
    chunks = chunks_of(array)
    assert not finished.is_finished(chunks, PLAN)
    finished.remember_finished(chunks, PLAN)
    assert finished.is_finished(chunks, PLAN)
    assert finished.is_finished(chunks, dict(reversed(PLAN.items())))
    assert not finished.is_finished(chunks, PLAN | {"source": "3"})


def test_a_write_is_not_finished_after_a_chunk_was_changed(array):
    chunks = chunks_of(array)
    finished.remember_finished(chunks, PLAN)
    array[0] = 2
    assert not finished.is_finished(chunks, PLAN)


def test_a_damaged_file_is_none(array, directory):
    finished.remember_finished(chunks_of(array), PLAN)
    for name in os.listdir(directory):
        if name.startswith("finished-"):
            (directory / name).write_bytes(b"{")
    assert not finished.is_finished(chunks_of(array), PLAN)


def test_only_the_latest_are_kept(array, directory, monkeypatch):
    monkeypatch.setattr(finished, "_FILES", 2)
    for number in range(4):
        finished.remember_finished(chunks_of(array), PLAN | {"number": str(number)})
    assert sum(name.startswith("finished-") for name in os.listdir(directory)) == 2
