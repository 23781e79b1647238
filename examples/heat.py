"""A year of temperature with xarray: written month by month, corrected, and reduced.

Each month is appended as it arrives, whatever its length: chunks have 30 days. One week is
replaced, and the dataset is read with its masks, scales and dates.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import xarray as xr

import zarrdask.xarray

LAT = np.linspace(71, 35, 73)
LON = np.linspace(-10, 40, 101)


def weather(first, last):
    """Return some days of a field that looks like the highest temperature of each day."""
    time = pd.date_range(first, last)
    day = time.day_of_year.to_numpy()[:, None, None]
    lat, lon = LAT[:, None], np.radians(LON)
    season = -np.cos(2 * np.pi * (day - 25) / 365) * (11 + 0.1 * (lat - 35))
    waves = 6 * np.sin(2 * lon + day / 6) * np.sin(np.radians(5 * lat) + day / 17)
    values = 22 - 0.5 * (lat - 35) + season + waves
    return xr.Dataset(
        {"t": (("time", "lat", "lon"), values, {"units": "degC", "long_name": "day's maximum"})},
        {"time": time, "lat": LAT, "lon": LON},
    )


def main(folder):
    """Write the months, replace a week, and count the hot days."""
    url = folder / "heat.zarr"
    packed = {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -32768, "chunks": (30, 73, 101)}
    days = {"units": "days since 2025-01-01", "dtype": "i4"}
    for start in pd.date_range("2025-01-01", periods=12, freq="MS"):
        month = weather(start, start + pd.offsets.MonthEnd(0)).chunk(time=10)
        if start.month == 1:
            month.zarrdask.to_zarr(url, encoding={"t": packed, "time": days})
        else:
            month.zarrdask.to_zarr(url, append_dim="time")
    week = weather("2025-07-07", "2025-07-13") + 3
    week.zarrdask.to_zarr(url, region="auto")

    ds = zarrdask.xarray.open_zarr(url)
    hot = (ds.t > 30).sum("time").compute()
    rome = ds.t.sel(lat=42, lon=12.5, method="nearest").compute()
    print(f"{dict(ds.sizes)}, stored as {ds.t.encoding['dtype']}")
    print(f"{ds.t.encoding['chunks'][0]} days a chunk, {ds.t.data.npartitions} blocks to compute")
    print(f"the hottest day in Rome: {rome.idxmax().dt.date.item()}, {float(rome.max()):.1f} C")
    print(f"more than 30 C on {int(hot.sel(lat=42, lon=12.5))} days there")
    return hot, rome


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
