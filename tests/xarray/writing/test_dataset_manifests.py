"""The setting `zarrdask.manifests`: arrays of datasets have manifests, which all writes keep."""

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.covering import for_each
from zarrdask.xarray import to_zarr


@pytest.fixture(autouse=True)
def on(setting):
    setting({"zarrdask.manifests": True, "scheduler": "sync"})


def dataset(first=0):
    t = da.arange(1, 25, chunks=8).reshape(8, 3) + first
    variables = {"t": (("time", "x"), t), "e": ("x", np.arange(3.0)), "s": ((), 5.0)}
    return xr.Dataset(variables, {"time": np.arange(first, first + 8)})


def are_kept(place):
    group = zarrdask.open_group(place)
    return [name for name in group if zarrdask.verify(group[name], manifest=True).ok]


NAMES = ["e", "s", "t", "time"]


@for_each("zarr_format", [2, 3])
@pytest.mark.slow
def test_writes_to_a_dataset_keep_manifests(tmp_path, zarr_format):
    place = tmp_path / f"{zarr_format}"
    to_zarr(dataset(), place, zarr_format=zarr_format)
    assert are_kept(place) == NAMES
    to_zarr(dataset(8).drop_vars(["e", "s"]), place, append_dim="time")
    assert are_kept(place) == NAMES
    part = dataset()[["t"]].drop_vars("time").isel(time=slice(3))
    to_zarr(part, place, region={"time": slice(2, 5)})
    assert are_kept(place) == NAMES
    to_zarr(dataset()[["t"]].drop_vars("time").rename(t="u", time="hour"), place, mode="a")
    assert are_kept(place) == sorted([*NAMES, "u"])
    to_zarr(dataset(5), place, mode="w", zarr_format=zarr_format)
    assert are_kept(place) == NAMES


@for_each("options", [{}, {"commit": "last"}, {"mode": "w"}, {"resume": True}])
@pytest.mark.slow
def test_a_dataset_that_is_computed_later_has_manifests(tmp_path, options):
    place = tmp_path / f"{[*options]}"
    if "mode" in options:
        with dask.config.set({"zarrdask.manifests": False}):
            to_zarr(dataset(), place)
    later = to_zarr(dataset(), place, compute=False, **options)
    if not options:
        part = dataset()[["t"]].drop_vars("time").isel(time=slice(3))
        to_zarr(part, place, region={"time": slice(2, 5)})
        assert are_kept(place) == NAMES
    dask.compute(later)
    assert are_kept(place) == NAMES
    added = dataset(8).drop_vars(["e", "s"])
    dask.compute(to_zarr(added, place, append_dim="time", compute=False))
    assert are_kept(place) == NAMES
