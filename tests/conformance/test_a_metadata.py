"""A.2 and A.9: the members of .zarray, and the conventions about attributes."""

import json

import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import dump, stored, v2, without

MEMBERS = (
    *("zarr_format", "shape", "chunks", "dtype"),
    *("compressor", "fill_value", "order", "filters"),
)
NAMES = "_ARRAY_DIMENSIONS"


def document(store, path=""):
    """Return an array's document as it is stored."""
    return json.loads(store[f"{path}.zarray"])


def create(store, **options):
    settings = {"shape": (4, 4), "dtype": "<u2", "chunks": (2, 2), "zarr_format": 2, **options}
    return zarrdask.create_array(store, **settings)


def rewritten(store):
    """Return an array's document after it was read and written again, for another shape."""
    z = zarrdask.open_array(store, mode="r+")
    z.resize(tuple(n + 1 for n in z.shape))
    return document(store)


@for_each("member", MEMBERS)
def test_a7_a_missing_member_is_named(member):
    with pytest.raises(zarrdask.errors.MetadataError, match=member):
        zarrdask.open({".zarray": dump(without(v2(), member))}, strict=True)


@pytest.mark.parametrize("options", [{}, {"compressors": [], "fill_value": 3, "order": "F"}])
def test_a7_all_members_are_written(options):
    store = {}
    create(store, **options)
    assert set(document(store)) == set(MEMBERS)


@for_each("version", [1, 3, "2", 2.5, 2.0, None, True, [2]])
def test_a8_another_zarr_format_is_an_error(version):
    with pytest.raises(zarrdask.errors.MetadataError, match="zarr_format"):
        zarrdask.open({".zarray": dump({**v2(), "zarr_format": version})})


def test_a8_zarr_format_is_written_as_the_integer():
    store = {}
    create(store)
    assert type(document(store)["zarr_format"]) is int
    assert document(store)["zarr_format"] == 2


@for_each("shape", [None, 4, "4", [-1], [4.0], [4.5], ["4"], [True], {"0": 4}])
def test_a9_a_shape_that_is_no_list_of_lengths_is_an_error(shape):
    with pytest.raises(zarrdask.errors.MetadataError, match="shape"):
        zarrdask.open(stored({**v2(), "shape": shape}))


@for_each("shape", [[], [0], [5], [2, 0, 3], [2**40]])
def test_a9_shapes_of_non_negative_integers_are_read_and_written(shape):
    chunks = [1] * len(shape)
    assert zarrdask.open_array(stored(v2(shape, chunks))).shape == tuple(shape)
    store = {}
    create(store, shape=tuple(shape), chunks=tuple(chunks))
    assert document(store)["shape"] == shape


def test_a9_an_empty_shape_has_one_element():
    z = zarrdask.open_array(stored(v2((), ()), {"0": b"\x07\x00"}))
    assert z.shape == ()
    assert z[()] == 7


@for_each("chunks", [[2], [2, 2, 2], [], None, 2, [2, 0], [2, -2], [2, 2.5], [[2, 2]]])
def test_a10_chunks_that_do_not_fit_the_shape_are_an_error(chunks):
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk"):
        zarrdask.open(stored({**v2((4, 4), (2, 2)), "chunks": chunks}), strict=True)


def test_a10_one_chunk_shape_serves_all_chunks():
    z = zarrdask.open_array(stored(v2((5, 7), (2, 3))))
    assert z.chunks == (2, 3)
    assert z.nchunks == 9
    store = {}
    create(store, shape=(5, 7), chunks=(2, 3))
    assert document(store)["chunks"] == [2, 3]


@for_each("dtype", [None, 2, True, {}, {"name": "uint16"}, [], "", ["<u2"]])
def test_a11_a_dtype_is_a_text_or_a_list_of_fields(dtype):
    with pytest.raises(zarrdask.errors.MetadataError, match="dtype"):
        zarrdask.open(stored({**v2(), "dtype": dtype}))


@pytest.mark.parametrize("dtype", ["<u2", [["a", "<u2"], ["b", "|S3"]]])
def test_a11_both_forms_are_read_and_written(dtype):
    store = stored(v2(dtype=dtype, fill_value=None))
    assert zarrdask.open_array(store).dtype == np.dtype(
        dtype if isinstance(dtype, str) else [tuple(field) for field in dtype]
    )
    assert rewritten(store)["dtype"] == dtype


@for_each("compressor", ["zlib", 1, [], {}, {"level": 1}, {"id": None}, {"id": 5}])
def test_a12_a_compressor_without_an_id_is_an_error(compressor):
    with pytest.raises(zarrdask.errors.MetadataError, match="id"):
        zarrdask.open(stored({**v2(), "compressor": compressor}))


@pytest.mark.parametrize(
    ("compressors", "expected"),
    [([], None), ({"id": "zlib", "level": 3}, {"id": "zlib", "level": 3})],
)
def test_a12_a_compressor_is_an_object_with_its_id_or_null(compressors, expected):
    store = {}
    create(store, compressors=compressors)
    assert document(store)["compressor"] == expected
    assert zarrdask.open_array(store)[...].tolist() == [[0] * 4] * 4


@for_each("fill", [[], {}, [1], {"value": 1}])
def test_a13_a_fill_value_that_is_no_scalar_is_an_error(fill):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        zarrdask.open(stored({**v2(), "fill_value": fill}))


@pytest.mark.parametrize(("fill", "shown"), [(7, 7), (None, 0)])
def test_a13_a_fill_value_is_a_scalar_or_null_and_stays_so(fill, shown):
    store = stored(v2(fill_value=fill))
    z = zarrdask.open_array(store)
    assert z.fill_value == fill
    assert z[...].tolist() == [shown] * 4
    assert rewritten(store)["fill_value"] == fill


@for_each("order", ["K", "A", "c", "f", "", None, 0, ["C"]])
def test_a14_another_order_is_an_error(order):
    with pytest.raises(zarrdask.errors.MetadataError, match="order"):
        zarrdask.open(stored({**v2(), "order": order}))


@pytest.mark.parametrize(("order", "data"), [("C", b"\1\2\3\4"), ("F", b"\1\3\2\4")])
def test_a14_the_last_or_the_first_dimension_is_the_fastest(order, data):
    values = [[1, 2], [3, 4]]
    found = zarrdask.open_array(stored(v2((2, 2), (2, 2), "|u1", order=order), {"0.0": data}))
    assert found[...].tolist() == values
    store = {}
    create(store, shape=(2, 2), dtype="|u1", order=order, compressors=[])[...] = values
    assert document(store)["order"] == order
    assert store["0.0"] == data


@for_each("filters", [{}, "delta", {"id": "delta"}, [None], [{}], [{"name": "x"}]])
def test_a15_filters_without_ids_are_an_error(filters):
    with pytest.raises(zarrdask.errors.MetadataError, match="filters"):
        zarrdask.open(stored({**v2(), "filters": filters}))


def test_a15_filters_are_objects_or_null():
    delta = {"id": "delta", "dtype": "<u2", "astype": "<u2"}
    for given, expected in (([], None), (delta, [delta])):
        store = {}
        create(store, filters=given)
        assert document(store)["filters"] == expected
    found = stored(v2(filters=[delta]), {"0": b"\5\0\2\0"})
    assert zarrdask.open_array(found)[:2].tolist() == [5, 7]
    assert rewritten(found)["filters"] == [delta]


def test_a15_an_empty_list_of_filters_is_read_unless_strict():
    store = stored(v2(filters=[]), {"0": b"\5\0\2\0"})
    assert zarrdask.open_array(store)[:2].tolist() == [5, 2]
    with refused("A-15"):
        zarrdask.open_array(store, strict=True)
    assert rewritten(store)["filters"] is None


OTHERS = {"_NCZARR_ARRAY": {"dimrefs": ["/x"], "storage": "chunked"}, "whatever": 1}


def test_a16_other_members_are_ignored_unless_strict():
    store = stored(v2(**OTHERS), {"0": b"\5\0\2\0"})
    assert zarrdask.open_array(store)[:2].tolist() == [5, 2]
    with refused("A-16"):
        zarrdask.open_array(store, strict=True)
    assert zarrdask.open_array(stored(v2()), strict=True).shape == (4,)


def test_a16_other_members_are_not_written():
    store = stored(v2(**OTHERS))
    assert set(rewritten(store)) == set(MEMBERS)
    names = {}
    create(names, dimension_names=("y", "x"), attributes={"a": 1}, order="F")
    assert set(document(names)) == set(MEMBERS)


@for_each(
    "text",
    [
        json.dumps(v2(), indent=4, sort_keys=True, separators=(", ", ": ")),
        json.dumps(v2(), separators=(",", ":")),
        json.dumps(dict(reversed(v2().items())), indent="\t").replace("\n", "\r\n"),
        f"\n \t{json.dumps(v2())}\n",
        json.dumps(v2()).replace("zarr", "\\u007aarr").replace("C", "\\u0043"),
    ],
)
def test_a17_any_order_and_spacing_is_read(text):
    z = zarrdask.open_array({".zarray": text.encode(), "0": b"\5\0\2\0"}, strict=True)
    assert z[:2].tolist() == [5, 2]


def test_a17_what_is_no_json_object_is_an_error():
    for text in (b"", b"{", b"[]", b"null", b"\xff", json.dumps(v2()).encode() + b"}"):
        with pytest.raises(zarrdask.errors.MetadataError, match="zarray"):
            zarrdask.open({".zarray": text})


VALUES = np.arange(16, dtype="<u2").reshape(4, 4)


@pytest.mark.parametrize(
    ("said", "separator"),
    [({}, "."), ({"dimension_separator": "."}, "."), ({"dimension_separator": "/"}, "/")],
)
def test_a18_chunk_keys_follow_the_separator(said, separator):
    chunks = {
        f"{i}{separator}{j}": VALUES[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].tobytes()
        for i in range(2)
        for j in range(2)
    }
    store = stored(v2((4, 4), (2, 2), **said), chunks)
    assert zarrdask.open_array(store, strict=True)[...].tolist() == VALUES.tolist()
    written = {}
    create(written, separator=separator, compressors=[])[...] = VALUES
    assert {key: value for key, value in written.items() if key != ".zarray"} == chunks


@for_each("separator", ["", "-", None, "//", 0])
def test_a18_another_separator_is_an_error(separator):
    with pytest.raises(zarrdask.errors.MetadataError, match="dimension_separator"):
        zarrdask.open(stored(v2(dimension_separator=separator)))


# --------------------------------------------------------------------------------------------
# A.9


def test_a69_names_of_dimensions_are_an_attribute_of_their_own():
    store = {}
    create(store, dimension_names=("lat", "lon"), attributes={"unit": "K"})
    assert json.loads(store[".zattrs"]) == {NAMES: ["lat", "lon"], "unit": "K"}
    z = zarrdask.open_array(store, mode="r+")
    assert z.dimension_names == ("lat", "lon")
    assert dict(z.attrs) == {"unit": "K"}
    z.attrs["unit"] = "°C"
    assert json.loads(store[".zattrs"]) == {NAMES: ["lat", "lon"], "unit": "°C"}


def test_a69_without_names_nothing_is_written():
    store = {}
    create(store)
    assert set(store) == {".zarray"}
    assert zarrdask.open_array(store).dimension_names is None


#: What netCDF-C 4.9.0 wrote for a file with the attribute _NCProperties, a scalar s, v(y, x) and
#: a group g with w: as plain v2, and as NCZarr.
NETCDF = {
    ".zgroup": dump({"zarr_format": 2}),
    ".zattrs": dump({"_NCProperties": "version=2,netcdf=4.9.0,nczarr=2.0.0"}),
    "s/.zarray": dump(v2((1,), (1,), "<i4", -2147483647)),
    "s/.zattrs": dump({NAMES: []}),
    "s/0": b"\3\0\0\0",
    "v/.zarray": dump(v2((2, 3), (2, 3), "<f4", 9.96921e36)),
    "v/.zattrs": dump({"units": "m", NAMES: ["y", "x"]}),
    "v/0.0": np.arange(6, dtype="<f4").tobytes(),
    "g/.zgroup": dump({"zarr_format": 2}),
    "g/w/.zarray": dump(v2((5,), (5,), "<i2", -32767)),
    "g/w/0": b"\1\0\2\0\3\0\4\0\5\0",
}
NCZARR = {
    **NETCDF,
    ".zgroup": dump(
        {
            "zarr_format": 2,
            "_NCZARR_SUPERBLOCK": {"version": "2.0.0"},
            "_NCZARR_GROUP": {"dims": {"y": 2, "x": 3}, "vars": ["v", "s"], "groups": ["g"]},
        }
    ),
    ".nczgroup": b"{}",
    "v/.zarray": dump(
        v2(
            *((2, 3), (2, 3), "<f4", 9.96921e36),
            _NCZARR_ARRAY={"dimrefs": ["/y", "/x"], "storage": "chunked"},
        )
    ),
    "v/.zattrs": dump(
        {"units": "m", NAMES: ["y", "x"], "_NCZARR_ATTR": {"types": {"units": "<U1"}}}
    ),
    "v/.nczarray": b"{}",
    "v/.nczattr": b"{}",
    "lost/.nczarray": b"{}",
}


def test_a70_the_netcdf_model_maps_to_store_group_array_and_attribute():
    file = zarrdask.open_group(dict(NETCDF))
    assert dict(file.attrs) == {"_NCProperties": "version=2,netcdf=4.9.0,nczarr=2.0.0"}
    assert [path for path, _ in file.walk()] == ["g", "g/w", "s", "v"]
    assert isinstance(file["g"], zarrdask.Group)
    assert isinstance(file["v"], zarrdask.Array)
    assert file["v"].dimension_names == ("y", "x")
    assert dict(file["v"].attrs) == {"units": "m"}
    assert file["g/w"][...].tolist() == [1, 2, 3, 4, 5]


def test_a70_the_netcdf_model_is_written():
    store = {}
    file = zarrdask.create_group(store, attributes={"title": "test"}, zarr_format=2)
    group = file.create_group("forecast")
    variable = group.create_array(
        "t", shape=(2, 3), dtype="f4", dimension_names=("y", "x"), attributes={"units": "K"}
    )
    variable[...] = 280
    assert json.loads(store[".zattrs"]) == {"title": "test"}
    assert json.loads(store["forecast/t/.zattrs"]) == {"units": "K", NAMES: ["y", "x"]}
    assert {key.rpartition("/")[2] for key in store} == {".zgroup", ".zattrs", ".zarray", "0.0"}


@for_each("names", [["_scalar_"], [], ["x", "y", "z"], "xy", [1, 2], None, {}])
def test_a71_names_of_another_length_are_ignored_unless_strict(names):
    store = stored(v2((2, 2), (2, 2)), attributes={NAMES: names, "a": 1})
    z = zarrdask.open_array(store)
    assert z.dimension_names is None
    assert z.attrs["a"] == 1
    with refused("A-71"):
        zarrdask.open_array(store, strict=True)


def test_a71_scalars_of_netcdf_are_read():
    for names, expected in (([], None), (["_scalar_"], ("_scalar_",))):
        z = zarrdask.open_array({**NETCDF, "s/.zattrs": dump({NAMES: names})}, "s")
        assert (z.shape, z[0], z.dimension_names) == ((1,), 3, expected)


def test_a72_a_store_of_nczarr_is_plain_v2_unless_strict():
    group = zarrdask.open_group(dict(NCZARR))
    assert [path for path, _ in group.walk()] == ["g", "g/w", "s", "v"]
    assert group["v"][...].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert group["v"].dimension_names == ("y", "x")
    with refused("A-50"):
        zarrdask.open_group(dict(NCZARR), strict=True)
    with refused("A-16"):
        zarrdask.open_array(dict(NCZARR), "v", strict=True)
    assert zarrdask.open_array(dict(NCZARR), "g/w", strict=True).shape == (5,)


def test_a76_encoding_attributes_are_attributes_and_not_applied():
    attributes = {
        "_FillValue": -1,
        "scale_factor": 0.5,
        "add_offset": 10,
        "units": "days since 2000-01-01",
        "calendar": "noleap",
    }
    store = stored(v2(dtype="<i2", fill_value=3), {"0": b"\xff\xff\1\0"}, attributes)
    z = zarrdask.open_array(store)
    assert z.fill_value == 3
    assert z[...].tolist() == [-1, 1, 3, 3]
    assert dict(z.attrs) == attributes
    written = {}
    create(written, fill_value=3, attributes=attributes)
    assert json.loads(written[".zattrs"]) == attributes
    assert document(written)["fill_value"] == 3
