"""A year of daily stores as one array: 365 stores, of which one is missing."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import zarrdask

DAYS = 365
MISSING = 200


def sea_temperature(day):
    """Return a day of sea surface temperature, in degrees Celsius."""
    y, x = np.mgrid[0:40, 0:60]
    season = np.cos(2 * np.pi * (day - 230) / 365)
    eddies = np.sin(x / 7 + day / 9) * np.cos(y / 6 - day / 17)
    return (14 + 6 * season - 0.12 * y + eddies).astype("f4")


def main(folder):
    """Write a store for each day, show all as one array, and save the list of them."""
    for day in range(DAYS):
        if day != MISSING:
            z = zarrdask.create_array(
                folder / f"day-{day}.zarr", shape=(40, 60), dtype="f4", fill_value=np.nan
            )
            z[...] = sea_temperature(day)

    days = [folder / f"day-{day}.zarr" for day in range(DAYS)]
    year = zarrdask.stack(days, dimension_names="day", missing="fill")
    print(f"{year.nmembers} stores, one array of {year.shape}")

    x = zarrdask.from_zarr(year)
    print(f"{len(x.dask.layers)} layer, {x.npartitions} task")
    series = x[:, 20, 30].compute()
    print(f"day {np.nanargmin(series)} was the coldest, day {np.nanargmax(series)} the warmest")

    year.save(folder / "year.json")
    saved = zarrdask.open_array(folder / "year.json")
    is_equal = np.array_equal(saved[:, 20, 30], series, equal_nan=True)
    print(f"the same from the saved list: {is_equal}")
    return year[30::100][:3], series, MISSING


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
