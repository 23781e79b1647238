"""to_zarr: what is stored, by how many tasks, and what comes back."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import covering, for_each
from tests.parallel.graph.writes import WritesStore
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.parallel.graph.writing.tasks import write_blocks

VALUES = np.arange(1, 61 * 45 + 1, dtype="f4").reshape(61, 45)


LAYOUTS = {
    "chunks": {"chunks": (10, 7)},
    "shards": {"chunks": (5, 3), "shards": (20, 12)},
    "F shards": {"chunks": (5, 3), "shards": (20, 12), "order": "F"},
    "v2": {"chunks": (10, 7), "zarr_format": 2, "order": "F"},
    "one": {"chunks": -1},
    "uneven": {"chunks": ((1, 10, 20, 30), (44, 1))},
    "uneven shards": {"chunks": (5, 3), "shards": ((5, 20, 40), (12, 33)), "order": "F"},
}


@covering(
    strength=1,
    layout=LAYOUTS,
    blocks=[(10, 7), (20, 12), (13, 11), -1, ((1, 60), (44, 1)), 1000, (20, 45)],
)
def test_what_is_written_is_read_whatever_the_blocks(layout, blocks):
    store = WritesStore()
    x = da.from_array(VALUES, chunks=blocks)
    assert zarrdask.to_zarr(x, store, **layout) is None
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], VALUES)
    assert max(n for key, n in store.writes.items() if "zarr" not in key) == 1


pieces = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(st.lists(st.tuples(pieces, st.integers(1, 7), st.integers(1, 3)), min_size=1, max_size=3))
def test_every_stored_object_has_one_writer(axes):
    blocks = tuple(tuple(sizes) for sizes, _, _ in axes)
    chunks = tuple(c for _, c, _ in axes)
    shards = tuple(c * m for _, c, m in axes)
    shape = tuple(map(sum, blocks))
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    store = WritesStore()
    zarrdask.to_zarr(
        da.from_array(values, chunks=blocks), store, chunks=chunks, shards=shards, compressors=()
    )
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], values)
    assert max(store.writes.values()) == 1


@given(
    st.lists(
        st.tuples(pieces, st.lists(st.integers(1, 6), min_size=1)).map(tuple),
        min_size=1,
        max_size=3,
    )
)
def test_every_stored_object_of_an_uneven_grid_has_one_writer(axes):
    blocks = tuple(tuple(sizes) for sizes, _ in axes)
    shape = tuple(map(sum, blocks))
    # The last chunk reaches the end of the axis at least.
    chunks = tuple((*lengths, size) for size, (_, lengths) in zip(shape, axes, strict=True))
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    store = WritesStore()
    zarrdask.to_zarr(da.from_array(values, chunks=blocks), store, chunks=chunks, compressors=())
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], values)
    assert max(store.writes.values()) == 1


@given(st.lists(pieces, min_size=1, max_size=3).map(lambda axes: tuple(map(tuple, axes))))
def test_a_rectilinear_grid_takes_the_blocks_as_they_are(blocks):
    shape = tuple(map(sum, blocks))
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    x = da.from_array(values, chunks=blocks)
    store = WritesStore()
    zarrdask.to_zarr(x, store, grid="rectilinear", compressors=())
    assert max(store.writes.values()) == 1
    found = zarrdask.from_zarr(store, chunks="stored")
    assert found.chunks == blocks
    np.testing.assert_array_equal(found.compute(), values)
    receipts, same, *_ = write_blocks(x, ArrayRegion(chunks_of(zarrdask.open_array(store))))
    assert same == blocks
    assert not any("rechunk" in name for name in receipts.dask.layers)


def test_the_grid_of_a_new_array():
    x = da.from_array(VALUES, chunks=((1, 20, 40), (44, 1)))
    grid = {"name": "regular", "configuration": {"chunk_shape": [30, 30]}}
    for options, chunks in (
        ({}, (40, 44)),
        ({"grid": "regular"}, (40, 44)),
        ({"grid": "rectilinear"}, ((1, 20, 40), (44, 1))),
        ({"grid": grid}, (30, 30)),
        ({"chunks": ((30, 31), 45)}, ((30, 31), (45,))),
        ({"chunks": (10, 5), "shards": ((20, 41), (45,))}, (10, 5)),
    ):
        store = {}
        zarrdask.to_zarr(x, store, **options)
        z = zarrdask.open_array(store)
        assert z.chunks == chunks
        np.testing.assert_array_equal(z[...], VALUES)


def test_a_grid_that_can_not_be_is_an_error_and_writes_nothing():
    x = da.from_array(VALUES, chunks=((1, 60), (44, 1)))
    store = {}
    z = zarrdask.create_array({}, shape=VALUES.shape, dtype="f4")
    for target, options in (
        (store, {"grid": "rectilinear", "chunks": 5}),
        (store, {"grid": "rectilinear", "shards": (60, 44)}),
        (store, {"grid": "rectilinear", "zarr_format": 2}),
        (store, {"grid": "hexagonal"}),
        (z, {"grid": "rectilinear"}),
    ):
        with pytest.raises(zarrdask.ZarrdaskError):
            zarrdask.to_zarr(x, target, **options)
    assert store == {}
    assert z.nchunks_stored() == 0


def test_empty_blocks_are_no_chunks():
    store = {}
    x = da.from_array(np.arange(7), chunks=((2, 0, 5, 0),))
    zarrdask.to_zarr(x, store, grid="rectilinear")
    z = zarrdask.open_array(store)
    assert z.chunks == ((2, 5),)
    assert z[...].tolist() == list(range(7))


def test_stored_chunks_follow_the_blocks():
    store = {}
    zarrdask.to_zarr(da.from_array(VALUES, chunks=(20, 15)), store)
    z = zarrdask.open_array(store)
    assert z.chunks == (20, 15)
    assert z.dtype == "f4"


def test_aligned_blocks_get_no_extra_task():
    z = zarrdask.create_array({}, shape=VALUES.shape, dtype="f4", chunks=(10, 15))
    x = da.from_array(VALUES, chunks=(20, 15))
    receipts, blocks, *_ = write_blocks(x, ArrayRegion(chunks_of(z)))
    assert blocks == x.chunks
    assert not any("rechunk" in name for name in receipts.dask.layers)
    unaligned, *_ = write_blocks(x.rechunk((15, 15)), ArrayRegion(chunks_of(z)))
    assert any("rechunk" in name for name in unaligned.dask.layers)
    part, blocks, *_ = write_blocks(x[:25], ArrayRegion(chunks_of(z), np.s_[20:45:1, 0:45:1]))
    assert blocks == ((20, 5), (15, 15, 15))
    assert not any("rechunk" in name for name in part.dask.layers)


def test_receipts_are_small_and_count_units():
    z = zarrdask.create_array({}, shape=VALUES.shape, dtype="f4", chunks=(10, 15), fill_value=0)
    x = da.from_array(VALUES, chunks=(20, 15))
    receipts, *_ = write_blocks(x, ArrayRegion(chunks_of(z)))
    found = receipts.compute()
    assert found.shape == (4, 3)
    assert found.sum() == 21


@covering(
    strength=1,
    layout=LAYOUTS,
    region=[np.s_[3:40, 5:45], np.s_[20:], np.s_[:, 7:14], np.s_[60:61, 44:]],
)
def test_a_region_is_written_and_the_rest_stays(layout, region):
    store = WritesStore()
    z = zarrdask.create_array(store, shape=VALUES.shape, dtype="f4", **layout)
    z[...] = -VALUES
    store.writes.clear()
    new = VALUES[region]
    zarrdask.to_zarr(da.from_array(new, chunks=(8, 6)), store, region=region)
    expected = -VALUES
    expected[region] = new
    np.testing.assert_array_equal(z[...], expected)
    assert max(store.writes.values()) == 1


@pytest.mark.parametrize("compute", [True, False])
def test_the_stored_array_is_returned(compute):
    store = {}
    x = da.from_array(VALUES, chunks=(13, 11))
    y = zarrdask.to_zarr(x, store, chunks=(10, 7), dtype="f8", return_stored=True, compute=compute)
    assert isinstance(y, da.Array)
    assert (len(store) > 1) is compute
    assert y.dtype == "f8"
    np.testing.assert_array_equal(y.compute(), VALUES)
    assert len(store) > 1


def test_units_that_hold_only_the_fill_value_are_not_stored(setting):
    values = np.zeros((6, 6), "f4")
    values[0, 0] = 1
    store = {}
    zarrdask.to_zarr(da.from_array(values, chunks=3), store)
    assert sorted(store) == ["c/0/0", "zarr.json"]
    setting({"zarrdask.write-empty-chunks": True})
    zarrdask.to_zarr(da.from_array(values, chunks=3), store, overwrite=True)
    assert len(store) == 5


def test_a_type_that_the_format_lacks_is_an_error_before_anything_is_written():
    store = {}
    with pytest.raises(NotImplementedError, match="zarr_format=2"):
        zarrdask.to_zarr(da.zeros(1, dtype=[("several", "i4", (2,))]), store)
    assert store == {}


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_odd_shapes(shape):
    store = {}
    values = np.full(shape, 2.5)
    zarrdask.to_zarr(da.from_array(values, chunks=-1), store)
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], values)


def test_numpy_arrays_and_groups_are_taken():
    group = zarrdask.create_group({})
    zarrdask.to_zarr(np.arange(5), group, "a")
    assert zarrdask.from_zarr(group, "a").compute().tolist() == [0, 1, 2, 3, 4]
    assert zarrdask.open_array(group, "a").shape == (5,)


NAMED = {"shape": (10, 6), "dtype": "f8", "chunks": 4, "dimension_names": ["time", "x"]}


@for_each(
    ("region", "index"),
    [
        ({"time": slice(2, 7)}, np.s_[2:7]),
        ({"x": slice(1, 3), "time": slice(None)}, np.s_[:, 1:3]),
        ({}, np.s_[:]),
        (np.s_[..., 2:5], np.s_[:, 2:5]),
        (np.s_[1:3, ...], np.s_[1:3]),
        (np.s_[...], np.s_[:]),
        (slice(2, 4), np.s_[2:4]),
        (np.s_[-3:], np.s_[7:10]),
    ],
)
def test_regions_are_slices_or_names_of_dimensions(region, index):
    z = zarrdask.create_array({}, **NAMED)
    expected = np.zeros(z.shape)
    expected[index] = np.arange(1, 1 + expected[index].size).reshape(expected[index].shape)
    zarrdask.to_zarr(da.from_array(expected[index], chunks=3), z.store, region=region)
    np.testing.assert_array_equal(z[...], expected)


@for_each(
    ("region", "message"),
    [
        (
            {"y": slice(2)},
            r"region: unknown name of an axis; found 'y'; expected one of \['time'",
        ),
        ({"time": slice(0, 10, 2)}, "region: .* without a step"),
        ({"time": 3}, "region: .* without a step"),
        ({"time": [1, 2]}, "region: "),
        (np.s_[::2], "region: .* without a step"),
        (np.s_[..., ...], "region: .*ellipsis"),
        (np.s_[:, :, :], "region: too many"),
        (np.s_[None, :], "region: .* without a step"),
        ("x", "region: only integers, slices"),
        ({"time": slice(0, 4)}, r"region: the array does not fit .*found \(10, 6\)"),
    ],
)
def test_other_regions_are_errors_that_say_so(region, message):
    z = zarrdask.create_array({}, **NAMED)
    with pytest.raises(zarrdask.errors.SelectionError, match=message):
        zarrdask.to_zarr(da.ones((10, 6)), z, region=region)
    assert z.nchunks_stored() == 0


@for_each(
    "region",
    ["auto", {"time": "auto"}, {"x": slice(3), "time": "auto"}, ("auto", slice(3))],
)
@for_each(
    "verb",
    [
        lambda x, z, region: zarrdask.to_zarr(x, z, region=region),
        lambda x, z, region: zarrdask.to_zarr(x, z.store, region=region, compute=False),
        lambda x, z, region: zarrdask.to_zarr([(z, x)], region=region),
        lambda x, z, region: zarrdask.plan_write(x, z, region=region),
    ],
)
def test_no_place_is_found_by_coordinates(region, verb):
    z = zarrdask.create_array({}, **NAMED)
    with pytest.raises(zarrdask.errors.SelectionError, match="no coordinates") as error:
        verb(da.ones((10, 6)), z, region)
    assert error.value.key == "region"
    assert error.value.found == region
    assert error.value.expected.startswith("slices")
    assert z.nchunks_stored() == 0


def test_names_of_dimensions_that_there_are_not():
    z = zarrdask.create_array({}, shape=4, dtype="f8")
    with pytest.raises(zarrdask.errors.SelectionError, match="the axes have no names"):
        zarrdask.to_zarr(da.ones(4), z, region={"x": slice(4)})
    z = zarrdask.create_array({}, shape=(4, 4), dtype="f8", dimension_names=["x", "x"])
    with pytest.raises(zarrdask.errors.SelectionError, match="several axes"):
        zarrdask.to_zarr(da.ones((4, 4)), z, region={"x": slice(4)})


@for_each(
    ("dtype", "fill", "other"),
    [
        ("f8", np.nan, 0.0),
        ("f8", 0.0, -0.0),
        ("f8", -0.0, 0.0),
        ("c16", complex(np.nan, 0), complex(0, np.nan)),
        ("i4", 7, 0),
        ("M8[s]", np.datetime64("NaT", "s"), np.datetime64(0, "s")),
    ],
)
@for_each("layout", [{"chunks": 3}, {"chunks": 1, "shards": 3}])
@for_each("part", [False, True])
def test_only_units_of_the_fill_value_bit_for_bit_are_not_stored(dtype, fill, other, layout, part):
    zarr_format = 2 if dtype == "M8[s]" else 3
    if zarr_format == 2:
        layout = {"chunks": 3}
    z = zarrdask.create_array(
        {}, shape=7, dtype=dtype, fill_value=fill, zarr_format=zarr_format, **layout
    )
    values = np.full(7, fill, dtype)
    values[1] = other
    zarrdask.to_zarr(da.from_array(values, chunks=4), z)
    assert [k for k in z.store.list() if "zarr" not in k] == ["0" if zarr_format == 2 else "c/0"]
    assert z[...].tobytes() == values.tobytes()
    # What was stored is erased again, also where only a part is written.
    region = np.s_[1:2] if part else np.s_[:]
    zarrdask.to_zarr(da.from_array(np.full(7, fill, dtype)[region], chunks=4), z, region=region)
    assert [k for k in z.store.list() if "zarr" not in k] == []
    assert z[...].tobytes() == np.full(7, fill, dtype).tobytes()
