"""A.9: conventions of the geosciences, and pyramids."""

import json

import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, v2
from tests.test_samples import SAMPLES
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import Crs, Level, crs, multiscales, write_crs, write_multiscales

WKT = 'GEOGCRS["WGS 84",DATUM["World Geodetic System 1984"]]'
URL = "http://www.opengis.net/def/crs/EPSG/0/26711"
PROJJSON = {"type": "GeographicCRS", "name": "WGS 84"}
GROUP = dump({"zarr_format": 2})


def dataset(attributes, variable):
    """Return a group with an array ``t`` of some attributes, and a variable ``proj`` of others."""
    return {
        ".zgroup": GROUP,
        "t/.zarray": dump(v2()),
        "t/.zattrs": dump(attributes),
        "proj/.zarray": dump(v2(shape=(), chunks=())),
        "proj/.zattrs": dump(variable),
    }


def test_a73_grid_mapping_names_a_variable_that_has_the_crs():
    variable = {"crs_wkt": WKT, "grid_mapping_name": "latitude_longitude"}
    root = zarrdask.open_group(dataset({"grid_mapping": "proj"}, variable))
    found = Crs(wkt=WKT, grid_mapping={"grid_mapping_name": "latitude_longitude"})
    assert crs(root["t"]) == crs(root) == found
    assert found.definition == WKT


def test_a73_a_dataset_of_xarray_has_it_so():
    for version in ("v2", "v3"):
        assert crs(zarrdask.open_array(SAMPLES / "xarray" / version, "t")).wkt == "GEOGCS[]"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a73_it_is_written_so(zarr_format):
    root = zarrdask.create_group({}, zarr_format=zarr_format)
    t = root.create_array("t", shape=4, dtype="f4")
    write_crs(t, WKT, name="proj")
    assert dict(root["t"].attrs) == {"grid_mapping": "proj"}
    assert dict(root["proj"].attrs) == {"crs_wkt": WKT}
    assert root["proj"].shape == ()
    assert crs(root["t"]).wkt == WKT


def gdal(found):
    return zarrdask.open_array({".zarray": dump(v2()), ".zattrs": dump({"_CRS": found})})


def test_a74_gdal_writes_an_object_of_three_members():
    whole = {"url": URL, "wkt": WKT, "projjson": PROJJSON}
    assert crs(gdal(whole)) == Crs(URL, WKT, PROJJSON)


@for_each(
    ("found", "expected"),
    [
        ({"projjson": PROJJSON, "wkt": WKT, "url": URL}, URL),
        ({"projjson": PROJJSON, "wkt": WKT}, WKT),
        ({"projjson": PROJJSON}, PROJJSON),
        ({"wkt": WKT, "other": 5}, WKT),
    ],
)
def test_a74_the_url_comes_first_then_wkt_then_projjson(found, expected):
    assert crs(gdal(found)).definition == expected


@for_each("found", [{}, {"other": WKT}, WKT, {"wkt": 5}, {"projjson": "x"}, None])
def test_a74_anything_else_is_an_error_that_names_it(found):
    with pytest.raises(MetadataError) as caught:
        crs(gdal(found))
    assert caught.value.key.endswith(": _CRS")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(URL, {"url": URL}), (WKT, {"wkt": WKT}), (PROJJSON, {"projjson": PROJJSON})],
)
def test_a74_it_is_written_so(given, expected):
    t = zarrdask.create_array({}, shape=4, dtype="f4", zarr_format=2)
    write_crs(t, given, convention="gdal")
    assert dict(t.attrs) == {"_CRS": expected}


MULTISCALES = [
    {
        "datasets": [{"path": "0"}, {"path": "1"}, {"path": "2/deep"}],
        "name": "example",
        "metadata": {"method": "mean"},
        "type": "gaussian",
        "version": "0.1",
    }
]


def test_a75_a_group_tells_of_the_levels_of_a_pyramid():
    root = zarrdask.open_group({".zgroup": GROUP, ".zattrs": dump({"multiscales": MULTISCALES})})
    (found,) = multiscales(root)
    assert (found.name, found.version) == ("example", "0.1")
    assert found.levels == (Level("0"), Level("1"), Level("2/deep"))


def test_a75_a_group_may_tell_of_none():
    assert multiscales(zarrdask.open_group({".zgroup": GROUP})) == ()


def test_a75_it_is_written_so():
    values = {}
    root = zarrdask.create_group(values, zarr_format=2)
    for path, n in (("0", 8), ("1", 4), ("2/deep", 2)):
        root.create_array(path, shape=n, dtype="u1")
    write_multiscales(root, ["0", "1", "2/deep"], name="example")
    assert json.loads(values[".zattrs"]) == {
        "multiscales": [
            {
                "datasets": [{"path": "0"}, {"path": "1"}, {"path": "2/deep"}],
                "name": "example",
                "version": "0.1",
            }
        ]
    }
    assert [root[level.path].shape for level in multiscales(root)[0].levels] == [(8,), (4,), (2,)]


@for_each(
    ("found", "member"),
    [
        ({}, "multiscales"),
        ([5], "multiscales[0]"),
        ([{}], "multiscales[0].datasets"),
        ([{"datasets": [{"path": "0"}, {}]}], "multiscales[0].datasets[1].path"),
        ([{"datasets": [{"path": "0"}], "axes": "yx"}], "multiscales[0].axes"),
        (
            [{"datasets": [{"path": "0", "coordinateTransformations": 5}]}],
            "multiscales[0].datasets[0].coordinateTransformations",
        ),
    ],
)
def test_a75_what_is_wrong_is_an_error_that_names_the_member(found, member):
    root = zarrdask.open_group({".zgroup": GROUP, ".zattrs": dump({"multiscales": found})})
    with pytest.raises(MetadataError) as caught:
        multiscales(root)
    assert caught.value.key.endswith(f": {member}")


def test_a75_no_level_lies_outside_the_group():
    found = [{"datasets": [{"path": "../elsewhere"}]}]
    root = zarrdask.open_group({".zgroup": GROUP, ".zattrs": dump({"multiscales": found})})
    with pytest.raises(MetadataError):
        multiscales(root)
