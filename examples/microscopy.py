"""A microscopy volume as OME-Zarr: three resolutions, computed in one pass, and updated."""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np

import zarrdask
from zarrdask.tools.conventions import multiscales

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


def main(folder):
    """Write the pyramid and read a window at the resolution that a screen needs."""
    image = da.from_array(cells(), chunks=(16, 128, 128))
    plan = zarrdask.pyramid(
        image,
        folder / "cells.ome.zarr",
        factors={1: 2, 2: 2},
        levels=3,
        chunks=(8, 64, 64),
        dimension_names=("z", "y", "x"),
        name="cells",
        scale={"z": 1.0, "y": PIXEL, "x": PIXEL},
        units=dict.fromkeys("zyx", "micrometer"),
        omero={"channels": [{"label": "nuclei", "color": "FFFFFF"}]},
    )
    group = plan.execute(progress=False)
    print(group.tree())
    [pyramid] = multiscales(group)
    for level in pyramid.levels:
        start = 0.0 if level.translation is None else level.translation[1]
        print(f"level {level.path}: {level.scale[1]} um a pixel, from {start} um")
    screen = next(level for level in pyramid.levels if group[level.path].shape[2] <= 200)
    print(f"level {screen.path} fits 200 pixels: {group[screen.path][16].shape}")

    # A region of level 0 is corrected: the levels follow.
    group["0"][:, :64, :64] = 90
    corner = (slice(None), slice(0, 64), slice(0, 64))
    group = zarrdask.update_pyramid(group, region=corner).execute(progress=False)
    print("the corner of level 2:", np.unique(group["2"][:, :16, :16]))
    return [group[level.path][16] for level in pyramid.levels]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
