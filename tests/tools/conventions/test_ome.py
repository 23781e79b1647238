"""OME-Zarr: release candidates of 0.6 are read, 0.4 and 0.5 are written."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.tools.conventions.nodes import PlannedLevel
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import Level, OmeZarr, multiscales

LEVELS = [PlannedLevel("0", (2, 9, 6), (1, 1, 1)), PlannedLevel("1", (2, 3, 3), (1, 3, 2))]


def attributes(levels=LEVELS, names=("c", "y", "x"), dtype="u2", zarr_format=3, **details):
    return OmeZarr().attributes(
        levels, names, np.dtype(dtype), zarr_format=zarr_format, method="mean", **details
    )


def ome(transformation, **members):
    dataset = {"path": "s0", "coordinateTransformations": [transformation]}
    systems = [
        {"name": "world", "axes": [{"name": "b"}, {"name": "a"}]},
        {"name": "intrinsic", "axes": [{"name": "y", "unit": "m"}, {"name": "x"}]},
    ]
    document = {"datasets": [dataset], "coordinateSystems": systems, **members}
    attributes = {"ome": {"version": "0.6rc0", "multiscales": [document]}}
    [pyramid] = multiscales(zarrdask.create_group({}, attributes=attributes))
    return pyramid


IO = {"input": {"path": "s0"}, "output": {"name": "intrinsic"}}


@for_each(
    ("transformation", "level"),
    [
        ({"type": "scale", "scale": [2, 3]}, Level("s0", (2.0, 3.0))),
        ({"type": "identity"}, Level("s0")),
        (
            {
                "type": "sequence",
                "transformations": [
                    {"type": "scale", "scale": [2, 3]},
                    {"type": "translation", "translation": [1, 1.5]},
                ],
            },
            Level("s0", (2.0, 3.0), (1.0, 1.5)),
        ),
    ],
)
def test_levels_of_ome_zarr_0_6_are_in_the_system_that_they_lead_to(transformation, level):
    onwards = {"type": "scale", "scale": [10, 10], "input": {"name": "intrinsic"}}
    pyramid = ome({**transformation, **IO}, coordinateTransformations=[onwards])
    assert pyramid.levels == (level,)
    assert [axis["name"] for axis in pyramid.axes] == ["y", "x"]
    assert [system["name"] for system in pyramid.coordinate_systems] == ["world", "intrinsic"]
    assert pyramid.transformations == (onwards,)
    assert pyramid.version == "0.6rc0"


def test_a_system_may_be_named_by_text():
    pyramid = ome({"type": "identity", "input": "s0", "output": "world"})
    assert [axis["name"] for axis in pyramid.axes] == ["b", "a"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_levels_are_written_with_the_centres_of_their_cells(zarr_format):
    written = attributes(
        zarr_format=zarr_format,
        name="cells",
        units={"y": "micrometer"},
        scale={"y": 0.5},
        translation=(0, 10, 0),
    )
    root = zarrdask.create_group({}, zarr_format=zarr_format, attributes=written)
    [pyramid] = multiscales(root)
    assert pyramid.levels == (
        Level("0", (1.0, 0.5, 1.0), (0.0, 10.0, 0.0)),
        Level("1", (1.0, 1.5, 2.0), (0.0, 10.5, 0.5)),
    )
    assert pyramid.axes == (
        {"name": "c", "type": "channel"},
        {"name": "y", "type": "space", "unit": "micrometer"},
        {"name": "x", "type": "space"},
    )
    assert (pyramid.name, pyramid.version) == ("cells", {2: "0.4", 3: "0.5"}[zarr_format])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_display_settings_are_beside_the_pyramid(zarr_format):
    omero = {"channels": [{"color": "FF0000", "label": "a"}, {"color": "00FF00"}]}
    written = attributes(zarr_format=zarr_format, omero=omero)
    display = (written if zarr_format == 2 else written["ome"])["omero"]
    assert display["channels"][0] == {
        "color": "FF0000",
        "label": "a",
        "window": {"min": 0, "max": 65535, "start": 0, "end": 65535},
    }


@for_each(
    ("details", "match"),
    [
        ({"units": {"y": "um"}}, "unit of axis 'y'.*'um'.*micrometer"),
        ({"units": {"z": "meter"}}, "units: .*'z'"),
        ({"scale": (1, 2)}, "scale: .*one number for each axis"),
        ({"translation": {"z": 2}}, "translation: .*'z'"),
        ({"omero": {"channels": [{"color": "FF0000"}]}}, "one item for each channel"),
    ],
)
def test_details_that_do_not_fit_the_axes_are_an_error(details, match):
    with pytest.raises(MetadataError, match=match):
        attributes(**details)
