"""The blocks of a read, for chunks in any form that Dask accepts."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import MetadataError
from zarrdask.parallel.graph.blocks import block_bytes, normal_blocks, region_blocks

PREVIOUS = ((4, 4, 2), (6,))


def region(*picks, **options):
    options = {"shape": (10, 12), "dtype": "i4", "chunks": (4, 5)} | options
    return ArrayRegion(chunks_of(zarrdask.create_array({}, **options)), *picks)


@for_each(
    "chunks, expected",
    [
        ((5, 3), ((5, 5), (3, 3))),
        ({"x": 2}, ((10,), (2, 2, 2))),
        ({0: -1}, ((10,), (6,))),
        (-1, ((10,), (6,))),
        (((3, 7), 6), ((3, 7), (6,))),
        ("24 B", ((2, 2, 2, 2, 2), (3, 3))),
    ],
)
def test_chunks_are_lengths_along_each_axis(chunks, expected):
    blocks = normal_blocks(chunks, (10, 6), np.dtype("i4"), ("t", "x"), PREVIOUS)
    assert blocks == expected


@for_each("chunks", ["7", ((3, 3), 6), 0, "large", ((11, -1), 6)])
def test_other_values_are_errors(chunks):
    with pytest.raises(MetadataError) as caught:
        normal_blocks(chunks, (10, 6), np.dtype("i4"), None, PREVIOUS)
    assert caught.value.key == "chunks"


def test_stored_blocks_are_the_chunks_that_a_region_overlaps():
    assert region_blocks(region(), "stored") == ((4, 4, 2), (5, 5, 2))
    part = region((slice(3, 9, 1), slice(0, 12, 1)))
    assert region_blocks(part, "stored") == ((1, 4, 1), (5, 5, 2))


def test_automatic_blocks_join_whole_chunks(setting):
    setting({"zarrdask.block-size": 4 * 4 * 12})
    assert region_blocks(region(), "auto") == ((8, 2), (5, 5, 2))
    setting({"zarrdask.block-size": 2**20})
    assert region_blocks(region(), "auto") == ((10,), (12,))
    assert block_bytes(4) == 4 * block_bytes(1)


def test_a_large_shard_is_divided_along_its_chunks(setting):
    setting({"zarrdask.block-size": 64})
    sharded = region(shape=(16, 16), chunks=(2, 2), shards=(16, 16))
    lengths = {length for axis in region_blocks(sharded, "auto") for length in axis}
    assert all(length % 2 == 0 and length < 16 for length in lengths)
