"""Maps at several resolutions: heights as means, and classes of land cover as the most frequent."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr

import zarrdask
import zarrdask.xarray  # the accessor ds.zarrdask
from zarrdask.tools.conventions import crs, spatial

SIZE = 600  # cells of 30 m
WATER, MEADOW, FOREST, ROCK = range(4)
UTM = (
    'PROJCRS["WGS 84 / UTM zone 32N",BASEGEOGCRS["WGS 84",DATUM["World Geodetic System 1984",'
    'ELLIPSOID["WGS 84",6378137,298.257223563,LENGTHUNIT["metre",1]]]],'
    'CONVERSION["UTM zone 32N",METHOD["Transverse Mercator"],'
    'PARAMETER["Latitude of natural origin",0],PARAMETER["Longitude of natural origin",9],'
    'PARAMETER["Scale factor at natural origin",0.9996],PARAMETER["False easting",500000],'
    'PARAMETER["False northing",0]],CS[Cartesian,2],AXIS["(E)",east],AXIS["(N)",north],'
    'LENGTHUNIT["metre",1],ID["EPSG",32632]]'
)


def terrain():
    """Return made-up heights and land cover on a grid of UTM coordinates."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    height = np.zeros((SIZE, SIZE))
    for n in range(1, 40):
        ky, kx = rng.normal(size=2) * n
        height += np.sin(2 * np.pi * (ky * y + kx * x) + rng.uniform(0, 7)) * 600 / n
    height = (height - height.min()).astype("f4")
    limits = np.quantile(height, [0.15, 0.55, 0.85])
    cover = np.digitize(height + rng.normal(scale=120, size=height.shape), limits).astype("u1")
    height[:40, :80] = np.nan  # outside of the survey
    names = {"flag_values": [0, 1, 2, 3], "flag_meanings": "water meadow forest rock"}
    return xr.Dataset(
        {"height": (("y", "x"), height, {"units": "m"}), "cover": (("y", "x"), cover, names)},
        {"y": 5_300_000 - 15 - 30.0 * np.arange(SIZE), "x": 600_015 + 30.0 * np.arange(SIZE)},
    )


def main(folder):
    """Write the levels, and read the one that an overview of 100 cells needs."""
    path = folder / "terrain.zarr"
    encoding = {name: {"chunks": (100, 100)} for name in ("height", "cover")}
    terrain().zarrdask.to_pyramid(path, crs=UTM, encoding=encoding)

    group = zarrdask.open_group(path)
    for name in sorted(group):
        shape, place = group[name]["height"].shape, spatial(group[name])
        print(f"level {name}: {shape}, cells of {place.transform[0]:.0f} m")
    print("EPSG" in crs(group["3/height"]).definition)

    tree = xr.open_datatree(path, engine="zarrdask")
    overview = next(level for level in tree.children.values() if level.sizes["x"] <= 100)
    print(f"level {overview.name}: x from {overview.x[0].item()} to {overview.x[-1].item()}")
    rock = [float((level["cover"] == ROCK).mean()) for level in tree.children.values()]
    print("rock:", ", ".join(f"{share:.1%}" for share in rock))
    return [(level["height"].values, level["cover"].values) for level in tree.children.values()]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
