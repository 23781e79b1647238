"""Points of variables: `isel` and `sel` with arrays read the store, chunk by chunk."""

import dask
import dask.array as da
import numpy as np
import pytest

xr = pytest.importorskip("xarray")

import zarrdask.xarray  # noqa: E402
from tests.counting import CountingStore  # noqa: E402
from zarrdask.storage.memory import MemoryStore  # noqa: E402


@pytest.fixture
def opened():
    """A packed variable on a grid, opened in small blocks, and the same in memory."""
    values = np.arange(6 * 20 * 30, dtype="f8").reshape(6, 20, 30) / 10
    coords = {"time": np.arange(6), "lat": np.linspace(9, -10, 20), "lon": np.arange(30) * 2.0}
    ds = xr.Dataset({"t": (("time", "lat", "lon"), values)}, coords)
    store = CountingStore(MemoryStore())
    encoding = {"t": {"dtype": "i4", "scale_factor": 0.1, "_FillValue": -1, "chunks": (2, 5, 6)}}
    zarrdask.xarray.to_zarr(ds, store, encoding=encoding)
    with dask.config.set({"zarrdask.block-size": 500}):
        found = zarrdask.xarray.open_zarr(store)
    store.reads.clear()
    return found, ds, store


RNG = np.random.default_rng(0)
POINTS = {"lat": ("p", RNG.uniform(-9.9, 8.9, 40)), "lon": ("p", RNG.uniform(0, 58, 40))}


def of_chunks(store):
    return {key: n for key, n in store.reads.items() if "/c/" in key and key.startswith("t")}


@pytest.mark.parametrize("method", ["nearest", "pad", "backfill"])
def test_points_of_coordinates(opened, method):
    found, ds, store = opened
    points = {name: xr.DataArray(values, dims=dim) for name, (dim, values) in POINTS.items()}
    selected = found.sel(points, method=method)
    assert len(selected.t.data.dask) < len(found.t.data.dask)
    xr.testing.assert_allclose(selected.compute(), ds.sel(points, method=method))
    reads = of_chunks(store)
    assert reads
    assert {*reads.values()} == {1}


def test_points_of_indices(opened):
    found, ds, store = opened
    points = {
        "lat": xr.DataArray([[0, -1], [3, 3]], dims=("a", "b")),
        "lon": xr.DataArray([[2, 2], [3, 3]], dims=("a", "b")),
    }
    xr.testing.assert_allclose(found.isel(points).compute(), ds.isel(points))
    assert len(of_chunks(store)) == 3 * 2
    one = found.isel(points | {"time": 2})
    xr.testing.assert_allclose(one.compute(), ds.isel(points | {"time": 2}))
    shifted = (found + 1).isel(points)  # no read
    xr.testing.assert_allclose(shifted.compute(), (ds + 1).isel(points))


def test_points_at_lazy_indices_of_two_dimensions(opened):
    found, ds, store = opened
    lat, lon = np.random.default_rng(1).integers(0, 20, (2, 6, 7))
    lazy = {
        "lat": xr.DataArray(da.from_array(lat, chunks=(4, 3)), dims=("a", "b")),
        "lon": xr.DataArray(da.from_array(lon, chunks=(2, 7)), dims=("a", "b")),
    }
    # xarray refuses lazy indices of coordinates in memory.
    selected = found.drop_vars(["lat", "lon"]).isel(lazy)
    assert selected.t.dims == ("time", "a", "b")
    np.testing.assert_allclose(selected.t, ds.t.values[:, lat, lon])
    assert {*of_chunks(store).values()} == {1}
    labels = {
        name: xr.DataArray(da.from_array(ds[name].values[each]), dims=("a", "b"))
        for name, each in (("lat", lat), ("lon", lon))
    }
    np.testing.assert_allclose(found.sel(labels, method="nearest").t, ds.t.values[:, lat, lon])
