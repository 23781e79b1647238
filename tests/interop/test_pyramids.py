"""Other software validates and reads the attributes of pyramids that zarrdask writes."""

import numpy as np
import pytest
import xarray as xr

import zarrdask
import zarrdask.xarray
from tests.tools.conventions.nodes import PlannedLevel
from zarrdask.tools.conventions import GeoZarr, Level, OmeZarr, crs, multiscales, write_crs

LEVELS = [PlannedLevel("0", (2, 8, 6), (1, 1, 1)), PlannedLevel("1", (2, 4, 3), (1, 2, 2))]
NAMES = ("c", "y", "x")
VERSIONS = {2: "0.4", 3: "0.5"}


@pytest.fixture(params=[2, 3])
def image(request, tmp_path):
    """Return a group with a pyramid of OME-Zarr and its place."""
    group = zarrdask.create_group(tmp_path / "image.zarr", zarr_format=request.param)
    for level in LEVELS:
        z = group.create_array(level.path, shape=level.shape, dtype="u2", dimension_names=NAMES)
    group.attrs.update(
        OmeZarr().attributes(
            LEVELS,
            NAMES,
            z.dtype,
            zarr_format=request.param,
            method="mean",
            name="cells",
            units={"y": "micrometer", "x": "micrometer"},
            scale={"y": 0.5, "x": 0.25},
            omero={"channels": [{"color": "FF0000", "label": n} for n in "ab"]},
        )
    )
    return tmp_path / "image.zarr", group


@pytest.mark.parametrize("schema", ["image", "strict_image"])
def test_the_published_schemas_of_ome_zarr_hold(pyramids, image, schema):
    _, group = image
    version = VERSIONS[group.zarr_format]
    attributes = group.attrs.asdict()
    assert pyramids.call("problems", version=version, attributes=attributes, name=schema) == []


def test_ome_zarr_models_ngff_zarr_and_ome_zarr_read_the_same_levels(pyramids, image):
    place, _ = image
    assert pyramids.call("models", place=str(place)) == [
        [
            [{"type": "scale", "scale": [1.0, 0.5, 0.25]}],
            [
                {"type": "scale", "scale": [1.0, 1.0, 0.5]},
                {"type": "translation", "translation": [0.0, 0.25, 0.125]},
            ],
        ]
    ]
    units = {"c": None, "y": "micrometer", "x": "micrometer"}
    scale = {"c": 1.0, "y": 1.0, "x": 0.5}
    translation = {"c": 0.0, "y": 0.25, "x": 0.125}
    _, half = pyramids.call("ngff", place=str(place))
    assert half == [list(NAMES), scale, translation, units, [2, 4, 3]]
    shapes, axes, channels = pyramids.call("ome_zarr", place=str(place))
    assert (shapes, axes, channels) == ([[2, 8, 6], [2, 4, 3]], list(NAMES), ["a", "b"])


def test_zarr_cm_finds_valid_attributes_of_a_pyramid_of_maps(pyramids):
    written = GeoZarr().attributes(
        LEVELS,
        NAMES,
        None,
        zarr_format=3,
        method="mean",
        crs="EPSG:32633",
        transform=(10, 0, 500, 0, -10, 4000),
    )
    names = pyramids.call("conventions", attributes=written)
    assert names == ["multiscales", "proj", "spatial"]


def test_zarr_cm_finds_valid_attributes_of_an_array(pyramids):
    z = zarrdask.create_array({}, shape=(4, 6), dtype="f4", dimension_names=("y", "x"))
    write_crs(z, "EPSG:4326", transform=(1, 0, 0, 0, -1, 0), convention="proj")
    assert pyramids.call("conventions", attributes=z.attrs.asdict()) == ["proj", "spatial"]


def test_zarrdask_reads_ome_zarr_0_6_of_ngff_zarr(pyramids, tmp_path):
    place = tmp_path / "image.zarr"
    pyramids.call("write_ngff", place=str(place), version="0.6")
    [pyramid] = multiscales(zarrdask.open_group(place))
    assert [axis["name"] for axis in pyramid.axes] == ["y", "x"]
    scales = [(level.scale, level.translation) for level in pyramid.levels]
    assert scales == [((0.5, 0.25), (1.0, 2.0)), ((1.0, 0.5), (1.25, 2.125))]
    assert isinstance(pyramid.levels[0], Level)


def test_topozarr_describes_the_same_levels(pyramids, tmp_path):
    values = np.arange(64 * 48, dtype="f4").reshape(64, 48)
    np.save(tmp_path / "values.npy", values)
    place = tmp_path / "topozarr.zarr"
    half = pyramids.call("write_topozarr", place=str(place), values=str(tmp_path / "values.npy"))
    theirs = zarrdask.open_group(place)

    coordinates = {"y": 4e6 - 5 - 10.0 * np.arange(64), "x": 5e5 + 5 + 10.0 * np.arange(48)}
    dataset = xr.Dataset({"t": (("y", "x"), values)}, coordinates)
    dataset.zarrdask.to_pyramid(tmp_path / "ours.zarr", levels=2, crs="EPSG:32633")
    ours = zarrdask.open_group(tmp_path / "ours.zarr")
    [expected], [found] = multiscales(theirs), multiscales(ours)
    assert [level.spatial for level in found.levels] == [level.spatial for level in expected.levels]
    assert found.levels[1].scale == expected.levels[1].scale
    assert crs(ours).code == crs(theirs).code == "EPSG:32633"
    for name in "yx":
        assert np.array_equal(ours["1"][name][...], theirs["1"][name][...])
    assert ours["1/t"][...].tolist() == half
    names = pyramids.call("conventions", attributes=ours.attrs.asdict())
    assert names == ["multiscales", "proj", "spatial"]
    assert pyramids.call("conventions", attributes=ours["1"].attrs.asdict()) == names[1:]
