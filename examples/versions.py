"""Versions of a reanalysis: a cluster writes to icechunk, and earlier snapshots stay readable."""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import icechunk
import numpy as np
import xarray as xr
from distributed import Client, LocalCluster

import zarrdask.xarray


def temperature(days):
    """Return a daily temperature in K, in blocks of seven days."""
    day, latitude = np.arange(days)[:, None, None], np.linspace(-90, 90, 73)[:, None]
    season = 12 * np.sin(latitude * np.pi / 180) * np.cos(2 * np.pi * (day - 200) / 365)
    field = (288 - 40 * np.sin(latitude * np.pi / 180) ** 2 + season) * np.ones(144)
    t = da.from_array(field.astype("f4"), chunks=(7, 73, 144))
    dims = ("time", "latitude", "longitude")
    return xr.Dataset({"t": (dims, t)}, {"time": np.arange(days), "latitude": latitude[:, 0]})


def main(folder):
    """Write a month, append another one, and replace a week; return the series of a place."""
    storage = icechunk.local_filesystem_storage(str(folder / "reanalysis"))
    repository = icechunk.Repository.create(storage)
    ds = temperature(60)
    with LocalCluster(n_workers=2, dashboard_address=":0") as cluster, Client(cluster):
        # Blocks of 7 days share chunks of 10: the writer moves their boundaries.
        session = repository.writable_session("main")
        january = ds.isel(time=slice(30))
        january.zarrdask.to_zarr(session.store, encoding={"t": {"chunks": (10, 73, 144)}})
        first = session.commit("January")

        session = repository.writable_session("main")
        ds.isel(time=slice(30, 60)).zarrdask.to_zarr(session.store, append_dim="time")
        second = session.commit("February")

        session = repository.writable_session("main")
        warmer = (ds[["t"]] + 0.5).isel(time=slice(14, 21)).drop_vars(["time", "latitude"])
        warmer.zarrdask.to_zarr(session.store, region={"time": slice(14, 21)})
        third = session.commit("a week is corrected")

        series = {}
        for name, snapshot in [("first", first), ("second", second), ("third", third)]:
            stored = repository.readonly_session(snapshot_id=snapshot).store
            t = zarrdask.xarray.open_zarr(stored).t
            week = float(t.isel(time=slice(14, 21)).mean())
            print(f"{name}: {t.sizes['time']} days, {week:.2f} K in the third week")
            series[name] = t.sel(latitude=52.5).isel(longitude=0).values
    return series


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
