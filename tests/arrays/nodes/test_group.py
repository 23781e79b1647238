"""Groups."""

import pickle

import dask
import numpy as np
import pytest

import zarrdask
from tests.counting import CountingStore
from tests.covering import for_each
from tests.documents import dump, v2, v3
from tests.storage.unlisted import UnlistedStore
from zarrdask import Array, Group, create_group, open_group
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    UnsupportedError,
)
from zarrdask.storage.memory import MemoryStore

GROUP = {"zarr_format": 3, "node_type": "group"}


def test_an_empty_group(root):
    assert len(root) == 0
    assert list(root) == []
    assert dict(root) == {}
    assert list(root.walk()) == []


def test_a_group_is_a_mapping_of_the_names_right_below(full):
    assert list(full) == sorted(full) == ["a", "z"]
    assert len(full) == 2
    assert list(full.keys()) == ["a", "z"]
    assert [type(v) for v in full.values()] == [Group, Array]
    assert [name for name, _ in full.items()] == ["a", "z"]
    assert full.get("nothing") is None
    assert "a" in full
    assert "nothing" not in full
    assert 5 not in full


def test_a_name_may_be_a_path(full):
    assert full["a/b/y"].shape == (4,)
    assert full["/a//b/"].path == "a/b"
    assert full["a"]["b"]["y"].path == "a/b/y"
    assert "a/b/y" in full
    assert "a/b/nothing" not in full
    assert "z/below" not in full


@for_each("name", ["nothing", "a/nothing", "z/below", "", "/"])
def test_a_missing_member_is_an_error_that_names_it(full, name):
    with pytest.raises(NodeNotFoundError) as caught:
        full[name]
    assert name.strip("/") in caught.value.key
    with pytest.raises(KeyError):
        full[name]


@for_each("name", ["", "/", "//"])
def test_a_group_is_no_member_of_itself(full, name):
    assert name not in full
    assert full.get(name) is None


def test_members_by_kind(full):
    assert [(n, g.path) for n, g in full.groups()] == [("a", "a")]
    assert [(n, z.shape) for n, z in full.arrays()] == [("z", ())]
    assert [n for n, _ in full["a"].arrays()] == ["x"]


def test_walking_gives_everything_below_parents_first(full):
    assert [path for path, _ in full.walk()] == ["a", "a/b", "a/b/y", "a/x", "z"]
    assert [path for path, _ in full["a"].walk()] == ["b", "b/y", "x"]
    assert all(full[path].path == node.path for path, node in full.walk())


def test_the_tree_is_drawn(full):
    assert str(full.tree()).splitlines() == [
        "/",
        "├── a",
        "│   ├── b",
        "│   │   └── y (4,) uint8, 4 B, 1 chunk (4,)",
        "│   └── x (2, 3) int32, 24 B, 1 chunk (2, 3)",
        "└── z () int16, 2 B, 1 chunk ()",
    ]
    assert list(full["a/b"].tree().lines()) == ["a/b", "└── y (4,) uint8, 4 B, 1 chunk (4,)"]
    assert list(full.tree(depth=1).lines()) == ["/", "├── a", "└── z () int16, 2 B, 1 chunk ()"]


def test_a_tree_has_nodes_that_can_not_be_opened():
    group = create_group({})
    group.create_group("a")
    group.store.set("b/zarr.json", b"{")
    first, *others = group.tree().lines()
    assert (first, others[0]) == ("/", "├── a")
    assert others[1].startswith("└── b  can't be opened: ")


def test_a_notebook_shows_a_tree_as_it_prints():
    group = create_group({})
    group.create_group("<b>")
    tree = group.tree()
    assert repr(tree) == str(tree) == "/\n└── <b>"
    assert "&lt;b&gt;" in tree._repr_html_()


def test_names_with_odd_characters(root):
    names = {"with space", "ünï", "per%20cent", "a*", "c"}
    for name in names:
        root.create_group(name)
    assert set(root) == names


def test_an_array_named_like_a_chunk_key_prefix_is_a_node(root):
    root.create_array("c", shape=2, dtype="i4")[...] = 1
    assert list(root) == ["c"]
    assert root["c"][...].tolist() == [1, 1]


def test_created_nodes_are_of_the_groups_format_and_stored(root):
    z = root.create_array("a/x", shape=3, dtype="f4", attributes={"unit": "K"})
    g = root.create_group("g/h", attributes={"n": 1})
    assert z.zarr_format == g.zarr_format == root.zarr_format
    again = zarrdask.open(root.store)
    assert again["a/x"].attrs == {"unit": "K"}
    assert again["g/h"].attrs == {"n": 1}
    assert isinstance(again["g"], Group)


@for_each("name", ["a", "z", "a/b/y"])
def test_a_name_that_is_taken_is_an_error(full, name):
    with pytest.raises(NodeExistsError):
        full.create_group(name)
    with pytest.raises(NodeExistsError):
        full.create_array(name, shape=1, dtype="i4")


def test_overwriting_removes_what_was_there(full):
    full.create_group("a", overwrite=True)
    assert list(full["a"]) == []
    full.create_array("a", shape=1, dtype="i4", overwrite=True)
    assert isinstance(full["a"], Array)


def test_an_array_in_the_way_is_an_error(full):
    with pytest.raises(NodeExistsError, match="array"):
        full.create_group("z/below")
    with pytest.raises(NodeExistsError, match="array"):
        full.create_array("a/x/deep/below", shape=1, dtype="i4")
    assert [path for path, _ in full.walk()] == ["a", "a/b", "a/b/y", "a/x", "z"]


def test_requiring_a_group(full):
    assert full.require_group("a") == full["a"]
    assert full.require_group("new/one").path == "new/one"
    with pytest.raises(NodeTypeError, match="array"):
        full.require_group("z")


def test_requiring_an_array(full):
    full["a/x"][...] = 5
    assert full.require_array("a/x", shape=(2, 3), dtype="i4")[0, 0] == 5
    assert full.require_array("new", shape=3, dtype="f4", chunks=2).chunks == (2,)
    with pytest.raises(NodeTypeError, match="group"):
        full.require_array("a", shape=1, dtype="i4")
    for name in ("a/x", "other"):
        with pytest.raises(TypeError, match=r"^require_array\(\) got .*; did you mean 'chunks'"):
            full.require_array(name, shape=(2, 3), dtype="i4", chunk=2)


@for_each(("shape", "dtype"), [((2, 4), "i4"), ((2, 3), "f8"), (6, "i4")])
def test_requiring_another_array_than_there_is_is_an_error(full, shape, dtype):
    with pytest.raises(MetadataError, match="exists with another"):
        full.require_array("a/x", shape=shape, dtype=dtype)


def test_deleting(full):
    full["a/x"][...] = 1
    del full["a/x"]
    assert "a/x" not in full
    assert not list(full.store.list_prefix("a/x/"))
    del full["a"]
    assert list(full) == ["z"]
    assert not list(full.store.list_prefix("a/"))


@for_each("name", ["nothing", "a/nothing", "", "/"])
def test_deleting_what_is_not_there_is_an_error_and_deletes_nothing(full, name):
    with pytest.raises(KeyError):
        del full[name]
    assert [path for path, _ in full.walk()] == ["a", "a/b", "a/b/y", "a/x", "z"]


@pytest.mark.parametrize(("name", "other"), [("a*", "ab"), ("a?", "ab"), ("a[b]", "ab")])
def test_deleting_takes_a_name_as_it_is_not_as_a_pattern(root, name, other):
    for each in (name, other):
        root.create_array(each, shape=1, dtype="i4")[...] = 1
    del root[name]
    assert list(root) == [other]
    assert root[other][...].tolist() == [1]


def test_a_node_that_cannot_be_opened_can_be_deleted():
    store = {
        "zarr.json": b'{"zarr_format": 3, "node_type": "group"}',
        "odd/zarr.json": dump(v3(data_type="int2")),
    }
    group = open_group(store, mode="r+")
    del group["odd"]
    assert list(store) == ["zarr.json"]


def test_the_names_of_members_are_there_though_one_cannot_be_opened():
    store = {
        "zarr.json": b'{"zarr_format": 3, "node_type": "group"}',
        "a/zarr.json": dump(v3()),
        "odd/zarr.json": dump(v3(data_type="int2")),
    }
    group = open_group(store)
    assert "odd" in group
    assert list(group) == ["a", "odd"]
    assert len(group) == 2


def test_attributes_are_stored_at_once(root):
    root.attrs["a"] = [1, {"b": None}]
    root.attrs.update({"c": "た"}, d=1.5)
    expected = {"a": [1, {"b": None}], "c": "た", "d": 1.5}
    assert root.attrs == expected
    assert open_group(root.store).attrs.asdict() == expected
    del root.attrs["a"]
    assert set(open_group(root.store).attrs) == {"c", "d"}
    root.attrs.put({"only": True})
    assert open_group(root.store).attrs.asdict() == {"only": True}
    root.attrs.clear()
    assert len(open_group(root.store).attrs) == 0


def test_a_missing_attribute_is_a_key_error(root):
    with pytest.raises(KeyError):
        root.attrs["nothing"]
    with pytest.raises(KeyError):
        del root.attrs["nothing"]


def test_attributes_that_are_no_json_are_an_error_and_change_nothing(root):
    root.attrs["a"] = 1
    with pytest.raises(MetadataError):
        root.attrs["b"] = {1, 2}
    assert root.attrs.asdict() == {"a": 1}
    assert open_group(root.store).attrs.asdict() == {"a": 1}


def test_v2_attributes_have_a_document_of_their_own():
    store = {}
    group = create_group(store, zarr_format=2, attributes={"a": 1})
    assert set(store) == {".zgroup", ".zattrs"}
    del group.attrs["a"]
    assert set(store) == {".zgroup"}


def test_groups_are_equal_by_place(full):
    assert full["a"] == zarrdask.open(full.store, "a")
    assert full["a"] != full["a/b"]
    assert full["a/b"].name == "b"
    assert full.name == ""
    assert "a/b" in repr(full["a/b"])


def test_an_array_that_is_required_twice_is_the_same():
    group = zarrdask.create_group({})
    for _ in range(2):
        z = group.require_array("a", shape=np.int64(4), dtype=">f4")
        assert (z.shape, z.dtype) == ((4,), np.dtype("f4"))


def test_an_array_can_be_opened_again_strictly(doubtful):
    z = zarrdask.open_array(doubtful, "a")
    assert zarrdask.open_array(z) is z
    with pytest.raises(MetadataError, match="A-16"):
        zarrdask.open_array(z, strict=True)


def test_what_was_allowed_where_it_was_opened_can_be_changed(doubtful):
    with dask.config.set({"zarrdask.strict": True}):
        group = open_group(doubtful, mode="r+", strict=False)
        z = group["a"]
        group.attrs["x"] = z.attrs["x"] = 1
        z.resize(3)
        z.append(np.ones(3, "u2"))
    assert zarrdask.open(doubtful, "a").shape == (6,)


@for_each("name", [3, "\ud800", "...", "a\0"])
def test_what_is_no_name_is_an_error(root, name):
    with pytest.raises(MetadataError, match="path"):
        root.create_group(name)
    with pytest.raises(MetadataError, match="path"):
        zarrdask.open(root.store, name)


def test_directories_whose_names_no_node_can_have_are_no_members():
    values = {"zarr.json": dump(GROUP)}
    values |= dict.fromkeys(("ok/zarr.json", ".../zarr.json", "a\\b/zarr.json"), dump(v3()))
    assert list(open_group(values)) == ["ok"]


def test_v2_has_no_reserved_names():
    group = create_group({}, zarr_format=2)
    group.create_array("__a", shape=2, dtype="u1")
    assert list(group) == ["__a"]
    values = {"zarr.json": dump(GROUP), "__a/zarr.json": dump(v3())}
    assert list(open_group(values)) == []


@for_each("zarr_format", [2, 3, "v3-draft", "v3-draft-protocol"])
@for_each(
    "act",
    [
        lambda group: group.__delitem__("a"),
        lambda group: group.create_array("a", shape=3, dtype="u1", overwrite=True),
    ],
)
def test_what_can_not_be_removed_as_a_whole_stays_as_it_is(zarr_format, act):
    values = {}
    group = create_group(UnlistedStore(values), zarr_format=zarr_format)
    group.create_array("a", shape=2, dtype="u1")[...] = 1
    before = dict(values)
    with pytest.raises(UnsupportedError, match="listed"):
        act(group)
    assert values == before


@pytest.mark.parametrize("attributes", [{1: 2}, {"a": {None: 1}}, {"a": [{True: 1}]}])
def test_keys_that_are_no_text_are_an_error(attributes):
    values = {}
    with pytest.raises(MetadataError, match="text"):
        zarrdask.create_group(values, attributes=attributes)
    assert not values


@pytest.fixture
def counting(zarr_format):
    """A group with the arrays a and b, and the store that counts what is asked of it."""
    store = CountingStore(MemoryStore({}))
    group = create_group(store, zarr_format=zarr_format)
    for name in "ab":
        group.create_array(name, shape=2, dtype="u1")
    store.clear()
    return group, store


#: The documents that are requested of members, by the format of the group: v3 is preferred.
DOCUMENTS = {2: ["zarr.json", ".zarray", ".zattrs", ".zgroup"], 3: ["zarr.json"]}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "act",
    [list, sorted, len, dict, lambda g: list(g.items()), lambda g: list(g.values())],
    ids=["list", "sorted", "len", "dict", "items", "values"],
)
def test_members_are_listed_once(counting, zarr_format, act):
    group, store = counting
    act(group)
    assert store.listings == {"": 1}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "act",
    [
        list,
        lambda g: list(g.items()),
        lambda g: list(g.values()),
        lambda g: list(g.walk()),
        lambda g: g.tree(),
        lambda g: (g["a"], g["b"]),
        lambda g: [zarrdask.open_array(g, name) for name in "ab"],
        lambda g: [zarrdask.open(g, name, consolidated=False) for name in "ab"],
    ],
    ids=["list", "items", "values", "walk", "tree", "by name", "open_array", "open"],
)
def test_members_are_read_by_the_documents_of_their_groups_format(counting, zarr_format, act):
    group, store = counting
    act(group)
    assert store.reads == {f"{name}/{key}": 1 for name in "ab" for key in DOCUMENTS[zarr_format]}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_of_another_format_are_found(zarr_format):
    values = {}
    group = create_group(values, zarr_format=zarr_format)
    other = 5 - zarr_format
    with dask.config.set({"zarrdask.mixed-formats": True}):
        zarrdask.create_array(values, "a", shape=2, dtype="u1", zarr_format=other)
    assert list(group) == ["a"]
    assert "a" in group
    assert group["a"].zarr_format == other
    assert [member.zarr_format for member in group.values()] == [other]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore:.*metadata of two formats")
def test_a_member_of_two_formats_is_the_same_node_wherever_it_is_opened_from(tmp_path, zarr_format):
    group = create_group(tmp_path, zarr_format=zarr_format)
    for name, document in (("zarr.json", v3((5,), (5,))), (".zarray", v2((4,), (4,)))):
        group.store.set(f"a/{name}", dump(document))
    ways = [
        group["a"],
        dict(group.items())["a"],
        dict(group.walk())["a"],
        zarrdask.open_array(group, "a"),
        zarrdask.open_array(tmp_path, "a"),
        zarrdask.open_array(tmp_path / "a"),
    ]
    assert [(z.zarr_format, z.shape) for z in ways] == [(3, (5,))] * len(ways)
    assert zarrdask.open_array(tmp_path, "a", zarr_format=2).shape == (4,)


def test_the_length_is_that_of_now():
    group = create_group({})
    group.create_group("a")
    names = iter(group)
    group.create_group("b")
    assert len(group) == 2
    assert list(names) == ["a"]
    assert [len(group) for _ in group] == [2, 2]
    begun = iter(group)
    next(begun)
    zarrdask.create_group(group.store, "c")
    assert len(group) == 3
    del group["a"]
    assert (len(group), list(group)) == (2, ["b", "c"])


def test_a_group_that_is_being_listed_pickles(tmp_path):
    group = create_group(tmp_path)
    names = iter(group)
    assert pickle.loads(pickle.dumps(group)) == group
    assert list(names) == []


def test_a_tree_of_any_depth():
    depth, store = 1200, {}
    document = b'{"zarr_format": 3, "node_type": "group"}'
    for level in range(depth + 1):
        store["a/" * level + "zarr.json"] = document
    tree = zarrdask.open_group(store).tree()
    assert len(str(tree).splitlines()) == depth + 1
    assert "1 member" in tree._repr_html_()
