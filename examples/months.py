"""Daily rain in chunks of a month each: a chunk grid with chunks of different lengths."""

from calendar import monthrange
from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np

import zarrdask

MONTHS = tuple(monthrange(2024, month)[1] for month in range(1, 13))


def rain():
    """Return a year of daily rain on a coast, in mm: wet winters, dry summers."""
    rng = np.random.default_rng(8)
    day = np.arange(sum(MONTHS))[:, None, None]
    x = np.arange(80)
    wet = 0.35 + 0.3 * np.cos(2 * np.pi * day / 366)
    amount = rng.gamma(0.6, 9, size=(len(day), 60, 80)) * (1 + np.exp(-((x - 10) ** 2) / 400))
    return np.where(rng.random((len(day), 1, 1)) < wet, amount, 0).astype("f4").round(1)


def main(folder):
    """Write a chunk for each month, read one month, and sum all of them."""
    x = da.from_array(rain(), chunks=(MONTHS, -1, -1))
    zarrdask.to_zarr(
        x, folder / "rain.zarr", grid="rectilinear", dimension_names=("time", "y", "x")
    )
    stored = zarrdask.open_array(folder / "rain.zarr")
    print(f"{stored.nchunks} chunks of {stored.chunks[0]} days")
    print(f"February is one chunk: {stored.blocks[1, 0, 0].shape}")

    months = zarrdask.from_zarr(stored, chunks="stored")
    sums = months.map_blocks(lambda b: b.sum(axis=0, keepdims=True), chunks=(1, 60, 80)).compute()
    print("mm a month:", *sums.mean(axis=(1, 2)).round().astype(int))
    return zarrdask.from_zarr(stored).mean(axis=(1, 2)).compute(), MONTHS, sums.mean(axis=(1, 2))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
