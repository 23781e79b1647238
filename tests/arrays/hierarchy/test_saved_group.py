"""Concatenations that are saved as a group."""

import json

import numpy as np
import pytest

import zarrdask
from zarrdask.arrays.hierarchy.manifest import render_manifest
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.saved_group import open_saved_group, save_group
from zarrdask.errors import NodeNotFoundError
from zarrdask.storage.local.local_store import LocalStore


@pytest.fixture
def node(tmp_path):
    """Return the path of a group in which two arrays beside it are saved as one."""
    for number in range(2):
        array = zarrdask.create_array(tmp_path / f"a{number}", shape=3, dtype="i4")
        array[...] = number
    joined = zarrdask.concat([str(tmp_path / "a0"), str(tmp_path / "a1")])
    node = NodePath(LocalStore(str(tmp_path)), "saved")
    save_group(node, render_manifest(joined.store, str(tmp_path)))
    return node


def test_what_was_saved_is_read(node):
    found, metadata = open_saved_group(node)
    assert metadata.shape == (6,)
    np.testing.assert_array_equal(zarrdask.open_array(node.location)[...], [0, 0, 0, 1, 1, 1])
    assert found.path == ""


def test_it_is_replaced_by_a_later_one(node):
    document = json.loads(json.dumps(render_manifest(open_saved_group(node)[0].store, "")))
    save_group(node, document)
    assert open_saved_group(node)[1].shape == (6,)


def test_a_group_that_has_lost_its_array_is_an_error(node):
    node.store.erase_prefix("saved/document/")
    with pytest.raises(NodeNotFoundError):
        open_saved_group(node)
