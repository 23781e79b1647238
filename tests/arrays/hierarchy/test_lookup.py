"""Where the node is that a user names, and how it is read."""

import pytest

import zarrdask
from zarrdask.arrays.hierarchy.lookup import locate_node, look_up
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.detect import ANY, Search
from zarrdask.storage.memory import MemoryStore


def test_a_store_and_a_component_are_a_location():
    store = MemoryStore()
    assert locate_node(store, None, None) == NodePath(store, "")
    assert locate_node(store, "/a//b", None) == NodePath(store, "a/b")
    with pytest.raises(MetadataError):
        locate_node(store, "a/..", None)


def test_a_url_is_the_root_of_a_store(tmp_path):
    node = locate_node(tmp_path / "a.zarr", "b", None)
    assert (node.store.url, node.path) == (str(tmp_path / "a.zarr"), "b")


def test_an_opened_node_is_located_in_its_own_store():
    group = zarrdask.create_group(MemoryStore(), "g")
    z = group.create_array("z", shape=4, dtype="i4")
    assert locate_node(z, None, None) == z.node_path == group.node_path.join("z")
    assert locate_node(group, "z", None).store is group.store


def test_a_node_of_other_software_is_located_by_its_store_and_path():
    class Group:
        store, path = {}, "a\\b/"

    node = locate_node(Group(), "c", None)
    assert (type(node.store), node.path) == (MemoryStore, "a/b/c")


def test_members_are_read_as_their_group_was():
    store = MemoryStore()
    zarrdask.create_group(store)
    plain = look_up(store, "a", None)
    assert (plain.search, plain.strict) == (ANY, None)
    group = zarrdask.open_group(store, zarr_format=3, strict=True)
    below = look_up(group, "a", None)
    assert (below.search, below.strict) == (Search(3, only=True), True)
    other = look_up(group, "a", None, zarr_format=2, strict=False)
    assert (other.search, other.strict) == (Search(2, only=True), False)
