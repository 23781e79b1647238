"""Chunks and shards of several shapes; one shape for all is tested with `plan_array`."""

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.grids.rectilinear import RectilinearGrid
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.metadata.array_options import Sizes, plan_grid


def plan(shape, **sizes):
    return plan_grid(shape, 4, Sizes(**sizes))


@for_each(
    ("chunks", "expected"),
    [
        (((2, 3), (4, 4, 1)), RectilinearGrid((5, 9), ((2, 3), (4, 4, 1)))),
        ([[2, 3], [4, 4, 1]], RectilinearGrid((5, 9), ((2, 3), (4, 4, 1)))),
        (((2, 3), 4), RectilinearGrid((5, 9), ((2, 3), 4))),
        (((2, 3), -1), RectilinearGrid((5, 9), ((2, 3), 9))),
        ((None, (1, 8)), RectilinearGrid((5, 9), (5, (1, 8)))),
        ((np.array([2, 3]), np.int64(4)), RectilinearGrid((5, 9), ((2, 3), 4))),
        (((2, 0, 3, 0), (0, 9)), RectilinearGrid((5, 9), ((2, 3), 9))),
        (((2, 30), 9), RectilinearGrid((5, 9), ((2, 30), 9))),
        (((2, 2, 1), (4, 4, 1)), RegularGrid((5, 9), (2, 4))),
        (((5,), (9,)), RegularGrid((5, 9), (5, 9))),
    ],
)
def test_chunks_may_be_lists_of_lengths(chunks, expected):
    assert plan((5, 9), chunks=chunks) == (expected, None)


def test_an_axis_of_length_zero_may_have_an_empty_list():
    assert plan((0, 9), chunks=((), (1, 8))) == (RectilinearGrid((0, 9), ((), (1, 8))), None)
    assert plan((0, 9), chunks=((0,), (1, 8))) == (RectilinearGrid((0, 9), ((), (1, 8))), None)
    assert plan((0,), chunks=2, shards=((),)) == (RegularGrid((0,), (2,)), (2,))


@for_each(
    "chunks",
    [
        ((2, 2), (9,)),
        ((2, 3),),
        ((2, 3), (9,), (1,)),
        ((2, 3), 0),
        ((2, -3), 9),
        ((2, 3.0), 9),
        ((2, 3), "auto"),
        ((2, "3"), 9),
        (((2,), 3), 9),
        {"x": 2, "y": 3},
    ],
)
def test_lists_that_do_not_fit_are_an_error(chunks):
    with pytest.raises(MetadataError):
        plan((5, 9), chunks=chunks)


def test_shards_may_be_lists_of_lengths():
    grid = RectilinearGrid((12, 9), ((4, 8), 9))
    assert plan((12, 9), chunks=(4, 3), shards=((4, 8), (9,))) == (grid, (4, 3))
    z = zarrdask.create_array({}, shape=12, dtype="i4", chunks=4, shards=((4, 8),))
    assert (z.chunks, z.shards, z.nchunks) == ((4,), ((4, 8),), 3)


def test_the_last_shard_hangs_over_to_hold_whole_chunks():
    grid = RectilinearGrid((13,), ((4, 12),))
    assert plan((13,), chunks=4, shards=((4, 9),)) == (grid, (4,))


def test_chunks_in_shards_have_one_shape():
    with pytest.raises(MetadataError, match="only shards may differ") as caught:
        plan((12,), chunks=((4, 8),), shards=12)
    assert caught.value.key == "chunks"


def test_a_chunk_that_does_not_divide_a_shard_is_an_error():
    with pytest.raises(MetadataError, match="divide"):
        zarrdask.create_array({}, shape=12, dtype="i4", chunks=4, shards=((4, 6, 4),))


def test_a_grid_may_be_given_as_a_document_or_itself():
    grid = RectilinearGrid((5,), ((2, 3),))
    assert plan((5,), grid=grid) == (grid, None)
    assert plan((5,), grid=grid.to_json()) == (grid, None)
    assert plan((5,), chunks=None, grid=grid) == (grid, None)
    z = zarrdask.create_array({}, shape=5, dtype="i4", grid=grid)
    assert z.metadata.grid == grid


@for_each(
    "sizes",
    [
        {"grid": RegularGrid((6,), (2,))},
        {"grid": 7},
        {"grid": "regular"},
        {"grid": RegularGrid((5,), (2,)), "chunks": 2},
        {"grid": RegularGrid((5,), (2,)), "chunks": np.array([2])},
        {"grid": RegularGrid((5,), (2,)), "shards": 2},
    ],
)
def test_what_is_no_grid_of_the_array_is_an_error(sizes):
    with pytest.raises(MetadataError):
        plan((5,), **sizes)


def test_only_v3_has_chunks_of_several_shapes():
    store = {"x": b"1"}
    with pytest.raises(UnsupportedError, match="the same shape"):
        zarrdask.create_array(store, shape=5, dtype="i4", chunks=((2, 3),), zarr_format=2)
    assert store == {"x": b"1"}
    z = zarrdask.create_array({}, shape=5, dtype="i4", chunks=((2, 2, 1),), zarr_format=2)
    assert z.chunks == (2,)


def test_sizes_as_text_are_limits():
    assert plan((1000, 1000), chunks="1 MB") == plan((1000, 1000), chunks="1000 kB")
    with dask.config.set({"zarrdask.chunk-size": 4000, "zarrdask.shard-size": 64000}):
        expected = plan((1000, 1000), chunks="auto", shards="auto")
    assert plan((1000, 1000), chunks="4 kB", shards="64 kB") == expected


@for_each("option", ["chunks", "shards"])
@for_each("text", ["lots", "stored", "-1 MB", "inf", "1e400"])
def test_text_that_is_no_size(option, text):
    with pytest.raises(MetadataError, match="1 MB") as caught:
        plan((5, 9), **{option: text})
    assert (caught.value.key, caught.value.found) == (option, text)


@for_each("length", [3, np.int8(3), np.array(3), [3], (np.uint64(3),), np.array([3]), {3}])
def test_lengths_are_integers_of_python_or_numpy(length):
    z = zarrdask.create_array({}, shape=length, dtype="i4", chunks=length, shards=length)
    assert (z.shape, z.chunks, z.shards) == ((3,), (3,), (3,))
    z.resize(length)


@for_each(
    "length",
    [
        *(np.timedelta64(3, "s"), np.array(3, "m8[s]"), np.array(3.0), 3.0, True, b"3", object()),
        *({"x": 3}, [np.timedelta64(3, "s")], np.array([3], "m8[s]"), [True], [b"3"], [3.0], [[]]),
    ],
)
def test_other_values_are_no_lengths(length):
    z = zarrdask.create_array({}, shape=6, dtype="i4")
    calls = [
        lambda: zarrdask.create_array({}, shape=length, dtype="i4"),
        lambda: z.resize(length),
        *([] if length is True else [lambda: plan((6,), chunks=length)]),
        lambda: plan((6,), chunks=1, shards=length),
    ]
    for call in calls:
        with pytest.raises(MetadataError):
            call()
