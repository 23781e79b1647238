"""Datasets that are written in tests, and processes that write them and die."""

import os

import dask
import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from zarrdask.storage.local.local_store import LocalStore
from zarrdask.xarray import to_zarr

#: The exit code of a process that was to die.
DEAD = 9


def days(count, start=0, *, chunks=None):
    """Return some days of a dataset with a large variable, a small one and a time coordinate."""
    numbers = np.arange(start, start + count)
    values = numbers[:, None, None] * 1000 + np.arange(30).reshape(5, 6)
    data = values.astype("f8") if chunks is None else da.from_array(values * 1.0, chunks=chunks)
    times = pd.date_range("2000-01-01", periods=start + count)[start:]
    return xr.Dataset(
        {"t": (("time", "y", "x"), data, {"units": "K"}), "n": ("time", numbers)},
        {"time": times, "y": np.arange(5) * 0.5},
        {"title": "days"},
    )


def together(*parts):
    """Return datasets as one along time, in memory."""
    return xr.concat([part.compute() for part in parts], "time", data_vars="minimal")


def die_at(number):
    """Let this process end without any clean-up when it writes or erases for the n-th time."""
    count = iter(range(number))

    def dying(operation):
        def call(self, *args):
            if next(count, None) is None:
                os._exit(DEAD)
            return operation(self, *args)

        return call

    for name in ("set", "create", "erase"):
        setattr(LocalStore, name, dying(getattr(LocalStore, name)))


def write_and_die(number, place, dataset, options):
    """Write a dataset, and die at some write: the main function of a process."""
    die_at(number)
    with dask.config.set({"scheduler": "synchronous", "zarrdask.threads": 1}):
        to_zarr(dataset, place, **options)


def append(place, start, count, barrier):
    """Append days, one by one, when another process is ready, too."""
    barrier.wait()
    for day in range(start, start + count):
        to_zarr(days(1, day, chunks=1), place, append_dim="time")


def write_regions(place, numbers, barrier):
    """Write days where their coordinates say they belong."""
    barrier.wait()
    for day in numbers:
        to_zarr(days(1, day, chunks=1).drop_vars("y") + 0.5, place, region={"time": "auto"})
