"""Pyramids of maps: the layout of levels, the reference system and the place of each level."""

import numpy as np
import pytest

import zarrdask
from tests.tools.conventions.nodes import PlannedLevel, make
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import GeoZarr, Spatial, crs, multiscales

LEVELS = [
    PlannedLevel("0", (3, 100, 60), (1, 1, 1)),
    PlannedLevel("1", (3, 50, 20), (1, 2, 3)),
    PlannedLevel("2", (3, 25, 10), (1, 4, 6)),
]


def attributes(names=("time", "y", "x"), **details):
    dtype = np.dtype("f4")
    return GeoZarr().attributes(LEVELS, names, dtype, zarr_format=3, method="mean", **details)


def test_levels_keep_the_corner_of_the_map():
    written = attributes(crs="EPSG:32633", transform=(10.0, 0.0, 500.0, 0.0, -10.0, 4000.0))
    root = zarrdask.create_group({}, attributes=written)
    [pyramid] = multiscales(root)
    assert [level.scale for level in pyramid.levels] == [(1, 1, 1), (1, 2, 3), (1, 4, 6)]
    assert {level.translation for level in pyramid.levels} == {(0.0, 0.0, 0.0)}
    assert pyramid.levels[2].spatial == Spatial(
        transform=(60.0, 0.0, 500.0, 0.0, -40.0, 4000.0), shape=(25, 10)
    )
    assert root.attrs["spatial:bbox"] == [500.0, 3000.0, 1100.0, 4000.0]
    assert root.attrs["spatial:dimensions"] == ["y", "x"]
    names = [item["name"] for item in root.attrs["zarr_conventions"]]
    assert names == ["multiscales", "proj", "spatial"]
    assert crs(make(root, "0")).code == "EPSG:32633"


def test_each_level_is_derived_from_the_one_before():
    written = attributes()
    items = written["multiscales"]["layout"]
    assert [item.get("derived_from") for item in items] == [None, "0", "1"]
    assert [item["transform"]["scale"] for item in items] == [[1, 1, 1], [1, 2, 3], [1, 2, 2]]
    assert written["multiscales"]["resampling_method"] == "average"
    assert [item["name"] for item in written["zarr_conventions"]] == ["multiscales"]


@pytest.mark.parametrize("names", [None, ("time", None, "x")])
def test_a_transformation_requires_names_of_rows_and_columns(names):
    with pytest.raises(MetadataError, match="names of the last two axes"):
        attributes(names, transform=(1, 0, 0, 0, 1, 0))
