"""Conventions: what is found where, and what is refused."""

import pytest

import zarrdask
from tests.covering import for_each
from tests.tools.conventions.nodes import make
from zarrdask.errors import MetadataError, NodeNotFoundError
from zarrdask.tools.conventions import (
    Crs,
    crs,
)

WKT = 'GEOGCRS["WGS 84"]'


def test_there_may_be_none(root):
    make(root, "t")
    assert crs(root["t"]) is None
    assert crs(root) is None


def test_spatial_ref_does_as_well_and_crs_wkt_comes_first(root):
    make(root, "t", grid_mapping="proj")
    make(root, "proj", spatial_ref=WKT)
    assert crs(root["t"]) == Crs(wkt=WKT, grid_mapping={})
    root["proj"].attrs["crs_wkt"] = "newer[]"
    assert crs(root["t"]).wkt == "newer[]"


def test_parameters_alone_are_given_as_they_are(root):
    make(root, "t", grid_mapping="proj")
    make(root, "proj", grid_mapping_name="latitude_longitude", semi_major_axis=6378137.0)
    found = crs(root["t"])
    assert found.definition is None
    assert found.grid_mapping["semi_major_axis"] == 6378137.0


@pytest.mark.parametrize(
    ("path", "name", "variable"),
    [
        ("t", "proj", "proj"),
        ("a/b/t", "proj", "a/b/proj"),
        ("a/b/t", "proj", "a/proj"),
        ("a/b/t", "proj", "proj"),
        ("a/b/t", "/proj", "proj"),
        ("a/b/t", "../proj", "a/proj"),
        ("a/b/t", "/x/proj", "x/proj"),
        ("a/b/t", "c/proj", "a/b/c/proj"),
        ("t", "proj: x y other: lat lon", "proj"),
        ("t", "../../proj", "proj"),
    ],
)
def test_the_variable_is_found_as_cf_says(root, path, name, variable):
    make(root, path, grid_mapping=name)
    make(root, variable, crs_wkt=WKT)
    assert crs(root[path]).wkt == WKT


def test_the_nearest_variable_of_a_name_counts(root):
    make(root, "a/t", grid_mapping="proj")
    make(root, "proj", crs_wkt="far[]")
    make(root, "a/proj", crs_wkt=WKT)
    assert crs(root["a/t"]).wkt == WKT


@pytest.mark.parametrize("name", ["gone", "t", "/a/gone", ".."])
def test_a_variable_that_is_not_there_is_an_error_that_names_it(root, name):
    make(root, "t", grid_mapping=name)
    with pytest.raises(NodeNotFoundError, match="grid_mapping") as caught:
        crs(root["t"])
    assert caught.value.found == name


@pytest.mark.parametrize("name", ["", " ", 5, None, ["proj"]])
def test_what_names_no_variable_is_an_error(root, name):
    make(root, "t", grid_mapping=name)
    with pytest.raises(MetadataError, match="grid_mapping"):
        crs(root["t"])


def test_gdals_way_comes_first(root):
    make(root, "t", grid_mapping="proj", _CRS={"wkt": WKT})
    make(root, "proj", crs_wkt="other[]")
    assert crs(root["t"]) == Crs(wkt=WKT)


def test_a_group_has_its_own_or_that_of_its_arrays(root):
    make(root, "a", _CRS={"wkt": WKT})
    make(root, "b", _CRS={"wkt": WKT})
    make(root, "c")
    assert crs(root) == Crs(wkt=WKT)
    make(root, "d", _CRS={"wkt": "other[]"})
    with pytest.raises(MetadataError, match="different"):
        crs(root)
    root.attrs["grid_mapping"] = "proj"
    make(root, "proj", crs_wkt="own[]")
    assert crs(root).wkt == "own[]"


def test_consolidated_metadata_are_enough():
    values = {}
    root = zarrdask.create_group(values)
    make(root, "t", grid_mapping="proj")
    make(root, "proj", crs_wkt=WKT)
    zarrdask.consolidate_metadata(values)
    for name in ("t", "proj"):
        del values[f"{name}/zarr.json"]
    assert crs(zarrdask.open_group(values)["t"]).wkt == WKT


def test_what_is_returned_can_be_changed(root):
    make(root, "t", _CRS={"projjson": {"name": "x"}})
    crs(root["t"]).projjson["name"] = "y"
    assert crs(root["t"]).projjson == {"name": "x"}


@for_each(
    ("attributes", "expected", "definition"),
    [
        ({"proj:code": "EPSG:4326"}, Crs(code="EPSG:4326"), "EPSG:4326"),
        ({"proj:wkt2": WKT}, Crs(wkt=WKT), WKT),
        ({"proj:projjson": {"type": "a"}}, Crs(projjson={"type": "a"}), {"type": "a"}),
        ({"proj:wkt2": WKT, "proj:code": "A:1"}, Crs(code="A:1", wkt=WKT), "A:1"),
    ],
)
def test_the_attributes_of_the_convention_proj(attributes, expected, definition):
    root = zarrdask.create_group({})
    make(root, "t", **attributes)
    make(root, "u", grid_mapping="gone", **attributes)
    assert crs(root["t"]) == crs(root["u"]) == crs(root) == expected
    assert expected.definition == definition


def test_those_of_a_group_hold_for_the_arrays_right_below_it(root):
    root.attrs["proj:code"] = "EPSG:4326"
    make(root, "t")
    make(root, "own", **{"proj:code": "EPSG:3857"})
    make(root, "below/t")
    assert crs(root) == crs(root["t"]) == Crs(code="EPSG:4326")
    assert crs(root["own"]).code == "EPSG:3857"
    assert crs(root["below/t"]) is None
    assert crs(root["below"]) is None


def test_a_value_of_another_type_is_an_error_that_names_the_attribute(root):
    make(root, "t", **{"proj:code": 4326})
    with pytest.raises(MetadataError, match="proj:code"):
        crs(root["t"])
