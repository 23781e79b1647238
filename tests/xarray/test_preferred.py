"""Blocks of datasets that are opened by xarray's own functions and its own chunk manager."""

import pickle
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.covering import for_each
from tests.parallel.graph.counting import CountingStore
from tests.storage.latency import LatencyStore
from tests.xarray.samples import DAYS, temperature, write_sample
from zarrdask.formats.grids.axis import axis_of
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import (
    ZarrdaskBackendEntrypoint,
    ZarrdaskManager,
    open_mfdataset,
    open_zarr,
)
from zarrdask.xarray.preferred import axis_lengths


@pytest.fixture
def small_blocks(setting):
    """Blocks of 96 decoded elements: two stored chunks of the sample."""
    setting({"zarrdask.block-size": 96 * 8})


def open_dataset(place, **options):
    return xr.open_dataset(place, engine=ZarrdaskBackendEntrypoint, **options)


@pytest.mark.parametrize(
    ("chunks", "blocks"),
    [
        ({}, ((4, 4, 4), (3, 3), (8,))),
        ({"time": 2}, ((2,) * 6, (3, 3), (8,))),
        ({"time": 6}, ((6, 6), (3, 3), (8,))),
        ({"y": -1}, ((4, 4, 4), (6,), (8,))),
        (-1, ((12,), (6,), (8,))),
        ("auto", ((12,), (6,), (8,))),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_stored_chunks_are_joined_where_the_user_gives_no_length(tmp_path, chunks, blocks):
    write_sample(tmp_path, chunks=(2, 3, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = open_dataset(tmp_path, chunks=chunks)
    assert ds.t.chunks == blocks
    assert ds.t.encoding["chunks"] == (2, 3, 8)
    assert ds.t.encoding["preferred_chunks"] == {"time": 2, "y": 3, "x": 8}
    np.testing.assert_array_equal(ds.t, temperature())


@pytest.mark.usefixtures("small_blocks")
def test_given_lengths_that_cut_stored_chunks_are_warned_of(tmp_path):
    write_sample(tmp_path, chunks=(2, 3, 8))
    with pytest.warns(UserWarning, match=r"separate the stored chunks along dimension .time."):
        assert open_dataset(tmp_path, chunks={"time": 3}).t.chunks[0] == (3,) * 4


def test_auto_cuts_no_stored_chunk_if_dasks_chunk_size_is_small(tmp_path):
    write_sample(tmp_path, chunks=(1, 3, 8))
    with dask.config.set({"array.chunk-size": 5 * 24 * 8}), warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = open_dataset(tmp_path, chunks="auto")
    np.testing.assert_array_equal(ds.t, temperature())


def test_blocks_are_larger_in_a_store_with_latency(tmp_path, setting):
    write_sample(tmp_path, chunks=(2, 3, 8))
    setting({"zarrdask.block-size": 48 * 8})
    far = LatencyStore(LocalStore(str(tmp_path)), seconds=0)
    assert open_dataset(far, chunks={}).t.chunks == ((8, 4), (3, 3), (8,))


def test_whole_shards_are_joined(setting):
    store = {}
    options = {"dtype": "i4", "chunks": (2, 2), "shards": (4, 8), "dimension_names": ["y", "x"]}
    zarrdask.create_array(store, "a", shape=(8, 16), **options)
    setting({"zarrdask.block-size": 8 * 8 * 4})
    ds = open_zarr(store, chunked_array_type="dask")
    assert ds.a.chunks == ((8,), (8, 8))
    assert (ds.a.encoding["chunks"], ds.a.encoding["shards"]) == ((2, 2), (4, 8))


def test_a_rectilinear_grid_and_an_axis_without_elements(setting):
    store = {}
    lengths = ((1, 2, 3, 2), (4, 4))
    options = {"dtype": "i4", "dimension_names": ["y", "x"]}
    zarrdask.create_array(store, "a", shape=(8, 8), chunks=lengths, **options)
    options["dimension_names"] = ["none", "x"]
    zarrdask.create_array(store, "b", shape=(0, 8), chunks=(2, 4), **options)
    setting({"zarrdask.block-size": 3 * 4 * 4})
    ds = open_zarr(store, chunked_array_type="dask")
    assert ds.a.chunks == ((3, 3, 2), (4, 4))
    assert ds.a.encoding["preferred_chunks"] == {"y": (1, 2, 3, 2), "x": 4}
    assert ds.b.shape == ds.b.compute().shape == (0, 8)


@pytest.mark.usefixtures("small_blocks")
def test_a_narrow_selection_reads_only_the_chunks_it_overlaps():
    store = CountingStore()
    write_sample(store, chunks=(2, 3, 8))
    ds = open_dataset(store, chunks={})
    assert ds.t.data.npartitions == 6
    store.keys_read()
    value = ds.t.isel(time=3, y=4).compute()
    assert store.keys_read() == ["t/c/1/1/0"]
    np.testing.assert_array_equal(value, temperature()[3, 4])


@pytest.mark.usefixtures("small_blocks")
def test_trees_and_many_datasets_have_joined_blocks(tmp_path):
    for name in ("a", "b"):
        write_sample(tmp_path / name, path="sub", chunks=(2, 3, 8))
    tree = xr.open_datatree(tmp_path / "a", engine=ZarrdaskBackendEntrypoint, chunks={})
    assert tree["sub"].t.chunks == ((4, 4, 4), (3, 3), (8,))
    options = {"group": "sub", "combine": "nested", "concat_dim": "run", "coords": "minimal"}
    options |= {"compat": "override", "data_vars": "all", "join": "override"}
    paths = [tmp_path / "a", tmp_path / "b"]
    many = xr.open_mfdataset(paths, engine=ZarrdaskBackendEntrypoint, **options)
    assert many.t.chunks == ((1, 1), (4, 4, 4), (3, 3), (8,))
    assert open_mfdataset(paths, **options).t.chunks == many.t.chunks


@pytest.mark.usefixtures("small_blocks")
def test_what_is_written_back_has_the_stored_chunks(tmp_path):
    write_sample(tmp_path / "a", chunks=(2, 3, 8))
    ds = open_dataset(tmp_path / "a", chunks={})
    pickle.loads(pickle.dumps(ds)).zarrdask.to_zarr(tmp_path / "b")
    assert zarrdask.open_array(tmp_path / "b", "t").chunks == (2, 3, 8)
    assert open_dataset(tmp_path / "b", chunks={}).identical(ds)


@pytest.mark.usefixtures("small_blocks")
def test_workers_of_a_cluster_read_joined_blocks(tmp_path, cluster_address):
    from distributed import Client

    write_sample(tmp_path, chunks=(2, 3, 8))
    with Client(cluster_address):
        ds = open_dataset(tmp_path, chunks={}, skip_missing=True)
        np.testing.assert_array_equal(ds.t, temperature())


class RequestedStore(MemoryStore):
    """Values in memory; keeps a record of each key that is requested."""

    def __init__(self):
        super().__init__()
        self.requested = []

    def get(self, key):
        self.requested.append(key)
        return super().get(key)


@pytest.mark.parametrize("chunks", [None, {}])
def test_missing_chunks_are_not_requested(chunks):
    store = RequestedStore()
    z = zarrdask.create_array(
        store, "t", shape=(DAYS, 8), dtype="i2", chunks=(1, 4), dimension_names=["time", "x"]
    )
    z[3, :4] = 7
    for skip_missing in (True, False):
        ds = open_dataset(store, chunks=chunks, skip_missing=skip_missing)
        some = ds.t.isel(time=slice(2, 5), x=[1, 6])
        np.testing.assert_array_equal(some, [[0, 0], [7, 0], [0, 0]])
        store.requested.clear()
        np.testing.assert_array_equal(ds.t.isel(time=slice(5, 9)), np.zeros((4, 8)))
        np.testing.assert_array_equal(ds.t.isel(time=[0, 11], x=5), [0, 0])
        requested = {key for key in store.requested if key.startswith("t/c")}
        assert not requested if skip_missing else requested >= MISSING


#: The keys of the chunks that are requested in vain if missing chunks are not skipped.
MISSING = {f"t/c/{time}/{x}" for time in range(5, 9) for x in (0, 1)} | {"t/c/0/1", "t/c/11/1"}


def test_blocks_are_arrays_of_dask(tmp_path):
    write_sample(tmp_path)
    assert type(open_dataset(tmp_path, chunks={}).t.data) is da.Array


@pytest.mark.parametrize("chunks", [{}, {"x": 8}], ids=["stored", "by dimension"])
@pytest.mark.parametrize("manager", ["dask", ZarrdaskManager()], ids=["xarray's", "ours"])
@pytest.mark.usefixtures("small_blocks")
def test_variables_of_different_data_types_have_the_same_blocks(manager, chunks):
    store, names = MemoryStore(), {"dimension_names": ("time", "x"), "chunks": (2, 4)}
    for name, dtype in {"a": "i2", "b": "f8"}.items():
        zarrdask.create_array(store, name, shape=(1200, 8), dtype=dtype, **names)
    ds = open_dataset(store, chunks=chunks, chunked_array_type=manager)
    assert ds.a.chunks == ds.b.chunks
    assert ds.chunks["time"][0] > 2


@for_each(
    ("lengths", "expected"),
    [
        ((4, 4, 2), 4),
        ((4, 4, 4), 4),
        ((4,), 4),
        ((4, 4, 5), (4, 4, 5)),
        ((4, 2, 4), (4, 2, 4)),
    ],
)
def test_chunks_of_one_length_have_a_number(lengths, expected):
    assert axis_lengths(axis_of(sum(lengths), lengths)) == expected
