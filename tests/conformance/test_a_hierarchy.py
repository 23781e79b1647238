"""A.6: paths, groups, attributes and the text's examples."""

import json
import os
import zipfile
import zlib

import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import dump, v2

GROUP = dump({"zarr_format": 2})
ARRAY = dump(v2())
V2 = {"zarr_format": 2}


def array(store, path=None, **options):
    return zarrdask.create_array(store, path, shape=4, dtype="<u2", chunks=2, **V2, **options)


PATHS = [
    ("foo/bar", "foo/bar"),
    ("\\foo\\\\bar\\", "foo/bar"),
    ("\\foo//bar/", "foo/bar"),
    ("/foo/bar", "foo/bar"),
    ("///foo///bar///", "foo/bar"),
    ("foo\\bar", "foo/bar"),
    ("foo", "foo"),
]


@for_each(("path", "normal"), PATHS)
def test_a44_a_path_is_normalised(path, normal):
    store = {}
    array(store, path)
    assert f"{normal}/.zarray" in store
    assert zarrdask.open_array(store, path).path == normal
    assert zarrdask.open_group(store)[path].path == normal


@for_each("path", ["", "/", "\\", "///", None])
def test_a44_the_root_has_an_empty_path(path):
    store = {}
    zarrdask.create_group(store, path, **V2)
    assert set(store) == {".zgroup"}
    assert zarrdask.open_group(store, path).path == ""


@for_each("path", [".", "..", "foo/../bar", "foo/.", "./foo", "/..//", "foo\\..\\bar"])
def test_a45_a_segment_of_one_or_two_periods_is_an_error(path):
    store = {".zgroup": GROUP, "foo/.zgroup": GROUP, "bar/.zarray": ARRAY}
    before = dict(store)
    for verb in (zarrdask.open, zarrdask.open_array, zarrdask.open_group, array):
        with pytest.raises(zarrdask.errors.MetadataError, match="path"):
            verb(store, path)
    with pytest.raises(zarrdask.errors.MetadataError, match="path"):
        zarrdask.create_group(store, path, **V2)
    assert store == before


@for_each("path", ["a.", ".a", "a..b", "..a"])
def test_a45_periods_in_a_segment_are_fine(path):
    store = {}
    array(store, path)
    assert zarrdask.open_array(store, path).path == path


@pytest.mark.parametrize(
    ("path", "prefix"), [("", ""), ("foo", "foo/"), ("/foo//bar/", "foo/bar/")]
)
def test_a46_keys_begin_with_the_path_and_a_slash(path, prefix):
    store = {}
    array(store, path, attributes={"a": 1})[...] = 1
    own = {f"{prefix}{name}" for name in (".zarray", ".zattrs", "0", "1")}
    assert {key for key in store if not key.endswith(".zgroup")} == own
    assert zarrdask.open_array(store, path)[...].tolist() == [1, 1, 1, 1]


def test_a47_a_group_is_where_its_document_is():
    store = {"foo/.zgroup": GROUP, "bar/baz/.zarray": ARRAY, "qux/.zattrs": b"{}"}
    assert zarrdask.open_group(store, "foo").path == "foo"
    for path in ("", "bar", "qux", "bar/none"):
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.open_group(store, path)
    assert zarrdask.open_array(store, "bar/baz").shape == (4,)


def test_a47_a_prefix_without_document_is_no_member():
    store = {".zgroup": GROUP, "foo/.zgroup": GROUP, "bar/baz/.zarray": ARRAY, "q/.zattrs": b"{}"}
    assert list(zarrdask.open_group(store)) == ["foo"]


def groups(store):
    return {key for key in store if key.endswith(".zgroup")}


def test_a48_a_new_group_gets_groups_above_it():
    store = {}
    zarrdask.create_group(store, "foo/bar", **V2)
    assert store == {
        ".zgroup": store[".zgroup"],
        "foo/.zgroup": store["foo/.zgroup"],
        "foo/bar/.zgroup": store["foo/bar/.zgroup"],
    }
    assert all(json.loads(value) == {"zarr_format": 2} for value in store.values())


def test_a48_groups_that_are_there_stay_as_they_are():
    kept = {".zgroup": b'{ "zarr_format" : 2 }', ".zattrs": b'{"a":1}', "foo/.zgroup": GROUP}
    store = dict(kept)
    zarrdask.create_group(store, "foo/bar/baz", **V2)
    assert {key: store[key] for key in kept} == kept
    assert groups(store) == {".zgroup", "foo/.zgroup", "foo/bar/.zgroup", "foo/bar/baz/.zgroup"}


def test_a48_a_new_root_group_is_alone():
    store = {}
    zarrdask.create_group(store, **V2)
    assert set(store) == {".zgroup"}


def test_a49_a_new_array_gets_groups_above_it():
    store = {}
    array(store, "foo/bar/baz")
    assert set(store) == {".zgroup", "foo/.zgroup", "foo/bar/.zgroup", "foo/bar/baz/.zarray"}
    assert [path for path, _ in zarrdask.open_group(store).walk()] == [
        "foo",
        "foo/bar",
        "foo/bar/baz",
    ]


def test_a49_an_array_at_the_root_is_alone():
    store = {}
    array(store)
    assert set(store) == {".zarray"}


def test_a49_a_missing_group_in_between_is_made():
    store = {".zgroup": GROUP, "foo/bar/.zgroup": GROUP}
    array(store, "foo/bar/baz")
    assert groups(store) == {".zgroup", "foo/.zgroup", "foo/bar/.zgroup"}


@for_each("document", [{}, {"zarr_format": 3}, {"zarr_format": "2"}, [], None])
def test_a50_a_group_needs_the_format_2(document):
    with pytest.raises(zarrdask.errors.MetadataError, match="zgroup"):
        zarrdask.open_group({".zgroup": dump(document)}, strict=True)


def test_a50_nothing_else_is_written():
    store = {}
    zarrdask.create_group(store, attributes={"a": 1}, **V2)
    assert json.loads(store[".zgroup"]) == {"zarr_format": 2}


OTHERS = [
    {"_NCZARR_SUPERBLOCK": {"version": "2.0.0"}, "_NCZARR_GROUP": {"dims": {}}},
    {"consolidated_metadata": {"kind": "inline", "metadata": {}}},
]


@pytest.mark.parametrize("others", OTHERS, ids=["netCDF-C", "zarr-python"])
def test_a50_other_members_are_ignored_unless_strict(others):
    store = {".zgroup": dump({"zarr_format": 2, **others})}
    group = zarrdask.open_group(store, mode="r+")
    assert dict(group.attrs) == {}
    with refused("A-50"):
        zarrdask.open_group(store, strict=True)
    group.create_array("a", shape=1, dtype="i1")
    assert list(group) == ["a"]


def test_a51_members_are_right_below():
    # The text's example, with what lies deeper and elsewhere.
    store = {
        ".zgroup": GROUP,
        "foo/.zgroup": GROUP,
        "foo/bar/.zgroup": GROUP,
        "foo/bar/deep/.zarray": ARRAY,
        "foo/baz/.zarray": ARRAY,
        "foobar/.zgroup": GROUP,
        "other/.zarray": ARRAY,
    }
    group = zarrdask.open_group(store, "foo")
    assert list(group) == ["bar", "baz"]
    assert isinstance(group["bar"], zarrdask.Group)
    assert isinstance(group["baz"], zarrdask.Array)
    assert list(zarrdask.open_group(store)) == ["foo", "foobar", "other"]


@pytest.mark.parametrize("above", ["", "foo", "foo/bar"])
def test_a52_nothing_is_made_below_an_array(above):
    store = {}
    array(store, above)
    before, below = dict(store), f"{above}/x/y".strip("/")
    for verb in (array, lambda store, path: zarrdask.create_group(store, path, **V2)):
        with pytest.raises(zarrdask.errors.NodeExistsError, match="array"):
            verb(store, below)
    assert store == before


def test_a53_without_a_document_there_are_no_attributes():
    store = {".zgroup": GROUP, "a/.zarray": ARRAY}
    assert dict(zarrdask.open_group(store).attrs) == {}
    assert dict(zarrdask.open_array(store, "a").attrs) == {}


def test_a53_an_empty_document_is_not_written():
    store = {}
    group = zarrdask.create_group(store, attributes={}, **V2)
    z = group.create_array("a", shape=1, dtype="i1", attributes={})
    assert set(store) == {".zgroup", "a/.zarray"}
    z.attrs["x"] = 1
    assert json.loads(store["a/.zattrs"]) == {"x": 1}
    del z.attrs["x"]
    assert json.loads(store.get("a/.zattrs", "{}")) == {}


@for_each("text", [b"", b"[]", b"null", b"1", b"{"])
def test_a53_attributes_that_are_no_object_are_an_error(text):
    for store in ({".zgroup": GROUP, ".zattrs": text}, {".zarray": ARRAY, ".zattrs": text}):
        with pytest.raises(zarrdask.errors.MetadataError, match="zattrs"):
            zarrdask.open(store)


ATTRIBUTES = {
    "foo": "た",
    "bar": [1, 2.5, None, True, "x"],
    "": {"nested": {"deep": [[]]}},
    "big": 2**70,
    'é/\\"\n': "\U0001f600",
}


def test_a54_attributes_hold_any_json_and_unicode():
    store = {}
    z = array(store, attributes=ATTRIBUTES)
    assert json.loads(store[".zattrs"].decode("utf-8")) == ATTRIBUTES
    assert dict(zarrdask.open_array(store).attrs) == ATTRIBUTES
    z.attrs["foo"] = ["ち"]
    assert json.loads(store[".zattrs"])["foo"] == ["ち"]


@pytest.mark.parametrize("text", ['{"foo":"た"}', '{"foo": "\\u305f"}'])
def test_a54_unicode_is_read_as_it_is_and_escaped(text):
    store = {".zgroup": GROUP, ".zattrs": text.encode()}
    assert dict(zarrdask.open_group(store, strict=True).attrs) == {"foo": "た"}


# ---- the text's examples

EXAMPLE = {
    "chunks": [10, 10],
    "compressor": {"id": "zlib", "level": 1},
    "dtype": "<i4",
    "fill_value": 42,
    "filters": None,
    "order": "C",
    "shape": [20, 20],
    "zarr_format": 2,
}


def example(root):
    return zarrdask.create_array(
        root,
        shape=(20, 20),
        chunks=(10, 10),
        dtype="<i4",
        fill_value=42,
        compressors={"id": "zlib", "level": 1},
        overwrite=True,
        **V2,
    )


def test_a55_a_single_array_in_a_directory(tmp_path):
    root = tmp_path / "data" / "example.zarr"
    a = example(root)
    assert sorted(os.listdir(root)) == [".zarray"]
    assert json.loads((root / ".zarray").read_text()) == EXAMPLE
    a[0:10, 0:10] = 1
    assert sorted(os.listdir(root)) == [".zarray", "0.0"]
    a[0:10, 10:20] = 2
    a[10:20, :] = 3
    assert sorted(os.listdir(root)) == [".zarray", "0.0", "0.1", "1.0", "1.1"]
    a.attrs.update({"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]})
    assert sorted(os.listdir(root)) == [".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1"]
    found = json.loads((root / ".zattrs").read_text())
    assert found == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}


def hierarchy(root):
    """Yield what is stored after each step of the text's second example."""
    group = zarrdask.create_group(root, **V2)
    yield
    foo = group.create_group("foo")
    yield
    a = foo.create_array("bar", shape=(20, 20), chunks=(10, 10), dtype="f8")
    a[...] = 42
    a.attrs["comment"] = "answer to life, the universe and everything"
    yield


CHUNKS = ["0.0", "0.1", "1.0", "1.1"]


def test_a55_several_arrays_in_a_directory(tmp_path):
    root = tmp_path / "data" / "group.zarr"
    steps = hierarchy(root)
    next(steps)
    assert sorted(os.listdir(root)) == [".zgroup"]
    assert json.loads((root / ".zgroup").read_text()) == {"zarr_format": 2}
    next(steps)
    assert sorted(os.listdir(root)) == [".zgroup", "foo"]
    assert sorted(os.listdir(root / "foo")) == [".zgroup"]
    next(steps)
    assert sorted(os.listdir(root)) == [".zgroup", "foo"]
    assert sorted(os.listdir(root / "foo")) == [".zgroup", "bar"]
    assert sorted(os.listdir(root / "foo" / "bar")) == [".zarray", ".zattrs", *CHUNKS]


def test_a55_the_same_in_a_zip_file(tmp_path):
    root, place = tmp_path / "group.zarr", tmp_path / "group.zip"
    list(hierarchy(root))
    with zipfile.ZipFile(place, "w") as archive:
        for file in root.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(root))
    with zipfile.ZipFile(place) as archive:
        names = sorted(archive.namelist())
    below = [f"foo/bar/{name}" for name in (".zarray", ".zattrs", *CHUNKS)]
    assert names == sorted([".zgroup", "foo/.zgroup", *below])
    a = zarrdask.open_group(place)["foo"]["bar"]
    assert (a[...] == 42).all()
    assert a.attrs["comment"] == "answer to life, the universe and everything"


def test_a55_the_first_example_document_is_read_and_written():
    document = {
        "chunks": [1000, 1000],
        "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
        "dtype": "<f8",
        "fill_value": "NaN",
        "filters": [{"id": "delta", "dtype": "<f8", "astype": "<f4"}],
        "order": "C",
        "shape": [10000, 10000],
        "zarr_format": 2,
    }
    store = {".zarray": dump(document)}
    z = zarrdask.open_array(store, mode="r+", strict=True)
    assert z.nchunks == 100
    assert np.isnan(z[9999, 9999])
    z[:1000, :1000] = 1.5
    assert z[0, 0] == z[999, 999] == 1.5
    assert set(store) == {".zarray", "0.0"}
    z.resize((9999, 10000))
    blosc = {**document["compressor"], "blocksize": 0}
    assert json.loads(store[".zarray"]) == {**document, "shape": [9999, 10000], "compressor": blosc}


def test_a56_a_zlib_chunk_is_decompressed_by_zlib_to_the_elements():
    store = {}
    a = example(store)
    a[0:10, 0:10] = 1
    assert zlib.decompress(store["0.0"]) == b"\1\0\0\0" * 100
    store["1.1"] = zlib.compress(np.arange(100, dtype="<i4").tobytes(), 9)
    assert zarrdask.open_array(store)[10:, 10:].ravel().tolist() == list(range(100))
