"""Arrays as xarray indexes them."""

import asyncio
import json
import pickle
import threading
from dataclasses import replace

import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st
from xarray.core.indexing import BasicIndexer, LazilyIndexedArray

import zarrdask
from tests.parallel.graph.counting import CountingStore
from tests.xarray.samples import temperature, write_sample
from tests.xarray.variables import held_array
from zarrdask.arrays.chunks.read import read_region
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr
from zarrdask.xarray.lazy import LazyArray
from zarrdask.xarray.xarray_private import text_dtype

SHAPE = (5, 6, 7)
VALUES = np.arange(5 * 6 * 7).reshape(SHAPE)


def lazy(store=None, values=VALUES):
    array = zarrdask.create_array(
        {} if store is None else store, shape=values.shape, dtype=values.dtype, chunks=2
    )
    array[...] = values
    return LazyArray(array)


DIMS = ("a", "b", "c")
VARIABLE = xr.Variable(DIMS, LazilyIndexedArray(lazy()))
MODEL = xr.Variable(DIMS, VALUES)


@st.composite
def indexers(draw):
    def positions(size):
        return st.integers(-size, size - 1)

    index = {}
    points = draw(st.integers(1, 4))
    for dim, size in zip(DIMS, SHAPE, strict=True):
        kind = draw(st.sampled_from(["all", "integer", "slice", "list", "points"]))
        if kind == "integer":
            index[dim] = draw(positions(size))
        elif kind == "slice":
            step = draw(st.sampled_from([None, 1, 2, -1, -3]))
            ends = st.none() | positions(size)
            chosen = slice(draw(ends), draw(ends), step)
            # xarray itself fails on slices of lazy arrays that are empty and go backwards.
            assume(len(range(*chosen.indices(size))) > 0)
            index[dim] = chosen
        elif kind == "list":
            index[dim] = draw(st.lists(positions(size), min_size=1, max_size=4))
        elif kind == "points":
            chosen = draw(st.lists(positions(size), min_size=points, max_size=points))
            index[dim] = xr.Variable("p", chosen)
    return index


@given(indexers())
def test_any_index_gives_what_numpy_gives(index):
    xr.testing.assert_identical(VARIABLE.isel(index), MODEL.isel(index))


def is_filled(key, size):
    """Whether a key is a slice that takes something."""
    return isinstance(key, slice) and len(range(*key.indices(size))) > 0


@given(indexers(), indexers())
def test_indices_one_after_another(first, second):
    expected = MODEL.isel(first)
    index = {
        dim: key
        for dim, key in second.items()
        if dim in expected.dims and is_filled(key, expected.sizes.get(dim, 0))
    }
    xr.testing.assert_identical(VARIABLE.isel(first).isel(index), expected.isel(index))


def test_points_far_apart_are_not_read_as_a_block():
    store = CountingStore()
    variable = xr.Variable(DIMS, LazilyIndexedArray(lazy(store, np.ones((40, 40, 3)))))
    store.keys_read()
    diagonal = xr.Variable("p", [0, 10, 20, 30, 39])
    variable.isel(a=diagonal, b=diagonal).load()
    assert len(store.keys_read()) == 5 * 2


def test_it_pickles_small(tmp_path):
    array = lazy(tmp_path)
    data = pickle.dumps(array)
    assert len(data) < 1500
    again = pickle.loads(data)
    assert (again.shape, again.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(again.get_duck_array(), VALUES)


def test_a_group_with_a_path_pickles(tmp_path):
    write_sample(tmp_path, path="a/b")
    ds = open_zarr(tmp_path, group="a/b", chunks=None)
    again = pickle.loads(pickle.dumps(held_array(ds.t.variable)))
    np.testing.assert_array_equal(again.get_duck_array(), temperature())


@pytest.fixture
def threads_used(monkeypatch):
    used = []

    def read(chunks, request, *, threads, **options):
        used.append(threads)
        return read_region(chunks, request, threads=threads, **options)

    monkeypatch.setattr("zarrdask.arrays.nodes.array.read_region", read)
    return used


def test_all_threads_read_where_nothing_else_is_parallel(threads_used):
    lazy()[BasicIndexer((slice(None),) * 3)]
    assert threads_used == [None]


def test_one_thread_reads_in_a_thread_of_others(threads_used):
    array = lazy()
    thread = threading.Thread(target=array.get_duck_array)
    thread.start()
    thread.join()
    assert threads_used == [1]


def test_load_async_has_many_variables_in_flight():
    class Meeting(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS)

        def get_many(self, keys, scratch):
            keys = list(keys)
            if any("/c/" in key for key in keys):
                barrier.wait()
            return super().get_many(keys, scratch)

    barrier = threading.Barrier(20, timeout=20)
    store = Meeting({})
    xr.Dataset({f"v{n}": ("x", [n]) for n in range(20)}).zarrdask.to_zarr(store)
    ds = xr.open_dataset(store, engine=ZarrdaskBackendEntrypoint)
    assert sum(asyncio.run(ds.load_async()).values()).item() == 190


def test_small_blocks_of_datasets_that_are_reduced_share_tasks():
    store, values = {}, np.arange(256.0)
    xr.Dataset({"t": ("x", values)}).zarrdask.to_zarr(store, encoding={"t": {"chunks": 1}})
    ds = open_zarr(store, chunks={"x": 1})
    with dask.config.set(num_workers=1, scheduler="sync"):
        mean, largest = dask.optimize(ds.t.mean(), ds.max())
        assert len(dict(mean.__dask_graph__())) < ds.t.size
        assert (mean.compute(), largest.compute().t) == (values.mean(), values.max())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts(zarr_format):
    store = {}
    options = (
        {"filters": ["vlen-utf8"], "dtype": "O", "fill_value": ""}
        if zarr_format == 2
        else {"dtype": "string"}
    )
    array = zarrdask.create_array(
        store, "a", shape=(3,), chunks=2, zarr_format=zarr_format, dimension_names=["x"], **options
    )
    array[...] = ["one", "two", "three"]
    ds = open_zarr(store, chunks=None, use_zarr_fill_value_as_mask=False)
    assert ds.a.dtype == text_dtype()
    assert ds.a.values.dtype == text_dtype()
    assert ds.a.values.tolist() == ["one", "two", "three"]
    assert ds.a.isel(x=1).item() == "two"
    assert ds.a[[2, 0]].values.tolist() == ["three", "one"]
    assert pickle.loads(pickle.dumps(ds)).identical(ds)


@pytest.mark.parametrize("options", [{}, {"chunked_array_type": "dask"}, {"skip_missing": True}])
def test_texts_in_blocks(options):
    store = {}
    array = zarrdask.create_array(
        store, "a", shape=6, chunks=2, dtype="string", dimension_names=["x"]
    )
    array[2:4] = ["one", "three"]
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        ds = open_zarr(store, chunks={"x": 2}, **options)
        name = open_zarr(store, chunks={"x": 2}, **options).a.data.name
        assert options.get("chunked_array_type") == "dask" or ds.a.data.name == name
    assert ds.a.dtype == ds.a.data.dtype == text_dtype()
    assert ds.a.values.tolist() == ["", "", "one", "three", "", ""]
    assert (ds.a == "one").sum() == 1
    written = {}
    ds.zarrdask.to_zarr(written)
    assert json.loads(written["a/zarr.json"])["data_type"] == "string"
    assert open_zarr(written).a.load().identical(ds.a.load())


def test_texts_are_coordinates_and_indexes():
    store = {}
    names = np.array(["b", "a"], object)
    xr.Dataset({"v": ("name", [1, 2])}, {"name": names, "long": ("name", names)}).zarrdask.to_zarr(
        store
    )
    ds = open_zarr(store)
    assert ds.long.dtype == text_dtype()
    assert int(ds.v.sel(name="a")) == 2
    assert ds.indexes["name"].tolist() == ["b", "a"]
