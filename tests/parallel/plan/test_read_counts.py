"""The chunks that tasks decode, how often, and by how many requests."""

import numpy as np
import pytest

import zarrdask
from zarrdask.errors import SelectionError
from zarrdask.parallel.plan.read_counts import ReadCounts


def test_shards_are_read_by_an_index_and_chunks_or_as_a_whole():
    z = zarrdask.create_array({}, shape=(8, 8), dtype="u1", chunks=2, shards=4)
    z[...] = 1
    [reads] = zarrdask.plan_read(z, np.s_[:4, :6]).arrays
    # One shard is needed as a whole; of another one the index and two chunks.
    assert (reads.objects, reads.chunks, reads.requests) == (2, 6, 1 + 1 + 2)
    assert "6 in 2 shards, by 4 requests" in str(reads)


def test_chunks_of_different_lengths():
    z = zarrdask.create_array({}, shape=10, dtype="u1", chunks=((1, 2, 7),))
    z[...] = 1
    [reads] = zarrdask.plan_read(z, np.s_[2:4]).arrays
    assert (reads.chunks, reads.decoded, reads.needed) == (2, 9, 2)


def test_too_many_chunks_to_count():
    z = zarrdask.create_array({}, shape=2**40, dtype="u1", chunks=2**10)
    with pytest.raises(SelectionError, match="plan a smaller selection"):
        _ = zarrdask.plan_read(z).repeated


def test_a_chunk_that_very_many_tasks_read():
    metadata = zarrdask.create_array({}, shape=8, dtype="i1", chunks=8).metadata
    regions = ((slice(0, 1, 1),),) * 2**16
    reads = ReadCounts("here", metadata, metadata.grid.axes, metadata.grid.axes, regions)
    assert (reads.chunks, reads.repeated, reads.count_at((0,))) == (1, 1, 2**16)
