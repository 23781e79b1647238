"""Locks of writers in other processes, which may be on other machines."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import StoreError
from zarrdask.parallel.execution.block_writer import BlockWriter

WHOLE, PART = np.s_[2:4, 0:8], np.s_[0:1, 0:8]


@pytest.fixture
def z(tmp_path):
    return zarrdask.create_array(tmp_path / "z", shape=(6, 8), dtype="i4", chunks=2)


def test_where_locks_are_not_those_of_the_call_only_whole_chunks_are_written(z, tmp_path):
    region = ArrayRegion(chunks_of(z), np.s_[0:6:1, 0:8:1])
    writer = BlockWriter(region, empty=False, name="one", beyond="keep")
    data = pickle.dumps(writer)
    writer.write(np.ones((1, 8), "i4"), PART)
    pickle.loads(data).write(np.ones((1, 8), "i4"), np.s_[1:2, 0:8])
    with dask.config.set({"zarrdask.lock-directory": tmp_path / "elsewhere"}):
        other = pickle.loads(data)
        other.write(np.ones((2, 8), "i4"), WHOLE)
        with pytest.raises(StoreError, match="on several machines can't exclude each other"):
            other.write(np.full((1, 8), 2, "i4"), PART)
    assert z[:, 0].tolist() == [1, 1, 1, 1, 0, 0]


def test_an_append_that_is_computed_where_locks_are_others_is_refused(z, tmp_path):
    later = zarrdask.append(da.ones((2, 8), dtype="i4"), z, compute=False)
    with (
        dask.config.set({"zarrdask.lock-directory": tmp_path / "elsewhere"}),
        pytest.raises(StoreError, match="whole chunks or shards only"),
    ):
        later.compute(scheduler="sync")
    assert zarrdask.open_array(tmp_path / "z").shape == (6, 8)
    later.compute(scheduler="sync")
    assert zarrdask.open_array(tmp_path / "z").shape == (8, 8)
