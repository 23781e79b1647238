"""Lengths by the names of dimensions, wherever chunks, shards or blocks of one array are given."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, SelectionError

NAMES = ("time", "lat")


def create(**options):
    options = {"shape": (10, 6), "dtype": "i4", "dimension_names": NAMES} | options
    return zarrdask.create_array({}, **options)


@for_each(
    ("chunks", "expected"),
    [
        ({"time": 3}, (3, 6)),
        ({"time": 3, "lat": -1}, (3, 6)),
        ({"lat": np.int64(2), 0: None}, (10, 2)),
        ({-1: 2}, (10, 2)),
        ({}, (10, 6)),
        ((None, 2), (10, 2)),
    ],
)
def test_chunks_of_a_new_array(chunks, expected):
    assert create(chunks=chunks).chunks == expected


def test_chunks_of_different_lengths_along_one_dimension():
    assert create(chunks={"time": (2, 5, 3)}).chunks == ((2, 5, 3), (6,))


def test_whole_shards_are_multiples_of_the_chunks():
    array = create(chunks={"time": 3, "lat": 4}, shards={"time": 6})
    assert (array.chunks, array.shards) == ((3, 4), (6, 8))
    assert create(chunks=(3, 4), shards=-1).shards == (12, 8)


def test_the_axes_of_a_subarray_type_are_whole():
    array = zarrdask.create_array(
        {}, shape=4, dtype=np.dtype(("i4", (3,))), chunks={"x": 2}, dimension_names=("x", "y")
    )
    assert array.chunks == (2, 3)


@for_each(
    ("chunks", "message"),
    [
        ({"lon": 2}, r"chunks.*no such axis.*'lon'.*\['time', 'lat'\]"),
        ({2: 2}, "chunks.*no such axis"),
        ({"time": 2, 0: 3}, "'time' and 0 are the same axis"),
    ],
)
def test_a_key_that_is_no_dimension_is_refused(chunks, message):
    with pytest.raises((SelectionError, MetadataError), match=message):
        create(chunks=chunks)


def test_a_written_array_has_the_lengths_of_its_blocks_along_other_dimensions():
    x = da.zeros((10, 6), chunks=(5, 3))
    for chunks in ({"time": 2}, (2, None)):
        store = {}
        zarrdask.to_zarr(x, store, chunks=chunks, dimension_names=NAMES)
        assert zarrdask.open_array(store).chunks == (2, 3)
        plan = zarrdask.plan_write(x, chunks=chunks, dimension_names=NAMES)
        assert plan.objects == 10
    store = {}
    zarrdask.to_zarr(x, store, shards={"time": 4}, chunks={"time": 2}, dimension_names=NAMES)
    array = zarrdask.open_array(store)
    assert (array.chunks, array.shards) == ((2, 3), (4, 3))
    with pytest.raises(SelectionError, match="'time'"):
        zarrdask.to_zarr(x, {}, chunks={"time": 2})


def test_blocks_that_are_read():
    array = create(chunks=(1, 3))
    assert zarrdask.from_zarr(array, chunks={"time": 4, "lat": -1}).chunksize == (4, 6)
    assert zarrdask.from_zarr(array, chunks={"time": None, 1: 3}).chunksize == (10, 3)
