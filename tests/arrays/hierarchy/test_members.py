"""The nodes below a group: one walk of a hierarchy."""

import pytest

import zarrdask
from tests.documents import dump, v2, v3
from zarrdask.arrays.hierarchy import members
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.compliance import is_strict
from zarrdask.formats.metadata.detect import Search
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata
from zarrdask.storage.memory import MemoryStore

GROUP = b'{"zarr_format": 3, "node_type": "group"}'
ENTRY_POINT = {
    "zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0",
    "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0",
    "metadata_key_suffix": ".json",
    "extensions": [],
}


class Listed(MemoryStore):
    """A store that keeps the prefixes that were listed."""

    def __init__(self, values):
        super().__init__(values)
        self.prefixes = []

    def list_dir(self, prefix):
        self.prefixes.append(prefix)
        return super().list_dir(prefix)


@pytest.fixture
def store():
    return Listed(
        {
            "zarr.json": GROUP,
            "b/zarr.json": GROUP,
            "b/x/zarr.json": dump(v3()),
            "b/deep/zarr.json": GROUP,
            "b/deep/y/zarr.json": dump(v3()),
            "a/zarr.json": dump(v3()),
            "old/.zgroup": dump({"zarr_format": 2}),
            "old/z/.zarray": dump(v2()),
        }
    )


def test_a_walk_visits_each_group_before_its_members(store):
    nodes = dict(NodePath(store, "").walk())
    assert list(nodes) == ["a", "b", "b/deep", "b/deep/y", "b/x", "old", "old/z"]
    groups = {path for path, node in nodes.items() if isinstance(node, GroupMetadata)}
    assert groups == {"b", "b/deep", "old"}
    assert all(isinstance(nodes[path], ArrayMetadata) for path in nodes.keys() - groups)
    assert sorted(store.prefixes) == ["", "b/", "b/deep/", "old/"]


def test_the_paths_of_a_walk_begin_at_its_group(store):
    assert [path for path, _ in NodePath(store, "b").walk()] == ["deep", "deep/y", "x"]


def test_a_walk_lists_a_group_when_it_reaches_it(store):
    walk = NodePath(store, "").walk()
    assert [next(walk)[0], next(walk)[0]] == ["a", "b"]
    assert store.prefixes == [""]
    assert next(walk)[0] == "b/deep"
    assert store.prefixes == ["", "b/"]


def test_a_walk_does_not_list_groups_that_are_left_out(store):
    nodes = NodePath(store, "").walk(descend=lambda path: path != "b")
    assert [path for path, _ in nodes] == ["a", "b", "old", "old/z"]
    assert store.prefixes == ["", "old/"]


def test_a_walk_of_one_format_leaves_out_the_others(store):
    nodes = NodePath(store, "").walk(search=Search(3, only=True))
    assert [path for path, _ in nodes] == ["a", "b", "b/deep", "b/deep/y", "b/x"]


def test_an_invalid_node_of_a_walk_is_its_error(store):
    store.set("b/x/zarr.json", dump(v3(data_type="int7")))
    store.set("b/deep/zarr.json", b"{")
    nodes = dict(NodePath(store, "").walk())
    assert isinstance(nodes["b/x"], UnsupportedError)
    assert isinstance(nodes["b/deep"], MetadataError)
    assert "b/deep/y" not in nodes
    assert "old/z" in nodes


def test_strict_mode_applies_to_the_nodes_of_a_walk_and_not_between_them(store, monkeypatch):
    modes = []
    parse = members.node_of
    monkeypatch.setattr(members, "node_of", lambda *args: modes.append(is_strict()) or parse(*args))
    between = [is_strict() for _ in NodePath(store, "").walk(strict=True)]
    assert modes == [True] * 7
    assert between == [False] * 7


def test_a_group_walks_as_its_store_does(store):
    group = zarrdask.open_group(store)
    assert [path for path, _ in group.walk()] == [path for path, _ in NodePath(store, "").walk()]
    store.set("b/deep/zarr.json", b"{")
    with pytest.raises(ZarrdaskError, match="b/deep"):
        list(group.walk())


def test_the_root_of_a_draft_hierarchy_is_no_member_but_opens_by_its_own_url():
    values = {"zarr.json": GROUP, "d/zarr.json": dump(ENTRY_POINT)}
    [(name, error)] = NodePath(MemoryStore(values), "").children()
    assert name == "d"
    assert isinstance(error, MetadataError)
    assert "open it by its own URL" in error.message
    assert zarrdask.open(values, "d").zarr_format == "v3-draft-protocol"
    with pytest.raises(MetadataError, match="open it by its own URL"):
        zarrdask.open(values, "d", zarr_format=3)
