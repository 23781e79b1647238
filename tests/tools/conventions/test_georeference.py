"""Coordinate reference systems and coordinates that are written."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.tools.conventions.nodes import make
from zarrdask.errors import MetadataError, NodeTypeError, ReadOnlyError
from zarrdask.tools.conventions import Crs, Spatial, crs, spatial, write_crs

WKT = 'GEOGCRS["WGS 84"]'
TRANSFORM = (10.0, 0.0, 500.0, 0.0, -10.0, 4000.0)
X, Y = 505 + 10.0 * np.arange(6), 3995 - 10.0 * np.arange(4)


@pytest.fixture
def image(root):
    return root.create_array("t", shape=(2, 4, 6), dtype="f4", dimension_names=("time", "y", "x"))


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


def test_gdal_stores_no_codes(root):
    make(root, "t")
    with pytest.raises(MetadataError, match="code of an authority"):
        write_crs(root["t"], Crs(code="EPSG:4326"), convention="gdal")
    assert dict(root["t"].attrs) == {}


@for_each("convention", ["cf", "gdal"])
@for_each(
    "place", [{"transform": TRANSFORM}, {"transform": (*TRANSFORM, 0, 0, 1)}, {"x": X, "y": Y}]
)
def test_coordinates_are_arrays_beside_the_array(convention, place):
    root = zarrdask.create_group({})
    for name in ("t", "u"):  # the second array shares the coordinates of the first
        array = root.create_array(name, shape=(4, 6), dtype="f4", dimension_names=("lat", "x"))
        write_crs(array, WKT, convention=convention, **place)
    assert sorted(root) == sorted(["t", "u", "lat", "x", *(["crs"] if convention == "cf" else [])])
    assert np.array_equal(root["lat"][...], Y)
    assert np.array_equal(root["x"][...], X)
    assert (root["lat"].dimension_names, root["lat"].attrs["axis"]) == (("lat",), "Y")
    assert (root["x"].dimension_names, root["x"].attrs["axis"]) == (("x",), "X")
    assert crs(root["u"]).wkt == WKT


@for_each("place", [{"transform": TRANSFORM}, {"x": X, "y": Y}])
@for_each(
    ("definition", "attribute"),
    [("EPSG:32633", "proj:code"), (WKT, "proj:wkt2"), ({"type": "a"}, "proj:projjson")],
)
def test_the_conventions_proj_and_spatial(place, definition, attribute):
    image = zarrdask.create_array(
        {}, shape=(4, 6), dtype="f4", dimension_names=("y", "x"), attributes={"title": "t"}
    )
    for _ in range(2):
        write_crs(image, definition, convention="proj", **place)
        assert crs(image).definition == image.attrs[attribute] == definition
        assert spatial(image) == Spatial(("y", "x"), TRANSFORM, shape=(4, 6))
        names = [each["name"] for each in image.attrs["zarr_conventions"]]
        assert (names, image.attrs["title"]) == (["proj", "spatial"], "t")


def test_the_place_in_space_requires_names_of_rows_and_columns():
    image = zarrdask.create_array({}, shape=(4, 6), dtype="f4")
    with pytest.raises(MetadataError, match="names of the last two axes"):
        write_crs(image, WKT, transform=TRANSFORM, convention="proj")
    assert not image.attrs


def test_other_conventions_of_an_array_stay(image):
    image.attrs["zarr_conventions"] = [{"name": "other"}]
    write_crs(image, "EPSG:4326", convention="proj")
    assert [each["name"] for each in image.attrs["zarr_conventions"]] == ["other", "proj"]
    assert spatial(image) is None


def test_what_is_written_again_replaces_what_was_written(image):
    write_crs(image, "EPSG:4326", transform=TRANSFORM, convention="proj")
    image.attrs["spatial:bbox"] = [0.0, 0.0, 1.0, 1.0]
    moved = (*TRANSFORM[:5], 0.0)
    write_crs(image, WKT, transform=moved, convention="proj")
    assert crs(image) == Crs(wkt=WKT)
    assert spatial(image) == Spatial(("y", "x"), moved, shape=(4, 6))


def test_an_unknown_convention_is_an_error(image):
    with pytest.raises(MetadataError, match=r"convention: .*'cf' or 'gdal' or 'proj'"):
        write_crs(image, WKT, convention="CF")


def test_only_an_open_array_is_written_to(root):
    for node in (root, "a.zarr"):
        with pytest.raises(NodeTypeError, match=r"array: .*open_array"):
            write_crs(node, WKT)


def test_a_rotated_grid_needs_the_convention_proj(image):
    rotated = (10.0, 1.0, 500.0, 1.0, -10.0, 4000.0)
    with pytest.raises(MetadataError, match="proj"):
        write_crs(image, WKT, transform=rotated)
    write_crs(image, WKT, transform=rotated, convention="proj")
    assert spatial(image).transform == rotated


@pytest.mark.parametrize("convention", ["cf", "gdal", "proj"])
@pytest.mark.parametrize(
    ("place", "match"),
    [
        ({"transform": TRANSFORM, "x": X, "y": Y}, "either"),
        ({"transform": TRANSFORM[:5]}, "affine"),
        ({"transform": (*TRANSFORM[:5], float("nan"))}, "affine"),
        ({"transform": "abcdef"}, "affine"),
        ({"transform": 1.0}, "affine"),
        ({"transform": (0.0, *TRANSFORM[1:])}, "same coordinates"),
        ({"x": X}, "both"),
        ({"x": X[:-1], "y": Y}, "one coordinate"),
    ],
)
def test_coordinates_that_do_not_fit_are_an_error_and_nothing_is_written(
    root, image, convention, place, match
):
    with pytest.raises(MetadataError, match=match):
        write_crs(image, WKT, convention=convention, **place)
    assert (list(root), dict(image.attrs)) == (["t"], {})


def test_an_affine_transformation_needs_even_distances(root, image):
    with pytest.raises(MetadataError, match="equal distances"):
        write_crs(image, WKT, x=X**2, y=Y, convention="proj")
    write_crs(image, WKT, x=X**2, y=Y)
    assert np.array_equal(root["x"][...], X**2)


@pytest.mark.parametrize("convention", ["cf", "gdal"])
def test_coordinates_with_other_values_stay(root, image, convention):
    root.create_array("x", shape=6, dtype="f8")[...] = X + 1
    with pytest.raises(MetadataError, match="other values"):
        write_crs(image, WKT, transform=TRANSFORM, convention=convention)
    assert (sorted(root), dict(image.attrs)) == (["t", "x"], {})


def test_coordinates_that_are_not_numbers_stay(root, image):
    root.create_array("x", shape=6, dtype="U1")[...] = list("abcdef")
    with pytest.raises(MetadataError, match="other values"):
        write_crs(image, WKT, transform=TRANSFORM)
    assert sorted(root) == ["t", "x"]


def test_nothing_is_written_if_a_group_has_the_name_of_the_variable(root, image):
    root.create_group("crs")
    with pytest.raises(NodeTypeError, match="crs"):
        write_crs(image, WKT, transform=TRANSFORM)
    assert (sorted(root), dict(image.attrs)) == (["crs", "t"], {})


@pytest.mark.parametrize("names", [None, (None, "x")])
def test_coordinates_need_names_of_dimensions(root, names):
    array = root.create_array("u", shape=(4, 6), dtype="f4", dimension_names=names)
    with pytest.raises(MetadataError, match="axes with names"):
        write_crs(array, WKT, transform=TRANSFORM)


def test_coordinates_of_an_array_at_the_root_have_no_place():
    array = zarrdask.create_array({}, shape=(4, 6), dtype="f4", dimension_names=("y", "x"))
    with pytest.raises(MetadataError, match="root"):
        write_crs(array, WKT, transform=TRANSFORM, convention="gdal")


def test_the_variable_can_not_have_the_name_of_coordinates(root, image):
    with pytest.raises(MetadataError, match="name: the coordinates"):
        write_crs(image, WKT, transform=TRANSFORM, name="x")
    assert (list(root), dict(image.attrs)) == (["t"], {})
