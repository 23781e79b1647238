"""The location of a node."""

import pickle

import pytest

import zarrdask
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.formats.metadata.model import GroupMetadata
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.zarr.consolidated_store import ConsolidatedStore

STORE = LocalStore("/data.zarr")


def test_it_names_a_node_and_the_groups_above():
    root, node = NodePath(STORE, ""), NodePath(STORE, "a/b/c")
    assert node == root.join("/a//b/").join("c") == root.at("a/b/c")
    assert (root.prefix, node.prefix) == ("", "a/b/c/")
    assert (root.location, node.location) == ("/data.zarr", "/data.zarr/a/b/c")
    assert node.parents == [root, root.at("a"), root.at("a/b")]
    assert root.parents == []
    assert root.join("") == root


def test_it_is_immutable_and_pickles():
    node = NodePath(STORE, "a")
    assert pickle.loads(pickle.dumps(node)) == node
    assert type(node.join("b")) is NodePath
    with pytest.raises(AttributeError):
        node.path = "b"


def test_a_view_of_the_store_shows_the_same_node():
    store = MemoryStore()
    zarrdask.create_group(store).create_group("a")
    zarrdask.consolidate_metadata(store)
    node, metadata = NodePath(store, "a").find(consolidated="nearest")
    assert isinstance(node.store, ConsolidatedStore)
    assert metadata == GroupMetadata(3) == node.read()
    assert node.current == NodePath(store, "a") == node.via(store)
    assert node.via(node.store) is node
