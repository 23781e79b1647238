"""rasterio finds the reference system and the place of arrays that zarrdask describes."""

import numpy as np
import pytest
import rasterio
import xarray as xr

import zarrdask
import zarrdask.xarray
from zarrdask.tools.conventions import write_crs

TRANSFORM = rasterio.Affine(10.0, 0.0, 500_000.0, 0.0, -10.0, 4_000_000.0)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("convention", ["cf", "gdal"])
def test_an_array_is_found_where_it_lies(tmp_path, zarr_format, convention):
    root = zarrdask.create_group(tmp_path / "map.zarr", zarr_format=zarr_format)
    values = np.arange(24, dtype="f4").reshape(4, 6)
    array = root.create_array(
        "t", shape=(4, 6), dtype="f4", dimension_names=("y", "x"), compressors="gzip"
    )
    array[...] = values
    system = rasterio.CRS.from_epsg(32633)
    write_crs(array, system, transform=TRANSFORM, convention=convention)
    with rasterio.open(f'ZARR:"{tmp_path / "map.zarr"}":/t') as dataset:
        assert (dataset.crs, dataset.transform) == (system, TRANSFORM)
        assert np.array_equal(dataset.read(1), values)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_levels_of_a_dataset_are_found_where_they_lie(tmp_path, zarr_format):
    place = {"y": 4e6 - 5 - 10 * np.arange(9.0), "x": 5e5 + 5 + 10 * np.arange(7.0)}
    dataset = xr.Dataset({"t": (("y", "x"), np.arange(63, dtype="f4").reshape(9, 7))}, place)
    system = rasterio.CRS.from_epsg(32633)
    url = tmp_path / "map.zarr"
    dataset.zarrdask.to_pyramid(url, levels=2, crs=system, zarr_format=zarr_format)
    with rasterio.open(f'ZARR:"{url}":/1/t') as level:
        assert level.crs == system
        assert level.transform == TRANSFORM @ rasterio.Affine.scale(2)
        half = dataset["t"].coarsen(y=2, x=2, boundary="trim").mean()
        assert np.array_equal(level.read(1)[:4, :3], half)
