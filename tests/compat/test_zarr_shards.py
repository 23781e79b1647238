"""Whole inner chunks of local shards."""

import os

import dask
import numpy as np
import pytest

import zarrdask
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.compat.zarr_shards import InnerChunks
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard
from zarrdask.formats.indexing.projection import project

VALUES = np.arange(64.0).reshape(8, 8)


@pytest.fixture
def stored(tmp_path):
    array = zarrdask.create_array(tmp_path, shape=(8, 8), chunks=(2, 2), shards=(4, 8), dtype="f8")
    array[:4] = VALUES[:4]
    # Old enough for a change to be noticed.
    os.utime(tmp_path / "c/0/0", ns=(10**18 + 1, 10**18 + 1))
    return array


@pytest.fixture
def indexes(monkeypatch):
    """The shards whose indexes were read."""
    read, original = [], Shard.read_index

    def counted(self, value):
        read.append(value)
        return original(self, value)

    monkeypatch.setattr(Shard, "read_index", counted)
    return read


def chunks_of(array):
    return StoredChunks(array.store, "", array.metadata)


def read(inner, *region):
    """Return the elements, or None if the caller has to read them."""
    region = tuple(slice(start, stop, 1) for start, stop in region)
    out = np.zeros([pick.stop - pick.start for pick in region])
    left = []
    projection = project(region, inner._chunks.metadata.grid.axes)
    inner.read(projection, out, lambda: left.append(True))
    return None if left else out


def test_whole_inner_chunks_are_read_with_one_read_of_the_index(stored, indexes, monkeypatch):
    monkeypatch.setattr("zarrdask.storage.local.open_file._is_past", lambda changed: True)
    inner = InnerChunks(chunks_of(stored))
    for y in (0, 2):
        for x in (0, 2, 4, 6):
            np.testing.assert_array_equal(
                read(inner, (y, y + 2), (x, x + 2)), VALUES[y : y + 2, x : x + 2]
            )
    assert len(indexes) == 1


def test_a_replaced_shard_has_another_index(stored, tmp_path, monkeypatch):
    monkeypatch.setattr("zarrdask.storage.local.open_file._is_past", lambda changed: True)
    inner = InnerChunks(chunks_of(stored))
    assert read(inner, (0, 2), (2, 4))[0, 0] == 2
    stored[:2, :4] = -VALUES[:2, :4]
    assert read(inner, (0, 2), (2, 4))[0, 0] == -2


def test_the_index_of_a_new_file_is_not_cached(stored, indexes, monkeypatch):
    monkeypatch.setattr("zarrdask.storage.local.open_file._is_past", lambda changed: False)
    inner = InnerChunks(chunks_of(stored))
    for _ in range(2):
        assert read(inner, (0, 2), (2, 4))[0, 0] == 2
    assert len(indexes) == 2


def test_the_indexes_of_the_last_shards_are_cached(stored, monkeypatch):
    monkeypatch.setattr("zarrdask.storage.local.open_file._is_past", lambda changed: True)
    monkeypatch.setattr("zarrdask.compat.zarr_shards._MAX_INDEXES", 1)
    stored[4:] = VALUES[4:]
    inner = InnerChunks(chunks_of(stored))
    for y in (0, 4, 0):
        assert read(inner, (y, y + 2), (0, 2))[0, 0] == VALUES[y, 0]
        assert len(inner._indexes) == 1


def test_other_requests_are_left_to_the_caller(stored, tmp_path):
    inner = InnerChunks(chunks_of(stored))
    assert read(inner, (0, 1), (0, 2)) is None
    assert read(inner, (1, 3), (0, 2)) is None
    assert read(inner, (0, 4), (0, 8)) is None
    assert read(inner, (2, 6), (0, 2)) is None
    # A shard that is missing.
    assert read(inner, (4, 6), (0, 2)) is None
    (tmp_path / "c/0/0").write_bytes(b"damaged")
    assert read(inner, (0, 2), (0, 2)) is None
    with dask.config.set({"zarrdask.cache-size": "1 MiB"}):
        assert read(inner, (0, 2), (0, 2)) is None


def test_arrays_without_shards_are_left_to_the_caller(tmp_path):
    array = zarrdask.create_array(tmp_path, shape=(8, 8), chunks=(2, 2), dtype="f8")
    array[:] = VALUES
    assert read(InnerChunks(chunks_of(array)), (0, 2), (0, 2)) is None
