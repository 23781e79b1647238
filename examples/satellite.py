"""A satellite time series that grows: a scene a day, with clouds and gaps, appended as it arrives.

Each scene covers a part of the region, and pixels under clouds are missing. Chunks without a valid
pixel are not stored. A scene that was processed again replaces its day.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import dask.array as da
import numpy as np

import zarrdask

SIZE = 512
MISSING = -1


def scene(day):
    """Return one scene of reflectance: a swath of fields, without what clouds hide."""
    rng = np.random.default_rng(day)
    y, x = np.mgrid[:SIZE, :SIZE]
    fields = 3000 + 1500 * np.sin((x // 40) * 12.9 + (y // 56) * 4.1) + 10 * day
    image = (fields + rng.normal(scale=60, size=fields.shape)).astype("i2")
    clouds = np.zeros(fields.shape, bool)
    for cy, cx, radius in rng.integers([0, 0, 20], [SIZE, SIZE, 110], size=(8, 3)):
        clouds |= (y - cy) ** 2 + (x - cx) ** 2 < radius**2
    swath = np.abs(x + 0.4 * y - 130 * (day % 6) + 60) < 190
    return np.where(swath & ~clouds, image, MISSING)


def scenes(first, last):
    """Return the scenes of several days as a Dask array, a block a day."""
    blocks = [
        da.from_delayed(delayed, (SIZE, SIZE), "i2")
        for delayed in map(dask.delayed(scene), range(first, last))
    ]
    return da.stack(blocks)


def main(folder):
    """Write ten days, append ten more, replace one, and reduce all."""
    path = folder / "reflectance.zarr"
    zarrdask.to_zarr(
        scenes(0, 10),
        path,
        chunks=(1, 64, 64),
        shards=(5, 256, 256),
        fill_value=MISSING,
        dimension_names=("time", "y", "x"),
    )
    for day in range(10, 20, 5):
        zarrdask.append(scenes(day, day + 5), path, axis=0)
    zarrdask.to_zarr(scenes(103, 104), path, region={"time": slice(3, 4)})

    stored = zarrdask.open_array(path)
    print(f"{stored.shape[0]} days; {stored.nchunks_stored()} of {stored.nchunks} chunks stored")
    x = zarrdask.from_zarr(path)
    valid = x != MISSING
    count = valid.sum(axis=0)
    mean = da.where(valid, x, 0).sum(axis=0) / da.maximum(count, 1)
    count, mean = da.compute(count, mean)
    print(
        f"a pixel is seen on {count.min()} to {count.max()} days, on {count.mean():.1f} on average"
    )
    return stored[14], count, np.where(count, mean, np.nan)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
