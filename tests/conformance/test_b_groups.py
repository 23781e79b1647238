"""B.8: groups of the draft, explicit and implicit; discovery and erasure."""

import json

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump
from tests.drafts import ENTRY, NOBODY, array, hierarchy, stored
from zarrdask.errors import MetadataError, NodeExistsError, NodeNotFoundError, UnsupportedError
from zarrdask.formats.metadata.draft.entry import EntryPoint
from zarrdask.formats.metadata.formats import find_format
from zarrdask.storage.base import Store
from zarrdask.storage.memory import MemoryStore

DRAFT = {"zarr_format": "v3-draft"}
SMALL = {"shape": (2,), "dtype": "u1", "chunks": 1, "compressors": [], **DRAFT}
GROUP = {"attributes": {}}


class Recording(MemoryStore):
    """A store that records what is asked of it."""

    def __init__(self, values):
        super().__init__(values)
        self.calls = []

    def get_many(self, keys, scratch):
        keys = list(keys)
        self.calls.append(("get", *keys))
        return super().get_many(keys, scratch)

    def list_dir(self, prefix):
        self.calls.append(("list_dir", prefix))
        return super().list_dir(prefix)

    def list_prefix(self, prefix):
        self.calls.append(("list_prefix", prefix))
        return super().list_prefix(prefix)

    def erase(self, key):
        if key in self.values:
            self.calls.append(("erase", key))
        super().erase(key)

    def erase_prefix(self, prefix):
        self.calls.append(("erase_prefix", prefix))
        for key in [key for key in self.values if key.startswith(prefix)]:
            del self.values[key]


def nodes(store):
    return [key for key in sorted(store) if key.startswith("meta/")]


# ---- documents


def test_b64_a_group_has_its_attributes_and_nothing_else():
    store = {}
    zarrdask.create_group(store, "g", attributes={"spam": "ham", "eggs": 42}, **DRAFT)
    document = json.loads(store["meta/g.group.json"])
    assert document == {"attributes": {"spam": "ham", "eggs": 42}}
    zarrdask.create_group(store, "h", **DRAFT)
    assert json.loads(store["meta/h.group.json"]) == {"attributes": {}}
    assert dict(zarrdask.open_group(store, "g").attrs) == {"spam": "ham", "eggs": 42}


@pytest.mark.parametrize("document", [{}, {"attributes": []}, {"attributes": None}])
def test_b64_without_attributes_it_is_an_error(document):
    with pytest.raises(MetadataError, match="attributes"):
        zarrdask.open(hierarchy({"g.group": document}), "g")


@pytest.mark.parametrize("name", ["zarr_format", "node_type", "x"])
def test_b64_another_name_is_an_error(name):
    with pytest.raises(UnsupportedError) as caught:
        zarrdask.open(hierarchy({"g.group": GROUP | {name: 1}}), "g")
    assert caught.value.found == [name]


def test_b64_empty_extensions_are_read_unless_strict():
    store = hierarchy({"g.group": GROUP | {"extensions": []}})
    assert dict(zarrdask.open_group(store, "g").attrs) == {}
    with pytest.raises(MetadataError, match=r"\(B-64\)"):
        zarrdask.open_group(store, "g", strict=True)


def test_b65_groups_have_no_extensions():
    item = {"extension": NOBODY, "must_understand": False}
    with pytest.raises(UnsupportedError, match="extensions"):
        zarrdask.open(hierarchy({"g.group": GROUP | {"extensions": [item]}}), "g")


# ---- implicit groups


@pytest.mark.parametrize("path", ["foo", "foo/bar", ""])
def test_b66_a_group_is_there_when_something_is_below(path):
    store = hierarchy({"foo/bar/baz.array": array()})
    found = zarrdask.open(store, path)
    assert isinstance(found, zarrdask.Group)
    assert dict(found.attrs) == {}
    assert found.zarr_format == "v3-draft"


def test_b66_it_is_listed_as_others_are():
    store = hierarchy({"i/x.array": array(), "e.group": GROUP})
    root = zarrdask.open_group(store)
    assert list(root) == ["e", "i"]
    assert [name for name, _ in root.groups()] == ["e", "i"]
    assert "i" in root
    assert "j" not in root


def test_b66_attributes_make_it_explicit():
    store = hierarchy({"i/x.array": array()})
    zarrdask.open_group(store, "i", mode="r+").attrs["a"] = 1
    assert json.loads(store["meta/i.group.json"]) == {"attributes": {"a": 1}}
    zarrdask.create_group(store, attributes={"b": 2}, **DRAFT)
    assert dict(zarrdask.open_group(store).attrs) == {"b": 2}


def test_b66_a_prefix_without_keys_is_none(tmp_path):
    zarrdask.create_group(tmp_path, **DRAFT)
    (tmp_path / "meta" / "empty" / "deeper").mkdir(parents=True)
    assert list(zarrdask.open_group(tmp_path)) == []
    with pytest.raises(NodeNotFoundError):
        zarrdask.open_group(tmp_path, "empty")


def test_b67_a_new_node_writes_no_ancestors():
    store = {}
    zarrdask.create_group(store, "a/b/c", **DRAFT)
    zarrdask.create_array(store, "d/e/f", **SMALL)
    assert nodes(store) == ["meta/a/b/c.group.json", "meta/d/e/f.array.json"]
    assert [path for path, _ in zarrdask.open_group(store).walk()] == [
        "a",
        "a/b",
        "a/b/c",
        "d",
        "d/e",
        "d/e/f",
    ]


@for_each("first", ["array", "group"])
@for_each("second", ["array", "group"])
def test_b68_a_node_of_either_kind_is_in_the_way(first, second):
    def make(kind, **options):
        if kind == "group":
            return zarrdask.create_group(store, "a", **options, **DRAFT)
        return zarrdask.create_array(store, "a", **options, **SMALL)

    store = {}
    make(first)
    before = dict(store)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        make(second)
    assert store == before
    make(second, overwrite=True)
    assert nodes(store) == [f"meta/a.{second}.json"]


def test_b68_an_implicit_group_is_in_the_way_of_an_array_only():
    store = {}
    zarrdask.create_array(store, "a/b", **SMALL)
    with pytest.raises(NodeExistsError):
        zarrdask.create_array(store, "a", **SMALL)
    zarrdask.create_group(store, "a", attributes={"x": 1}, **DRAFT)
    assert nodes(store) == ["meta/a.group.json", "meta/a/b.array.json"]
    zarrdask.create_array(store, "a", overwrite=True, **SMALL)
    assert nodes(store) == ["meta/a.array.json"]


# ---- discovery


def test_b69_children_are_found_by_one_listing():
    documents = {
        "foo/a.array": array(),
        "foo/g.group": GROUP,
        "foo/g/x.array": array(),
        "foo/i/x.array": array(),
        "other.array": array(),
    }
    store = Recording(hierarchy(documents))
    group = zarrdask.open_group(store, "foo")
    store.calls.clear()
    assert list(iter(group)) == ["a", "g", "i"]
    assert [call for call in store.calls if call[0] == "list_dir"] == [("list_dir", "meta/foo/")]
    assert [type(found).__name__ for _, found in group.walk()] == [
        *("Array", "Group", "Array", "Group", "Array")
    ]


def test_b69_the_example_of_the_text_is_found():
    store = {}
    zarrdask.create_group(store, "/foo/bar", **DRAFT)
    zarrdask.create_array(store, "/foo/baz/qux", **SMALL)
    assert nodes(store) == ["meta/foo/bar.group.json", "meta/foo/baz/qux.array.json"]
    assert list(zarrdask.open_group(store, "/foo")) == ["bar", "baz"]


def test_b70_all_nodes_are_those_below_meta():
    keys = ["a.array", "g.group", "g/x.array", "i/j/y.array"]
    store = hierarchy({key: GROUP if "group" in key else array() for key in keys})
    found = {path for path, _ in zarrdask.open_group(store).walk()}
    assert found == {"a", "g", "g/x", "i", "i/j", "i/j/y"}
    view = zarrdask.open_group(store).store
    assert sorted(view.list_prefix("")) == [
        "a/array.json",
        "g/group.json",
        "g/x/array.json",
        "i/j/y/array.json",
    ]


def test_b71_without_listing_nodes_open_by_path_and_the_error_says_so():
    class Unlisted(Store):
        url = "unlisted"

        def __init__(self, values):
            self.values = values

        def get(self, key):
            return self.values.get(key)

    store = Unlisted(hierarchy({"g.group": GROUP, "g/a.array": array(), "i/a.array": array()}))
    assert zarrdask.open_array(store, "g/a").shape == (4,)
    assert zarrdask.open_array(store, "i/a")[...].tolist() == [0] * 4
    root = zarrdask.open_group(store)
    assert root["g/a"].shape == (4,)
    with pytest.raises(UnsupportedError, match="listed"):
        list(root)


def test_b72_array_then_group_then_what_is_below():
    store = Recording(hierarchy({"i/x.array": array(), "a.array": array(), "g.group": GROUP}))
    root = zarrdask.open_group(store)
    for name, asked in (("a", []), ("g", []), ("i", [("list_prefix", "meta/i/")])):
        store.calls.clear()
        root[name]
        documents = ("get", f"meta/{name}.array.json", f"meta/{name}.group.json")
        assert store.calls == [documents, *asked]


# ---- erasure


def erasable():
    documents = {
        "g.group": GROUP,
        "g/a.array": array(),
        "g/b.array": array(),
        "i/a.array": array(),
        "ga.array": array(),
    }
    chunks = {f"{path}/c0": b"1234" for path in ("g/a", "g/b", "i/a", "ga")}
    return Recording(hierarchy(documents, chunks=chunks))


def test_b73_erasing_an_array_takes_its_document_and_its_chunks():
    store = erasable()
    root = zarrdask.open_group(store, mode="r+")
    before = set(store.values)
    store.calls.clear()
    del root["g/a"]
    assert before - set(store.values) == {"meta/g/a.array.json", "data/g/a/c0"}
    assert ("erase", "meta/g/a.array.json") in store.calls
    assert ("erase_prefix", "data/g/a/") in store.calls


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("i", {"meta/i/a.array.json", "data/i/a/c0"}),
        (
            "g",
            {
                "meta/g.group.json",
                "meta/g/a.array.json",
                "meta/g/b.array.json",
                "data/g/a/c0",
                "data/g/b/c0",
            },
        ),
    ],
)
def test_b74_erasing_a_group_takes_all_that_is_below(name, gone):
    store = erasable()
    before = set(store.values)
    del zarrdask.open_group(store, mode="r+")[name]
    assert before - set(store.values) == gone
    assert ("erase_prefix", f"meta/{name}/") in store.calls
    assert ("erase_prefix", f"data/{name}/") in store.calls


def test_b75_an_implicit_group_vanishes_with_its_last_child():
    store = erasable()
    root = zarrdask.open_group(store, mode="r+")
    del root["i/a"]
    assert list(root) == ["g", "ga"]
    del root["g/a"], root["g/b"]
    assert list(root) == ["g", "ga"]


def test_b75_it_is_kept_if_the_user_wants_it():
    store = erasable()
    root = zarrdask.open_group(store, mode="r+")
    with dask.config.set({"zarrdask.draft-keep-groups": True}):
        del root["i/a"]
        del root["g/a"]
        del root["ga"]
    assert list(root) == ["g", "i"]
    assert nodes(store.values) == [
        "meta/g.group.json",
        "meta/g/b.array.json",
        "meta/i.group.json",
    ]
    assert json.loads(store.get("meta/i.group.json")) == GROUP


# ---- the root


def test_b76_a_hierarchy_is_opened_at_its_root(tmp_path):
    root = tmp_path / "draft.zarr"
    zarrdask.create_array(root, "grp/a", **SMALL)[...] = 7
    assert zarrdask.open_array(root, "grp/a")[...].tolist() == [7, 7]
    assert zarrdask.open_group(root)["grp/a"][...].tolist() == [7, 7]
    for below in ("grp", "grp/a", "meta", "meta/grp", "data/grp/a"):
        with pytest.raises(NodeNotFoundError):
            zarrdask.open(root / below)


def test_b76_the_entry_point_is_told_from_the_documents_of_other_formats():
    assert EntryPoint.is_in(dump(ENTRY))
    others = (b"{}", b"", b"{", None, dump({"zarr_format": 3}), dump({"zarr_format": "3"}))
    assert not any(map(EntryPoint.is_in, others))
    tricky = {"zarr_format": 3, "attributes": {"zarr_format": "https://x/1.0"}}
    assert not EntryPoint.is_in(dump(tricky))
    assert [
        find_format(each).has_entry_point for each in ("v3-draft", "v3-draft-protocol", 2, 3)
    ] == [*(True, True, False, False)]


@for_each("zarr_format", [2, 3])
@for_each("path", ["", "x", "g/x"])
def test_b76_nodes_of_other_formats_do_not_mix_with_it(zarr_format, path):
    store = hierarchy({"g.group": GROUP, "a.array": array()})
    before, view = dict(store), zarrdask.open_group(store).store
    with pytest.raises((NodeExistsError, MetadataError)):
        zarrdask.create_group(store, path, zarr_format=zarr_format)
    with pytest.raises(NodeExistsError, match="v3-draft"):
        zarrdask.create_group(view, "new", zarr_format=zarr_format)
    assert store == before
    plain = {}
    zarrdask.create_group(plain, zarr_format=zarr_format)
    before = dict(plain)
    with pytest.raises(NodeExistsError):
        zarrdask.create_group(plain, path, **DRAFT)
    assert plain == before


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_b76_one_replaces_the_other_if_the_user_wants_it(zarr_format):
    store = stored(chunks={"c0": b"1234"})
    zarrdask.create_group(store, zarr_format=zarr_format, overwrite=True)
    assert not any(key.startswith(("meta/", "data/")) for key in store)
    assert zarrdask.open_group(store).zarr_format == zarr_format
    zarrdask.create_array(store, overwrite=True, **SMALL)
    assert nodes(store) == ["meta/array.json"]
    assert json.loads(store["zarr.json"]) == ENTRY
    assert np.array_equal(zarrdask.open_array(store)[...], [0, 0])
