"""What stands at a path in a store."""

import json

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, stored, v2, v3
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
    UnsupportedError,
)
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.obstore.obstore_errors import RequestError
from zarrdask.storage.zarr.consolidated_store import ConsolidatedStore

GROUP = b'{"zarr_format": 3, "node_type": "group"}'


@for_each(
    ("values", "kind"),
    [
        ({"zarr.json": dump(v3())}, ArrayMetadata),
        ({"zarr.json": GROUP}, GroupMetadata),
        ({".zarray": dump(v2())}, ArrayMetadata),
        ({".zgroup": b'{"zarr_format": 2}'}, GroupMetadata),
    ],
)
@for_each("path", ["", "a", "a/b c/d"])
def test_a_node_is_found_by_its_documents(values, kind, path):
    prefix = f"{path}/" if path else ""
    store = MemoryStore({prefix + key: value for key, value in values.items()})
    assert isinstance(NodePath(store, path).find()[1], kind)
    assert NodePath(store, path).exists()
    assert not NodePath(store, "elsewhere").exists()


def test_a_missing_node_is_an_error_that_names_place_and_documents(place):
    with pytest.raises(NodeNotFoundError) as caught:
        zarrdask.open(place, "not/there")
    assert caught.value.key.endswith("not/there")
    assert "zarr.json" in caught.value.expected
    assert ".zarray" in caught.value.expected


@pytest.mark.parametrize("error", [FileNotFoundError, KeyError, zarrdask.ZarrdaskError])
def test_a_missing_node_is_caught_as_python_users_do(error):
    with pytest.raises(error):
        zarrdask.open({}, "not/there")


def test_a_prefix_without_a_document_is_no_group():
    store = MemoryStore({"a/b/zarr.json": GROUP})
    assert NodePath(store, "a").read() is None
    assert NodePath(store, "").read() is None


@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zgroup"])
def test_an_invalid_document_is_an_error_that_names_the_path(name):
    store = MemoryStore({f"a/b/{name}": b"[]"})
    with pytest.raises(MetadataError) as caught:
        NodePath(store, "a/b").read()
    assert "a/b" in caught.value.key
    assert name in caught.value.key


def test_an_unknown_data_type_is_an_error_that_names_path_and_type():
    store = stored(v3(data_type="int7"))
    with pytest.raises(UnsupportedError, match="int7") as caught:
        zarrdask.open(store)
    assert "data_type" in caught.value.key


def test_children_are_the_nodes_right_below():
    values = {
        "zarr.json": GROUP,
        "b/zarr.json": GROUP,
        "b/deep/zarr.json": GROUP,
        "a/zarr.json": dump(v3()),
        "a/c/0": b"1234",
        "old/.zarray": dump(v2()),
        "c/zarr.json": GROUP,
        "nothing/file": b"1",
        "__reserved/zarr.json": GROUP,
        "file": b"1",
    }
    found = NodePath(MemoryStore(values), "").children()
    assert [name for name, _ in found] == ["a", "b", "c", "old"]


# ---- writing


def test_creating_a_node_creates_its_ancestors(store):
    NodePath(store, "a/b/c").create(GroupMetadata(3), overwrite=False)
    assert sorted(store.list_prefix("")) == [
        "a/b/c/zarr.json",
        "a/b/zarr.json",
        "a/zarr.json",
        "zarr.json",
    ]
    document = json.loads(store.get("a/zarr.json"))
    assert (document["zarr_format"], document["node_type"]) == (3, "group")


def test_v2_ancestors_are_v2_groups(store):
    zarrdask.create_array(store, "a/b", shape=3, dtype="i4", zarr_format=2)
    assert sorted(store.list_prefix("")) == [".zgroup", "a/.zgroup", "a/b/.zarray"]
    assert json.loads(store.get("a/.zgroup")) == {"zarr_format": 2}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_at_the_root_creates_no_group(store, zarr_format):
    zarrdask.create_array(store, shape=3, dtype="i4", zarr_format=zarr_format)
    assert sorted(store.list_prefix("")) == [{2: ".zarray", 3: "zarr.json"}[zarr_format]]


def test_ancestors_that_are_there_stay_as_they_are(store):
    zarrdask.create_group(store, "a", attributes={"kept": 1})
    zarrdask.create_group(store, "a/b/c")
    assert dict(zarrdask.open_group(store, "a").attrs) == {"kept": 1}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("path", ["array/x", "array/x/y"])
def test_an_array_in_the_way_is_an_error_and_nothing_is_written(store, zarr_format, path):
    zarrdask.create_array(store, "array", shape=3, dtype="i4", zarr_format=zarr_format)
    before = sorted(store.list_prefix(""))
    for overwrite in (False, True):
        with pytest.raises(NodeExistsError, match="array"):
            NodePath(store, path).create(GroupMetadata(zarr_format), overwrite=overwrite)
    assert sorted(store.list_prefix("")) == before


@pytest.mark.parametrize("first", [2, 3])
@pytest.mark.parametrize("second", [2, 3])
def test_a_node_that_is_there_is_an_error_unless_it_may_be_replaced(store, first, second):
    z = zarrdask.create_array(store, "a", shape=4, dtype="i4", chunks=2, zarr_format=first)
    z[...] = 1
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        zarrdask.create_group(store, "a", zarr_format=second)
    assert np.array_equal(zarrdask.open_array(store, "a")[...], np.ones(4))
    with dask.config.set({"zarrdask.mixed-formats": True}):
        zarrdask.create_group(store, "a", zarr_format=second, overwrite=True)
    assert zarrdask.open(store, "a").zarr_format == second
    assert sorted(key for key in store.list_prefix("a/")) == [
        {2: "a/.zgroup", 3: "a/zarr.json"}[second]
    ]


def test_what_cannot_be_written_erases_nothing(store):
    z = zarrdask.create_array(store, "a", shape=4, dtype="i4")
    z[...] = 1
    with pytest.raises(UnsupportedError):
        zarrdask.create_array(store, "a", shape=4, dtype="f16", overwrite=True)
    with pytest.raises(MetadataError):
        zarrdask.create_group(store, "a", attributes={"x": {1, 2}}, overwrite=True)
    assert np.array_equal(zarrdask.open_array(store, "a")[...], np.ones(4))


def test_overwriting_what_is_no_node_leaves_it_alone(store):
    store.set("a/someones/file", b"1")
    zarrdask.create_group(store, "a", overwrite=True)
    assert store.get("a/someones/file") == b"1"


@for_each("path", ["a/zarr.json", "__a", "a/__b", ".zarray", ".zattrs/x"])
def test_reserved_names_are_refused(path):
    with pytest.raises(MetadataError):
        zarrdask.create_group({}, path)


def test_erasing_a_node_leaves_its_siblings(store):
    for path in ("a", "a/deep", "ab", "b"):
        zarrdask.create_group(store, path)
    NodePath(store, "a").erase()
    assert sorted(store.list_prefix("")) == ["ab/zarr.json", "b/zarr.json", "zarr.json"]


def test_the_stamp_changes_when_a_document_is_written_again(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=3, dtype="i4")
    before = z.node_path.version_stamp()
    zarrdask.create_array(tmp_path, shape=3, dtype="i4", overwrite=True)
    assert z.node_path.version_stamp() != before != ""


@pytest.mark.parametrize("name", [".zarray", ".zgroup"])
def test_members_that_another_writer_added_are_kept(name):
    found = {"zarr_format": 2, "_NCZARR": {"a": [1]}}
    if name == ".zarray":
        found |= v2()
    store = {name: dump(found)}
    node = zarrdask.open(store, mode="r+")
    node.attrs["units"] = "K"
    assert json.loads(store[name])["_NCZARR"] == {"a": [1]}
    assert json.loads(store[".zattrs"]) == {"units": "K"}


def test_overwriting_the_root_replaces_the_other_dialect_of_the_draft():
    dialects = ("v3-draft", "v3-draft-protocol")
    store = {}
    for old, new in (dialects, dialects[::-1]):
        zarrdask.create_array(store, "a", shape=2, dtype="u1", zarr_format=old)[...] = 1
        with pytest.raises(NodeExistsError):
            zarrdask.create_group(store, zarr_format=new)
        group = zarrdask.create_group(store, zarr_format=new, overwrite=True)
        assert (list(group), zarrdask.open(store).zarr_format) == ([], new)
        del store["zarr.json"]


class Counting(MemoryStore):
    """A store that keeps what it is asked for."""

    def __init__(self, values):
        super().__init__(values)
        self.asked = []

    def get_many(self, keys, scratch):
        keys = list(keys)
        self.asked += keys
        return super().get_many(keys, scratch)


@for_each("zarr_format", [2, 3, "v3-draft", "v3-draft-protocol"])
def test_opening_asks_for_nothing_twice(zarr_format):
    values = {}
    zarrdask.create_array(values, "a/b", shape=2, dtype="u1", zarr_format=zarr_format)
    store = Counting(values)
    zarrdask.open(store, "a/b")
    assert len(set(store.asked)) == len(store.asked)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_are_used_as_far_as_the_caller_allows(zarr_format):
    values = {}
    root = zarrdask.create_group(values, zarr_format=zarr_format)
    root.create_array("a/x", shape=2, dtype="u1")
    zarrdask.consolidate_metadata(root)
    store = MemoryStore(values)
    for path, use, is_view in [
        ("a/x", "never", False),
        ("a/x", "inherited", False),
        ("a/x", "own", False),
        ("a/x", "nearest", True),
        ("a/x", "required", True),
        ("", "own", True),
        ("", "never", False),
    ]:
        node, metadata = NodePath(store, path).find(consolidated=use)
        assert isinstance(node.store, ConsolidatedStore) is is_view, (path, use)
        assert isinstance(metadata, ArrayMetadata) is (path == "a/x")
    opened, _ = NodePath(store, "").find(consolidated="own")
    assert opened.join("a/x").find(consolidated="inherited")[0].store is opened.store
    assert opened.join("a/x").find(consolidated="never")[0].store is store


def test_a_node_that_consolidated_metadata_above_do_not_have_is_read_from_its_own_documents():
    values = {}
    zarrdask.create_group(values, "early")
    zarrdask.consolidate_metadata(values)
    values["late/zarr.json"] = dump(v3())
    node, metadata = NodePath(MemoryStore(values), "late").find(consolidated="nearest")
    assert isinstance(metadata, ArrayMetadata)
    assert not isinstance(node.store, ConsolidatedStore)
    with pytest.raises(NodeNotFoundError):
        NodePath(MemoryStore(values), "late").find(consolidated="required")


class UnlistableBucket(MemoryStore):
    """A bucket whose keys one may not list: it answers 403 for those that are missing."""

    def get(self, key):
        if key not in self.values:
            raise StoreError("Access Denied", key=key) from RequestError("AccessDenied", 403)
        return super().get(key)

    def get_many(self, keys, scratch):
        return map(self.get, keys)


@pytest.mark.parametrize("documents", [{"zarr.json": v3()}, {".zarray": v2(), ".zattrs": {}}])
def test_what_the_server_refuses_of_other_formats_is_absent(documents):
    store = UnlistableBucket({f"a/{n}": dump(d) for n, d in documents.items()})
    assert zarrdask.open_array(store, "a").ndim
    store.values.clear()
    with pytest.raises(StoreError, match="Access Denied"):
        zarrdask.open_array(store, "a")


def test_what_the_server_refuses_of_the_same_format_is_an_error():
    with pytest.raises(StoreError, match="Access Denied"):
        zarrdask.open_array(UnlistableBucket({"a/.zarray": dump(v2())}), "a")
