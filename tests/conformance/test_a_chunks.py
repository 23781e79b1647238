"""A.5: chunks of v2 and their keys."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import same, stored, v2

GRID = v2((10_000, 10_000), (1000, 1000), "|u1", 7)
#: A chunk of 1000 rows of 1000 columns that tells where each of its elements is.
ROWS, COLUMNS = np.divmod(np.arange(1_000_000), 1000)
CHUNK = ((3 * ROWS + 5 * COLUMNS) % 251).astype("u1").reshape(1000, 1000)


def keys(store):
    return sorted(key for key in store if not key.startswith(".z"))


# ----


@for_each(
    ("shape", "expected"),
    [
        ((), ["0"]),
        ((4,), ["0", "1", "2", "3"]),
        ((2, 3), ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]),
        ((1, 1, 2), ["0.0.0", "0.0.1"]),
    ],
)
def test_a35_keys_are_decimal_indices_joined_by_dots(shape, expected):
    store = {}
    z = zarrdask.create_array(store, shape=shape, dtype="u1", chunks=1, zarr_format=2)
    z[...] = 1
    assert keys(store) == expected
    store.clear()
    zarrdask.to_zarr(da.ones(shape, chunks=1), store, zarr_format=2)
    assert keys(store) == expected


def test_a35_indices_of_several_digits_have_no_zeros_before():
    store = stored(v2((2000, 30), (1, 10), "|u1"), {"1204.2": bytes(range(10))})
    assert zarrdask.open_array(store)[1204, 20:].tolist() == list(range(10))
    z = zarrdask.open_array(store, mode="r+")
    z[10, 0] = 1
    assert keys(store) == ["10.0", "1204.2"]


@for_each("key", ["02.4", "2/4", "2.4.0", "c.2.4", "2", "+2.4", "2.4 "])
def test_a35_other_keys_are_no_chunks(key):
    z = zarrdask.open_array(stored(GRID, {key: CHUNK.tobytes()}))
    assert z.nchunks_stored() == 0
    assert (z[2000:3000:100, 4000:5000:100] == 7).all()


def test_a35_the_chunk_of_an_array_without_dimensions_is_0():
    z = zarrdask.open_array(stored(v2((), (), "<i2"), {"0": b"\x05\x01"}))
    assert z[()] == 261


# ----


def test_a36_chunk_2_4_holds_rows_from_2000_and_columns_from_4000():
    z = zarrdask.open_array(stored(GRID, {"2.4": CHUNK.tobytes()}))
    same(z[2000:3000, 4000:5000], CHUNK)
    assert z[1999, 4500] == z[3000, 4500] == z[2500, 3999] == z[2500, 5000] == 7
    x = zarrdask.from_zarr(z, chunks="stored")
    assert x.numblocks == (10, 10)
    same(x.blocks[2, 4].compute(scheduler="sync"), CHUNK)


def test_a36_what_is_written_to_these_rows_and_columns_is_chunk_2_4():
    store = stored(GRID)
    zarrdask.open_array(store, mode="r+")[2000:3000, 4000:5000] = CHUNK
    assert keys(store) == ["2.4"]
    assert bytes(store["2.4"]) == CHUNK.tobytes()


# ----


@for_each(
    ("dtype", "fill", "value"),
    [("<i4", -3, -3), ("<f8", "NaN", np.nan), ("|b1", True, True), ("<U2", "ab", "ab")],
)
@for_each("separator", [".", "/"])
def test_a37_absent_chunks_read_as_the_fill_value(dtype, fill, value, separator):
    z = zarrdask.open_array(stored(v2((5, 7), (2, 3), dtype, fill, dimension_separator=separator)))
    expected = np.full((5, 7), value, dtype)
    same(z[...], expected)
    same(z[3:, 1::2], expected[3:, 1::2])
    same(zarrdask.from_zarr(z).compute(scheduler="sync"), expected)


def test_a37_chunks_that_are_there_are_read_beside_absent_ones():
    z = zarrdask.open_array(stored(v2((6,), (2,), "|u1", 9), {"1": b"\1\2"}))
    assert z[...].tolist() == [9, 9, 1, 2, 9, 9]


# ----


def test_a38_chunks_at_the_edge_are_stored_whole_and_filled_up():
    store = {}
    z = zarrdask.create_array(
        store, shape=(3, 5), dtype="u1", chunks=(2, 4), fill_value=8, zarr_format=2, compressors=[]
    )
    z[...] = np.arange(15).reshape(3, 5)
    assert {key: bytes(store[key]) for key in keys(store)} == {
        "0.0": bytes([0, 1, 2, 3, 5, 6, 7, 8]),
        "0.1": bytes([4, 8, 8, 8, 9, 8, 8, 8]),
        "1.0": bytes([10, 11, 12, 13, 8, 8, 8, 8]),
        "1.1": bytes([14, 8, 8, 8, 8, 8, 8, 8]),
    }


def test_a38_what_is_stored_outside_the_array_never_shows():
    store = stored(v2((3,), (2,), "|u1", 5), {"0": b"\1\2", "1": b"\3\xee"})
    z = zarrdask.open_array(store, mode="r+")
    assert z[...].tolist() == [1, 2, 3]
    assert z[-1] == 3
    assert z.blocks[1].tolist() == [3]
    assert zarrdask.from_zarr(z, chunks="stored").compute(scheduler="sync").tolist() == [1, 2, 3]


def test_a38_what_a_shrinking_array_leaves_outside_does_not_come_back():
    store = {}
    z = zarrdask.create_array(store, shape=4, dtype="u1", chunks=4, fill_value=5, zarr_format=2)
    z[...] = [1, 2, 3, 4]
    z.resize(3)
    z.resize(6)
    assert z[...].tolist() == [1, 2, 3, 5, 5, 5]


# ----


@for_each("shape", [(0,), (0, 4), (4, 0), (0, 0, 0)])
def test_a42_a_dimension_of_length_zero_has_no_chunks(shape):
    store = {}
    z = zarrdask.create_array(store, shape=shape, dtype="i4", chunks=2, zarr_format=2)
    z[...] = 1
    assert keys(store) == []
    z = zarrdask.open_array(store)
    assert (z.nchunks, z.nchunks_stored()) == (0, 0)
    same(z[...], np.empty(shape, "i4"))
    same(zarrdask.from_zarr(z).compute(scheduler="sync"), np.empty(shape, "i4"))
    zarrdask.to_zarr(da.ones(shape, dtype="i4"), store, zarr_format=2, overwrite=True)
    assert keys(store) == []


@pytest.mark.parametrize("chunks", [[0], [3]])
def test_a42_its_chunk_length_may_be_anything(chunks):
    z = zarrdask.open_array(stored(v2((0,), chunks, "<i4")))
    same(z[...], np.empty(0, "i4"))
