"""Conventions: what is found where, and what is refused."""

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.conventions import (
    Crs,
    Level,
    Spatial,
    crs,
    multiscales,
    spatial,
    write_crs,
    write_multiscales,
)
from zarrdask.errors import MetadataError, NodeNotFoundError, ReadOnlyError

WKT = 'GEOGCRS["WGS 84"]'


@pytest.fixture
def root():
    return zarrdask.create_group({})


def make(root, path, **attributes):
    return root.create_array(path, shape=(), dtype="i4", attributes=attributes)


# ---- coordinate reference systems


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


def test_an_object_that_gives_wkt_is_written(root):
    class Pyproj:
        def to_wkt(self):
            return WKT

    write_crs(make(root, "t"), Pyproj())
    assert crs(root["t"]).wkt == WKT


def test_a_variable_that_is_there_is_used(root):
    make(root, "proj", long_name="ours")
    for name in ("t", "u"):
        write_crs(make(root, name), Crs(wkt=WKT, grid_mapping={"earth": "round"}), name="proj")
    assert dict(root["proj"].attrs) == {"long_name": "ours", "earth": "round", "crs_wkt": WKT}
    assert crs(root["u"]) == crs(root["t"])


@pytest.mark.parametrize("found", ["EPSG:4326", 5, None, Crs(), b"x"])
@pytest.mark.parametrize("convention", ["cf", "gdal"])
def test_what_is_no_crs_is_not_written(root, found, convention):
    t = make(root, "t")
    with pytest.raises(MetadataError):
        write_crs(t, found, convention=convention)
    assert dict(t.attrs) == {}


def test_cf_needs_wkt_and_a_group(root):
    with pytest.raises(MetadataError, match="gdal"):
        write_crs(make(root, "t"), {"type": "GeographicCRS"})
    with pytest.raises(MetadataError, match="root"):
        write_crs(zarrdask.create_array({}, shape=3, dtype="i4"), WKT)
    assert list(root) == ["t"]


@pytest.mark.parametrize("convention", ["cf", "gdal"])
def test_an_array_that_was_opened_for_reading_stays(root, convention):
    make(root, "t")
    with pytest.raises(ReadOnlyError):
        write_crs(zarrdask.open_array(root, "t"), WKT, convention=convention)
    assert list(root) == ["t"]


# ---- proj:


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


def test_gdal_stores_no_codes(root):
    make(root, "t")
    with pytest.raises(MetadataError, match="code of an authority"):
        write_crs(root["t"], Crs(code="EPSG:4326"), convention="gdal")
    assert dict(root["t"].attrs) == {}


# ---- spatial:


def test_the_place_in_space(root):
    attributes = {
        "spatial:dimensions": ["y", "x"],
        "spatial:transform": [10, 0, 500000, 0, -10, 5000000],
        "spatial:bbox": [0.0, 1.0, 2.0, 3.0],
        "spatial:shape": [20, 30],
        "spatial:registration": "node",
        "spatial:later": "unknown",
    }
    make(root, "t", **attributes)
    place = (10, 0, 500000, 0, -10, 5000000)
    expected = Spatial(("y", "x"), place, (0, 1, 2, 3), (20, 30), "node")
    assert spatial(root["t"]) == expected
    assert spatial(root) is None
    root.attrs["spatial:dimensions"] = ["y", "x"]
    assert spatial(root) == Spatial(dimensions=("y", "x"), registration="pixel")


@for_each(
    ("name", "value"),
    [
        ("transform", [1, 2, 3]),
        ("transform", [1, 2, 3, 4, 5, "6"]),
        ("bbox", 5),
        ("shape", [True, 2]),
        ("dimensions", "yx"),
        ("dimensions", [1, 2]),
        ("registration", 1),
    ],
)
def test_a_place_of_another_form_is_an_error_that_names_the_attribute(name, value):
    root = zarrdask.create_group({}, attributes={f"spatial:{name}": value})
    with pytest.raises(MetadataError, match=f"spatial:{name}"):
        spatial(root)


# ---- pyramids


LAYOUT = [
    {"asset": "/third", "derived_from": "half", "transform": {"scale": [3.0, 3.0]}},
    {"asset": "full", "spatial:shape": [60, 120]},
    {
        "asset": "half",
        "derived_from": "full",
        "transform": {"scale": [2.0, 2], "translation": [0.5, 0.5]},
    },
]


def test_levels_of_a_layout_are_in_terms_of_the_level_that_all_are_derived_from(root):
    root.attrs["multiscales"] = {"layout": LAYOUT, "resampling_method": "average"}
    [pyramid] = multiscales(root)
    assert pyramid.levels == (
        Level("third", (6.0, 6.0), (0.5, 0.5)),
        Level("full", spatial=Spatial(shape=(60, 120))),
        Level("half", (2.0, 2.0), (0.5, 0.5)),
    )


@for_each(
    ("layout", "key"),
    [
        (5, "layout"),
        ([5], r"layout\[0\]"),
        ([{}], "asset"),
        ([{"asset": "a", "derived_from": "b"}], "derived_from"),
        ([{"asset": "a", "derived_from": "a"}], "derived_from"),
        ([{"asset": "a", "transform": {"scale": 2}}], "transform.scale"),
        ([{"asset": "a", "transform": []}], "transform"),
        ([{"asset": "a", "transform": {"scale": [1], "translation": [1, 1]}}], "one number"),
    ],
)
def test_a_layout_of_another_form_is_an_error(layout, key):
    root = zarrdask.create_group({}, attributes={"multiscales": {"layout": layout}})
    with pytest.raises(MetadataError, match=key):
        multiscales(root)


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


def test_pyramids_beside_another_attribute_of_ome(root):
    root.attrs.update(ome={"omero": {}}, multiscales=[{"datasets": [{"path": "0"}]}])
    assert multiscales(root)[0].levels == (Level("0"),)


def test_axes_may_be_names(root):
    root.attrs["multiscales"] = [{"datasets": [{"path": "0"}], "axes": ["y", "x"]}]
    assert multiscales(root)[0].axes == ({"name": "y"}, {"name": "x"})


def test_several_pyramids(root):
    root.attrs["multiscales"] = [{"datasets": [{"path": n}], "name": n} for n in "ab"]
    assert [found.name for found in multiscales(root)] == ["a", "b"]


def test_unknown_transformations_are_passed_over(root):
    transformations = [{"type": "affine"}, {"type": "scale", "path": "elsewhere"}]
    dataset = {"path": "0", "coordinateTransformations": transformations}
    root.attrs["multiscales"] = [{"datasets": [dataset]}]
    assert multiscales(root)[0].levels == (Level("0"),)


@pytest.mark.parametrize("scale", [["2"], [True], [None]])
def test_what_is_no_number_is_an_error(root, scale):
    dataset = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}
    root.attrs["multiscales"] = [{"datasets": [dataset]}]
    with pytest.raises(MetadataError, match="must be a list of numbers"):
        multiscales(root)


def test_numbers_for_different_axes_are_an_error(root):
    transformations = [
        {"type": "scale", "scale": [1, 2]},
        {"type": "translation", "translation": [1]},
    ]
    dataset = {"path": "0", "coordinateTransformations": transformations}
    root.attrs["multiscales"] = [{"datasets": [dataset]}]
    with pytest.raises(MetadataError, match="one number for each axis"):
        multiscales(root)


def test_scales_are_written_also_where_they_need_not_be(root):
    make(root, "0")
    write_multiscales(root, [Level("0", (2.0,), (1.0,))], axes=["t"])
    (found,) = multiscales(root)
    assert found.levels == (Level("0", (2.0,), (1.0,)),)
    assert found.axes == ({"name": "t"},)


def test_a_level_that_is_not_there_is_an_error(root):
    with pytest.raises(NodeNotFoundError, match="gone"):
        write_multiscales(root, ["gone"])
    assert dict(root.attrs) == {}


def test_a_group_that_was_opened_for_reading_stays(root):
    make(root, "0")
    with pytest.raises(ReadOnlyError):
        write_multiscales(zarrdask.open_group(root.store), ["0"])
