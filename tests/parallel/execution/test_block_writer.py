"""What tasks carry to write the blocks of a Dask array."""

import pickle

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.block_log import BlockLog
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import StoreError
from zarrdask.parallel.execution.block_writer import BlockWriter
from zarrdask.runtime.in_flight import Requests
from zarrdask.storage.memory import MemoryStore


def made(store=None):
    return zarrdask.create_array(store or {}, shape=(6, 8), dtype="i4", chunks=2, overwrite=True)


def writer_of(z, region=np.s_[2:6:1, 0:8:1], name="a", **options):
    options = {"empty": False, "beyond": "keep"} | options
    return BlockWriter(ArrayRegion(chunks_of(z), region), name=name, **options)


BLOCK = np.s_[0:2, 2:8]  # as Dask names the slices of a block: without a step


@for_each("empty, value, stored", [(False, 1, 3), (False, 0, 0), (True, 0, 3)])
def test_a_block_is_written_at_its_place_in_the_region(tmp_path, empty, value, stored):
    z = made(str(tmp_path))
    writer = pickle.loads(pickle.dumps(writer_of(z, empty=empty)))
    assert writer.write(np.full((2, 6), value, "f8"), BLOCK) == stored
    expected = np.zeros(z.shape, "i4")
    expected[2:4, 2:8] = value
    np.testing.assert_array_equal(z[...], expected)
    assert z.nchunks_stored() == stored


def test_a_writer_uses_several_threads_only_where_it_was_made():
    writer = writer_of(made(), threads=4)
    assert (writer.threads, pickle.loads(pickle.dumps(writer)).threads) == (4, 1)


def test_several_blocks_are_written_with_common_requests():
    z = made(MemoryStore())
    writer = writer_of(z)
    requests = Requests()
    with writer.joining(requests), requests:
        for column in range(0, 8, 2):
            writer.write(np.ones((4, 2), "i4"), np.s_[0:4, column : column + 2])
    assert z[...].sum() == 32


def test_no_block_is_written_after_an_abort():
    z = made()
    writer, other = writer_of(z, name="one"), writer_of(z, name="two")
    writer.abort()
    with pytest.raises(StoreError, match="write was aborted"):
        writer.write(np.ones((2, 6), "i4"), BLOCK)
    assert other.write(np.ones((2, 6), "i4"), BLOCK) == 3


def test_blocks_are_recorded_after_they_are_stored():
    log = BlockLog(MemoryStore(), "blocks/")
    writer, requests = writer_of(made(), log=log), Requests()
    writer.write(np.ones((2, 6), "i4"), BLOCK)
    assert log.merge() == {((0, 2), (2, 8))}
    with writer.joining(requests), requests:
        writer.write(np.ones((2, 2), "i4"), np.s_[2:4, 0:2])
        assert len(log.merge()) == 1
        writer.write(np.ones((2, 2), "i4"), np.s_[2:4, 2:4])
    assert log.merge() == {((0, 2), (2, 8)), ((2, 4), (0, 2)), ((2, 4), (2, 4))}
