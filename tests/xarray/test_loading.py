"""All variables of a dataset, data array or tree are loaded together, as xarray loads them."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from xarray.backends import BackendArray
from xarray.core.indexing import IndexingSupport, LazilyIndexedArray, explicit_indexing_adapter

import zarrdask
import zarrdask.xarray
from tests.covering import covering
from tests.storage.latency import FarStore
from tests.xarray.variables import has_values
from zarrdask.errors import ChunkNotFoundError, CodecError
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr

OPTIONS = {"engine": ZarrdaskBackendEntrypoint, "chunks": None}


def write(store, zarr_format=3):
    """Write a dataset of variables that xarray decodes in all kinds of ways."""
    rng = np.random.default_rng(3)
    dims, shape = ("time", "y", "x"), (12, 6, 8)
    ds = xr.Dataset(
        {
            "packed": (dims, rng.integers(0, 50, shape) * 0.5),
            "plain": (dims, rng.random(shape)),
            "whole": (dims, rng.integers(0, 9, shape)),
            "flag": (dims, rng.random(shape) > 0.5),
            "when": (dims, np.datetime64("2000-01-01", "ns") + np.arange(576).reshape(shape)),
            "lag": (dims, pd.to_timedelta(np.arange(576), "h").values.reshape(shape)),
            "name": (("y", "x"), rng.choice(["one", "three", ""], shape[1:])),
            "fixed": (("y", "x"), rng.choice([b"ab", b"c"], shape[1:])),
            "lon": (("y", "x"), rng.random(shape[1:])),
            "scalar": ((), 4.5),
            "nothing": (("none", "x"), np.empty((0, 8))),
        },
        {"time": pd.date_range("2000-01-01", periods=12), "x": np.arange(8.0)},
    ).set_coords("lon")
    ds.packed[1, 2, 3] = np.nan
    encoding = {
        "packed": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1, "chunks": (5, 6, 4)},
        "plain": {"chunks": (4, 3, 8), "shards": (8, 6, 8) if zarr_format == 3 else None},
        "whole": {"chunks": (1, 6, 8)},
    }
    ds.zarrdask.to_zarr(store, encoding=encoding, zarr_format=zarr_format)


DECODERS = ("mask_and_scale", "decode_times", "decode_coords", "concat_characters")
SELECTIONS = {
    "all": lambda ds: ds,
    "slices": lambda ds: ds.isel(time=slice(1, 9, 3), x=slice(None, None, -1)),
    "integer": lambda ds: ds.isel(y=2, time=3),
    "outer": lambda ds: ds.isel(time=[7, 0, 3], x=[1, 1, 5]),
    "points": lambda ds: ds.isel(
        time=xr.DataArray([0, 11, 3], dims="p"), x=xr.DataArray([7, 0, 2], dims="p")
    ),
    "nearest": lambda ds: ds.sel(x=xr.DataArray([0.2, 6.9], dims="p"), method="nearest"),
    "nothing": lambda ds: ds.isel(time=slice(0, 0)),
    "twice": lambda ds: ds.isel(time=slice(2, 9)).isel(time=[1, 4]).assign(again=ds.plain[0]),
    "renamed": lambda ds: ds.rename(packed="p", x="lat").drop_vars("name").transpose(),
}


@covering(select=list(SELECTIONS), store=[dict, FarStore], decode=[True, False], fmt=[2, 3])
def test_a_loaded_dataset_is_the_same_as_without_zarrdask(select, store, decode, fmt):
    store = store() if store is dict else store(seconds=0)
    write(store, fmt)
    decoding = dict.fromkeys(DECODERS, decode)
    opened = [SELECTIONS[select](xr.open_dataset(store, **decoding, **OPTIONS)) for _ in range(3)]
    assert opened[0].load() is opened[0]
    expected, found, computed = opened[0], opened[1].zarrdask.load(), opened[2].zarrdask.compute()
    assert found is opened[1]
    for each in (found, computed):
        xr.testing.assert_identical(each, expected)
        for name, variable in each.variables.items():
            assert variable.dtype == expected.variables[name].dtype
            assert str(variable.encoding) == str(expected.variables[name].encoding)
            assert type(variable.data) is type(expected.variables[name].data)
            assert has_values(variable)


def far(seconds=0.02):
    store = FarStore(seconds=0)
    ds = xr.Dataset({f"v{n}": (("y", "x"), np.full((4, 4), n + 1)) for n in range(20)})
    encoding = {name: {"chunks": (2, 1)} for name in ds}
    ds.zarrdask.to_zarr(store, encoding=encoding)
    store.seconds = seconds
    return store, ds


@pytest.mark.parametrize("cache", [True, False])
def test_the_requests_of_all_variables_are_in_flight_together(cache):
    store, expected = far()
    ds = xr.open_dataset(store, cache=cache, **OPTIONS)
    store.clear()
    ds.zarrdask.load()
    assert len(store.calls) == 20 * 8
    assert store.rounds <= 3
    assert store.most > 32
    xr.testing.assert_identical(ds, expected)
    store.clear()
    ds.load()
    ds.zarrdask.load()
    assert not store.calls


def test_points_of_all_variables_are_requested_together():
    store, expected = far()
    points = {"y": xr.DataArray(range(4), dims="p"), "x": xr.DataArray(range(4), dims="p")}
    ds = xr.open_dataset(store, **OPTIONS).isel(points)
    store.clear()
    ds.zarrdask.load()
    assert len(store.calls) == 20 * 4
    assert store.rounds <= 2
    xr.testing.assert_identical(ds, expected.isel(points))


def test_compute_leaves_the_object_lazy():
    store, expected = far(0)
    ds = xr.open_dataset(store, cache=False, **OPTIONS)
    xr.testing.assert_identical(ds.zarrdask.compute(), expected)
    assert not any(has_values(variable) for variable in ds.variables.values())


def test_data_arrays_with_coordinates():
    store = FarStore(seconds=0)
    write(store)
    packed = xr.open_dataset(store, **OPTIONS).packed
    store.clear()
    assert packed.zarrdask.load() is packed
    assert has_values(packed.variable)
    assert has_values(packed.lon.variable)
    store.clear()
    xr.testing.assert_identical(packed, xr.open_dataset(store, **OPTIONS).packed.load())


def test_trees():
    store, expected = far(seconds=0)
    for path in ("a", "a/b"):
        expected.zarrdask.to_zarr(store, group=path, mode="a")
    store.seconds = 0.02
    tree = xr.open_datatree(store, **OPTIONS)
    store.clear()
    lazy = tree.zarrdask.compute()
    assert lazy is not tree
    store.clear()
    assert tree.zarrdask.load() is tree
    for path in ("/", "/a", "/a/b"):
        for each in (tree, lazy):
            xr.testing.assert_identical(each[path].to_dataset(inherit=False), expected)
    assert store.rounds <= 10
    store.clear()
    tree.load()
    assert not store.calls


class Other(BackendArray):
    """A lazy array of another engine, which counts its reads."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.count = values, values.shape, values.dtype, 0

    def __getitem__(self, key):
        self.count += 1
        return explicit_indexing_adapter(
            key,
            self.shape,
            IndexingSupport.OUTER,
            lambda key: (
                self.values[np.ix_(*key)]
                if any(isinstance(k, np.ndarray) for k in key)
                else self.values[key]
            ),
        )


def test_variables_of_others_are_loaded_by_xarray():
    store, _ = far(0)
    other = Other(np.arange(4.0))
    ds = xr.open_dataset(store, **OPTIONS)[["v1", "v2"]]
    ds["other"] = xr.Variable("y", LazilyIndexedArray(other))
    ds["dask"] = open_zarr(store).v3
    ds["memory"] = ("x", [1, 2, 3, 4])
    expected = ds.copy().load()
    other.count = 0
    loaded = ds.zarrdask.load(scheduler="sync")
    assert other.count <= 1
    xr.testing.assert_identical(loaded, expected)
    assert isinstance(loaded.dask.data, np.ndarray)


def test_what_fails_is_raised_and_can_be_repeated():
    store, expected = far(0)
    value = store.inner.get("v7/c/0/0")
    store.inner.set("v7/c/0/0", b"?")
    ds = xr.open_dataset(store, **OPTIONS)
    with pytest.raises(CodecError, match="v7/c/0/0"):
        ds.zarrdask.load()
    store.inner.set("v7/c/0/0", value)
    xr.testing.assert_identical(ds.zarrdask.load(), expected)
    store.inner.erase("v7/c/0/1")
    with pytest.raises(ChunkNotFoundError, match="v7/c/0/1"):
        xr.open_dataset(store, missing="error", **OPTIONS).zarrdask.load()


def test_missing_blocks_need_no_request():
    store = FarStore(seconds=0)
    zarrdask.create_array(store, "a", shape=8, dtype="i4", chunks=2, dimension_names=["x"])
    zarrdask.create_group(store, "g")
    zarrdask.create_array(store, "g/a", shape=8, dtype="i4", chunks=2, dimension_names=["x"])
    ds = xr.open_dataset(store, group="g", skip_missing=True, **OPTIONS)
    store.clear()
    assert ds.zarrdask.load().a.values.tolist() == [0] * 8
    assert not any("/c/" in key for key in store.keys)


def test_the_filters_of_warnings_stay_as_they_are():
    store = FarStore(seconds=0)
    write(store)
    ds = xr.open_dataset(store, **OPTIONS)
    before = list(warnings.filters)
    ds.zarrdask.load()
    assert list(warnings.filters) == before
