"""The chunk manager: blocks, graphs and names of the Dask arrays."""

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from dask.base import tokenize
from xarray.namedarray.parallelcompat import get_chunked_array_type, list_chunkmanagers

import zarrdask
from tests.parallel.graph.counting import CountingStore
from tests.storage.latency import LatencyStore
from tests.xarray.samples import temperature, write_sample
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.xarray import ZarrdaskBackendEntrypoint, ZarrdaskManager, open_zarr
from zarrdask.xarray import xarray_private as private


@pytest.fixture
def small_blocks(setting):
    """Blocks of 96 decoded elements: two stored chunks of the sample."""
    setting({"zarrdask.block-size": 96 * 8})


def tasks(*arrays):
    return len(dict(dask.optimize(*arrays)[0].__dask_graph__()))


def test_stored_chunks_are_joined_to_blocks(tmp_path, setting):
    write_sample(tmp_path, chunks=(2, 3, 8))
    assert open_zarr(tmp_path).t.chunks == ((12,), (6,), (8,))
    setting({"zarrdask.block-size": 96 * 8})
    assert open_zarr(tmp_path).t.chunks == ((4, 4, 4), (3, 3), (8,))


def test_blocks_are_larger_in_a_store_with_latency(tmp_path, setting):
    write_sample(tmp_path, chunks=(2, 3, 8))
    setting({"zarrdask.block-size": 48 * 8})
    far = LatencyStore(LocalStore(str(tmp_path)), seconds=0)
    assert open_zarr(far).t.chunks == ((8, 4), (3, 3), (8,))
    assert open_zarr(tmp_path).t.chunks == ((2,) * 6, (3, 3), (8,))


@pytest.mark.parametrize(
    ("chunks", "blocks"),
    [
        ({}, ((4, 4, 4), (3, 3), (8,))),
        ({"time": 2}, ((2,) * 6, (6,), (8,))),
        ({"time": 6}, ((6, 6), (3, 3), (8,))),
        ({"time": -1, "y": -1}, ((12,), (6,), (8,))),
        ({"time": (8, 4)}, ((8, 4), (3, 3), (8,))),
        ({"y": "auto"}, ((12,), (6,), (8,))),
        (-1, ((12,), (6,), (8,))),
        ("auto", ((12,), (6,), (8,))),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_chunks_as_the_user_asks(tmp_path, chunks, blocks):
    write_sample(tmp_path, chunks=(2, 3, 8))
    ds = open_zarr(tmp_path, chunks=chunks)
    assert ds.t.chunks == blocks
    np.testing.assert_array_equal(ds.t, temperature())


def test_auto_joins_units_up_to_dasks_chunk_size(tmp_path):
    write_sample(tmp_path, chunks=(2, 3, 8))
    with dask.config.set({"array.chunk-size": 96 * 8}):
        assert open_zarr(tmp_path, chunks="auto").t.chunks == ((4, 4, 4), (3, 3), (8,))


def test_chunks_that_the_user_gives_are_obeyed_though_they_are_the_stored_ones(tmp_path):
    write_sample(tmp_path, chunks=(2, 3, 8))
    chunks = {"time": 2, "y": 3, "x": 8}
    assert open_zarr(tmp_path, chunks=chunks).t.chunks == ((2,) * 6, (3, 3), (8,))


def test_blocks_that_cut_stored_chunks_are_warned_of(tmp_path):
    write_sample(tmp_path, chunks=(2, 3, 8))
    with pytest.warns(UserWarning, match="separate the stored chunks"):
        assert open_zarr(tmp_path, chunks={"time": 3}).t.chunks[0] == (3,) * 4


def test_a_shard_is_a_unit(setting):
    store = {}
    options = {"dtype": "i4", "chunks": (2, 2), "shards": (4, 8), "dimension_names": ["y", "x"]}
    zarrdask.create_array(store, "a", shape=(8, 16), **options)
    setting({"zarrdask.block-size": 1})
    ds = open_zarr(store)
    assert ds.a.chunks == ((4, 4), (8, 8))
    assert ds.a.encoding["chunks"] == (2, 2)
    assert ds.a.encoding["shards"] == (4, 8)


def test_a_rectilinear_grid(setting):
    store = {}
    chunks = ((1, 2, 3, 2), (4, 4))
    options = {"dtype": "i4", "chunks": chunks, "dimension_names": ["y", "x"]}
    zarrdask.create_array(store, "a", shape=(8, 8), **options)
    setting({"zarrdask.block-size": 3 * 4 * 4})
    ds = open_zarr(store)
    assert ds.a.chunks == ((3, 3, 2), (4, 4))
    assert ds.a.encoding["chunks"] == ((1, 2, 3, 2), 4)
    assert open_zarr(store, chunks={"x": 8}).a.chunks[1] == (8,)


@pytest.mark.usefixtures("small_blocks")
def test_one_task_reads_and_decodes_a_block_and_there_is_no_root_task(tmp_path):
    write_sample(tmp_path, chunks=(2, 3, 8))
    t = open_zarr(tmp_path).t.data
    assert type(t) is da.Array
    assert len(t.dask.layers) == 1
    assert tasks(t) == t.npartitions == 6


@pytest.mark.usefixtures("small_blocks")
def test_a_slice_is_read_by_itself_though_it_is_decoded():
    store = CountingStore()
    write_sample(store, chunks=(2, 3, 8))
    ds = open_zarr(store)
    store.keys_read()
    value = ds.t.isel(time=3, y=4).compute()
    assert store.keys_read() == ["t/c/1/1/0"]
    np.testing.assert_array_equal(value, temperature()[3, 4])


def test_merged_chunks_are_read_by_one_task(tmp_path):
    write_sample(tmp_path)
    ds = open_zarr(tmp_path, chunks={"time": 2})
    whole = ds.chunk(time=-1)
    assert whole.t.chunks[0] == (len(temperature()),)
    assert len(whole.t.data.dask.layers) == 1
    (x,) = dask.optimize(whole.t.data)
    assert len(dict(x.dask)) == whole.t.data.npartitions
    np.testing.assert_array_equal(whole.t.compute(), temperature())
    assert len(ds.t.data.rechunk((-1, 1, -1)).dask.layers) > 1  # would decode chunks twice
    y = (ds.t + whole.t).data.rechunk(-1)
    np.testing.assert_array_equal(y.compute(), 2 * temperature())


@pytest.mark.usefixtures("small_blocks")
def test_all_reductions_are_those_of_dask(tmp_path):
    write_sample(tmp_path)
    ds = open_zarr(tmp_path)
    assert get_chunked_array_type(ds.t.data) is list_chunkmanagers()["dask"]
    mean = ds.t.groupby("time.month").mean().compute()
    np.testing.assert_allclose(mean[0], np.nanmean(temperature(), axis=0))


def test_arrays_mix_with_those_of_dask(tmp_path):
    write_sample(tmp_path)
    ds = open_zarr(tmp_path)
    other = ds.t.chunk({"time": 3}) * 1
    both = xr.apply_ufunc(np.add, ds.t, other, dask="parallelized", output_dtypes=[float])
    np.testing.assert_array_equal(both, temperature() * 2)


def test_names_follow_the_stored_documents_and_the_decoding(tmp_path):
    write_sample(tmp_path)
    name = open_zarr(tmp_path).t.data.name
    assert open_zarr(tmp_path).t.data.name == name
    assert open_zarr(tmp_path, mask_and_scale=False).t.data.name != name
    zarrdask.open_array(tmp_path, "t", mode="r+").attrs["scale_factor"] = 2.0
    assert open_zarr(tmp_path).t.data.name != name


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers(tmp_path, scheduler):
    write_sample(tmp_path)
    with dask.config.set(scheduler=scheduler):
        np.testing.assert_array_equal(open_zarr(tmp_path).t.compute(), temperature())


def test_tokens_are_deterministic(tmp_path):
    write_sample(tmp_path)
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        assert tokenize(open_zarr(tmp_path)) == tokenize(open_zarr(tmp_path))


def test_the_manager_of_xarray_works_too(tmp_path):
    write_sample(tmp_path, chunks=(2, 3, 8))
    ds = open_zarr(tmp_path, chunked_array_type="dask")
    assert ds.t.chunks == ((12,), (6,), (8,))
    np.testing.assert_array_equal(ds.t, temperature())


def test_what_is_not_ours_is_left_to_xarrays_manager(tmp_path):
    write_sample(tmp_path)
    lazy = open_zarr(tmp_path, chunks=None).t
    manager = ZarrdaskManager()
    fancy = lazy.isel(time=[1, 3, 4]).chunk({"time": 2}, chunked_array_type=manager)
    np.testing.assert_array_equal(fancy, temperature()[[1, 3, 4]])
    plain = xr.DataArray(np.arange(6), dims="x").chunk({"x": 4}, chunked_array_type=manager)
    assert plain.chunks == ((4, 2),)
    again = plain.chunk({"x": 3}, chunked_array_type=manager)
    assert again.chunks == ((3, 3),)


def test_a_slice_of_a_lazy_variable_is_a_region(tmp_path):
    write_sample(tmp_path)
    lazy = open_zarr(tmp_path, chunks=None).t.isel(time=slice(3, 9, 2))
    t = lazy.chunk({"time": 2}, chunked_array_type=ZarrdaskManager())
    assert tasks(t.data) == t.data.npartitions == 2
    np.testing.assert_array_equal(t, temperature()[3:9:2])


def test_a_release_of_xarray_with_other_classes_works_by_its_own_manager(tmp_path, monkeypatch):
    monkeypatch.setattr(private, "ROLES", {})
    write_sample(tmp_path, chunks=(2, 3, 8))
    ds = open_zarr(tmp_path)
    assert tasks(ds.t.data) > ds.t.data.npartitions
    np.testing.assert_array_equal(ds.t, temperature())


def test_a_store_in_memory_is_refused_where_workers_are_elsewhere(cluster_address):
    from distributed import Client

    store = {}
    write_sample(store)
    with Client(cluster_address), pytest.raises(zarrdask.errors.StoreError, match="workers"):
        open_zarr(store)


def test_a_cluster_reads(tmp_path, cluster_address):
    from distributed import Client

    write_sample(tmp_path)
    with Client(cluster_address):
        np.testing.assert_array_equal(open_zarr(tmp_path).t.compute(), temperature())


@pytest.mark.usefixtures("small_blocks")
def test_trees_and_groups_take_the_manager_too(tmp_path):
    write_sample(tmp_path, path="a/b", chunks=(2, 3, 8))
    options = {"chunks": {}, "chunked_array_type": ZarrdaskManager()}
    tree = xr.open_datatree(tmp_path, engine=ZarrdaskBackendEntrypoint, **options)
    assert tree["a/b"].t.chunks == ((4, 4, 4), (3, 3), (8,))
    groups = xr.open_groups(tmp_path, engine=ZarrdaskBackendEntrypoint, **options)
    assert tasks(groups["/a/b"].t.data) == 6


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_missing_blocks_are_constants(zarr_format, setting):
    store = CountingStore()
    ds = xr.Dataset({"t": (("y", "x"), np.full((40, 4), np.nan))}).chunk(y=1)
    encoding = {"dtype": "i2", "_FillValue": -1, "scale_factor": 0.5, "chunks": (1, 4)}
    if zarr_format == 3:
        encoding["fill_value"] = -1
    ds.zarrdask.to_zarr(store, encoding={"t": encoding}, zarr_format=zarr_format)
    zarrdask.open_array(store, "t", mode="r+")[3] = 7
    setting({"zarrdask.block-size": 1})
    found = open_zarr(store, skip_missing=True)
    assert type(found.t.data) is da.Array
    assert found.t.data.npartitions == 40
    assert tasks((found.t + 1).data) <= 40 + 10  # the missing blocks are one block
    store.keys_read()
    values = (found.t + 1).compute()
    assert len(store.keys_read()) == 1
    np.testing.assert_array_equal(values[3], np.full(4, 4.5))
    assert int(values.isnull().sum()) == 39 * 4


def test_a_task_reads_many_small_blocks_that_are_reduced(tmp_path):
    values = np.arange(1600.0).reshape(40, 40)
    xr.Dataset({"v": (("y", "x"), values)}).zarrdask.to_zarr(
        tmp_path, encoding={"v": {"chunks": (2, 2)}}
    )
    with dask.config.set(num_workers=1):
        dataset = open_zarr(tmp_path, chunks={"y": 2, "x": 2})
        assert tasks(dataset.v.mean().data) < 200
        assert dataset.mean().compute().v == values.mean()
