"""C.11: conventions of v3's attributes."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, v3
from tests.test_samples import SAMPLES, expected
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import Level, multiscales, write_multiscales

GROUP = {"zarr_format": 3, "node_type": "group"}


def test_c80_dimensions_are_named_by_dimension_names():
    values = {}
    zarrdask.create_array(values, shape=(2, 3), dtype="u1", dimension_names=("y", "x"))
    document = json.loads(values["zarr.json"])
    assert document["dimension_names"] == ["y", "x"]
    assert document["attributes"] == {}


def test_c80_array_dimensions_is_an_attribute_like_others():
    names = {"_ARRAY_DIMENSIONS": ["lat", "lon"]}
    document = v3((4, 4), (2, 2), attributes=names, dimension_names=["y", "x"])
    z = zarrdask.open_array({"zarr.json": dump(document)})
    assert z.dimension_names == ("y", "x")
    assert dict(z.attrs) == names
    z = zarrdask.open_array({"zarr.json": dump(v3(attributes=names))})
    assert z.dimension_names is None


def test_c80_the_fill_value_of_xarray_is_an_attribute_in_base64():
    z = zarrdask.open_array(SAMPLES / "xarray" / "v3", "t")
    assert z.attrs["_FillValue"] == "AAAAAAAA+H8="
    assert np.isnan(z.fill_value)
    np.testing.assert_array_equal(z[...], expected("xarray", "v3/t"))


def test_c80_it_is_never_the_arrays_fill_value():
    document = v3(data_type="float64", fill_value=7.0, attributes={"_FillValue": "AAAAAAAA+H8="})
    z = zarrdask.open_array({"zarr.json": dump(document)}, mode="r+")
    assert z[...].tolist() == [7.0] * 4
    z.attrs["_FillValue"] = "AAAAAAAAAAA="
    assert z.fill_value == 7.0
    assert json.loads(z.store.get("zarr.json"))["attributes"] == {"_FillValue": "AAAAAAAAAAA="}


#: The example of OME-Zarr 0.5, shortened.
OME = {
    "version": "0.5",
    "multiscales": [
        {
            "name": "example",
            "axes": [
                {"name": "t", "type": "time", "unit": "millisecond"},
                {"name": "y", "type": "space", "unit": "micrometer"},
                {"name": "x", "type": "space", "unit": "micrometer"},
            ],
            "datasets": [
                {
                    "path": "0",
                    "coordinateTransformations": [{"type": "scale", "scale": [1.0, 0.5, 0.5]}],
                },
                {
                    "path": "1",
                    "coordinateTransformations": [
                        {"type": "scale", "scale": [1.0, 1.0, 1.0]},
                        {"type": "translation", "translation": [0.0, 0.25, 0.25]},
                    ],
                },
            ],
            "coordinateTransformations": [{"type": "scale", "scale": [0.1, 1.0, 2.0]}],
        }
    ],
}


def test_c81_ome_zarr_tells_of_pyramids_in_ome():
    values = {"zarr.json": dump(GROUP | {"attributes": {"ome": OME, "multiscales": 5}})}
    (found,) = multiscales(zarrdask.open_group(values))
    assert (found.name, found.version) == ("example", "0.5")
    assert [axis["name"] for axis in found.axes] == ["t", "y", "x"]
    # The scale of the whole pyramid comes after that of each level.
    assert found.levels == (
        Level("0", (0.1, 0.5, 1.0), (0.0, 0.0, 0.0)),
        Level("1", (0.1, 1.0, 2.0), (0.0, 0.25, 0.5)),
    )


def test_c81_ome_zarr_0_4_has_them_on_top():
    (multiscale,) = OME["multiscales"]
    attributes = {"multiscales": [multiscale | {"version": "0.4"}], "omero": {}}
    values = {".zgroup": b'{"zarr_format": 2}', ".zattrs": dump(attributes)}
    (found,) = multiscales(zarrdask.open_group(values))
    assert found.version == "0.4"
    assert [level.path for level in found.levels] == ["0", "1"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_c81_it_is_written_so(zarr_format):
    root = zarrdask.create_group({}, zarr_format=zarr_format, attributes={"ome": {"omero": {}}})
    for path, n in (("0", 8), ("1", 4)):
        root.create_array(path, shape=(n, n), dtype="u1", dimension_names=("y", "x"))
    levels = [Level("0", (1, 1)), Level("1", (2, 2), (0.5, 0.5))]
    write_multiscales(root, levels, convention="ome")
    written = [
        {
            "datasets": [
                {
                    "path": "0",
                    "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}],
                },
                {
                    "path": "1",
                    "coordinateTransformations": [
                        {"type": "scale", "scale": [2.0, 2.0]},
                        {"type": "translation", "translation": [0.5, 0.5]},
                    ],
                },
            ],
            "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
        }
    ]
    if zarr_format == 2:
        expected = {"ome": {"omero": {}}, "multiscales": [written[0] | {"version": "0.4"}]}
    else:
        expected = {"ome": {"omero": {}, "version": "0.5", "multiscales": written}}
    assert dict(root.attrs) == expected


@for_each(
    ("levels", "axes"),
    [
        ([Level("0")], None),
        ([Level("0", (1, 1, 1))], None),
        ([Level("0", (1, 1), (0,))], None),
        ([Level("0", (1, 1))], ["x"]),
        ([Level("0", (1, 1))], []),
        ([], None),
    ],
)
def test_c81_what_ome_zarr_needs_must_be_given(levels, axes):
    root = zarrdask.create_group({})
    root.create_array("0", shape=(4, 4), dtype="u1", dimension_names=("y", "x"))
    with pytest.raises(MetadataError):
        write_multiscales(root, levels, axes=axes, convention="ome")
    assert dict(root.attrs) == {}
