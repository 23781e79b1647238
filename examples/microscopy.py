"""A microscopy volume as OME-Zarr: three resolutions, computed and written in one graph."""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np

import zarrdask
from zarrdask.conventions import Level, multiscales, write_multiscales

SHAPE = (32, 384, 384)
PIXEL = 0.25  # um


def cells():
    """Return a volume of bright nuclei on a dark, noisy background."""
    rng = np.random.default_rng(5)
    volume = rng.poisson(90, size=SHAPE).astype("f4")
    z, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    for cz, cy, cx in rng.uniform(0, SHAPE, size=(60, 3)):
        radius, brightness = rng.uniform(8, 20), rng.uniform(400, 1800)
        near = np.s_[:, max(int(cy) - 40, 0) : int(cy) + 40, max(int(cx) - 40, 0) : int(cx) + 40]
        distance = (2.5 * (z - cz)) ** 2 + (y[near[:2]] - cy) ** 2 + (x[..., near[2]] - cx) ** 2
        volume[near] += brightness / (1 + np.exp((np.sqrt(distance) - radius) / 2))
    return volume.astype("u2")


def describe(path, factor):
    """Return the level of means of `factor` times `factor` pixels.

    The positions are those of the centres of pixels: that of a mean lies between the pixels.
    """
    scale, offset = PIXEL * factor, PIXEL * (factor - 1) / 2
    return Level(path, scale=(1.0, scale, scale), translation=(0.0, offset, offset))


def main(folder):
    """Write the pyramid and read a window at the resolution that a screen needs."""
    full = da.from_array(cells(), chunks=(16, 128, 128))
    half = da.coarsen(np.mean, full, {1: 2, 2: 2}).astype("u2")
    quarter = da.coarsen(np.mean, half, {1: 2, 2: 2}).astype("u2")
    levels = {"0": full, "1": half, "2": quarter}
    zarrdask.to_zarr(
        levels,
        folder / "cells.ome.zarr",
        chunks=(8, 64, 64),
        compressors="blosc",
        dimension_names=("z", "y", "x"),
    )
    group = zarrdask.open_group(folder / "cells.ome.zarr", mode="r+")
    described = [describe(path, 2**n) for n, path in enumerate(levels)]
    write_multiscales(group, described, name="cells", convention="ome")

    print(group.tree())
    [pyramid] = multiscales(group)
    for level in pyramid.levels:
        print(f"level {level.path}: {level.scale[1]} um a pixel, from {level.translation[1]} um")
    screen = next(level for level in pyramid.levels if group[level.path].shape[2] <= 200)
    print(f"level {screen.path} fits 200 pixels: {group[screen.path][16].shape}")
    return [group[level.path][16] for level in pyramid.levels]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
