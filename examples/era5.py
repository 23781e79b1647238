"""A year of global temperature, stored as maps, rewritten as time series.

A field is written a map at a time, and read as the series of a place. The chunks of maps are slow
to read as series: `rechunk` writes a second array, within 32 MiB of memory.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np

import zarrdask

LAT = np.linspace(90, -90, 73)
LON = np.linspace(0, 357.5, 144)


def temperature(block_info=None):
    """Return one block of a field that looks like the temperature 2 m above the ground."""
    (start, stop), *_ = block_info[None]["array-location"]
    day = np.arange(start, stop)[:, None, None]
    lat, lon = np.radians(LAT)[:, None], np.radians(LON)
    climate = 262 + 40 * np.cos(lat) ** 2 + 4 * np.cos(2 * lon + 1) * np.sin(2 * lat)
    season = -12 * np.sin(lat) * np.cos(2 * np.pi * (day - 15) / 365)
    weather = 6 * np.cos(lat) * np.sin(5 * lon - day / 2) * np.sin(3 * lat)
    noise = np.random.default_rng(start).normal(scale=0.5, size=(len(day), *np.shape(climate)))
    return np.round(climate + season + weather + noise, 2).astype("f4")


def main(folder):
    """Write the maps, rewrite them, and read one place from both."""
    field = da.map_blocks(
        temperature, chunks=((73,) * 5, 73, 144), dtype="f4", meta=np.empty((0, 0, 0), "f4")
    )
    zarrdask.to_zarr(
        field,
        folder / "maps.zarr",
        chunks=(1, 73, 144),
        shards=(73, 73, 144),
        dimension_names=("time", "lat", "lon"),
        attributes={"units": "K", "long_name": "2 metre temperature"},
    )
    plan = zarrdask.rechunk(
        folder / "maps.zarr", folder / "series.zarr", chunks=(365, 8, 8), max_mem="32 MiB"
    )
    series = plan.execute(progress=False)

    maps = zarrdask.open_array(folder / "maps.zarr")
    berlin = int(np.abs(LAT - 52.5).argmin()), int(np.abs(LON - 12.5).argmin())
    place = maps[(slice(None), *berlin)]
    print(f"{maps.shape} {maps.dtype}, {maps.attrs['long_name']} in {maps.attrs['units']}")
    print(f"chunks {maps.chunks}: a map is 1 chunk, a series {maps.shape[0]} chunks")
    print(f"chunks {series.chunks}: a series is 1 chunk, a map {series.nchunks} chunks")
    print(f"the same values: {bool((place == series[(slice(None), *berlin)]).all())}")
    print(f"Berlin: {place[:31].mean() - 273.15:.1f} C in January, ", end="")
    print(f"{place[181:212].mean() - 273.15:.1f} C in July")
    return maps[196], place, berlin, series.chunks


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
