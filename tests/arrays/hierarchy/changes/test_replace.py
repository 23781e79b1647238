"""Nodes that are written beside those that they replace."""

import os
import pickle

import numpy as np
import pytest

import zarrdask
from zarrdask.arrays.hierarchy.changes.replace import ReplacedNode, can_stage
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.zarr.consolidated_store import uncached


def begun(array):
    """Return what is to replace an array: one of ones, half as long."""
    metadata = array.metadata.resized((array.shape[0] // 2,))
    change = ReplacedNode(array.node_path, metadata)
    change.begin()
    zarrdask.open_array(change.new.store, mode="r+")[...] = 1
    return change


@pytest.fixture(params=["", "g/a"])
def array(request, tmp_path):
    (tmp_path / "root").mkdir()
    z = zarrdask.create_array(tmp_path / "root", request.param, shape=8, dtype="i4", chunks=2)
    z[...] = np.arange(8)
    return z


def values(array):
    return zarrdask.open_array(array.store, array.path)[...].tolist()


def hidden(array):
    """Return what lies beside the node and has a hidden name."""
    return [
        name
        for name in os.listdir(os.path.dirname(array.store.path(array.path).rstrip("/")))
        if name.startswith(".zarrdask")
    ]


def test_the_old_one_stays_until_the_new_one_is_done(array):
    change = begun(array)
    assert values(array) == list(range(8))
    assert len(hidden(array)) == 1
    change.commit()
    assert values(array) == [1] * 4
    assert not hidden(array)


def test_nobody_sees_it_in_a_group(tmp_path):
    root = zarrdask.create_group(tmp_path)
    z = root.create_array("a", shape=8, dtype="i4", chunks=2)
    begun(z)
    assert list(root) == ["a"]
    assert [path for path, _ in root.walk()] == ["a"]
    assert [key for key in z.store.list() if "zarrdask" in key] == []


def test_finishing_again_does_nothing(array):
    change = begun(array)
    again = pickle.loads(pickle.dumps(change))
    change.commit()
    again.commit()
    change.commit()
    assert values(array) == [1] * 4
    # Who is late writes nowhere.
    again.new.store.set("c/0", b"nonsense")
    again.commit()
    assert values(array) == [1] * 4
    assert not hidden(array)


def test_finishing_that_was_cut_short_is_finished(array, monkeypatch):
    change = begun(array)
    with monkeypatch.context() as patch:
        patch.setattr("zarrdask.storage.local.staged.remove_directory", None)
        with pytest.raises(TypeError):
            change.commit()
    assert values(array) == [1] * 4
    assert len(hidden(array)) == 1
    change.commit()
    assert values(array) == [1] * 4
    assert not hidden(array)


def test_giving_up_leaves_the_old_one(array):
    change = begun(array)
    change.abort()
    change.abort()
    assert values(array) == list(range(8))
    assert not hidden(array)
    with pytest.raises(StoreError, match="no longer exists"):
        change.commit()
    assert values(array) == list(range(8))


def test_an_old_one_that_is_gone_is_no_obstacle(array):
    change = begun(array)
    array.store.erase_prefix(f"{array.path}/" if array.path else "")
    change.commit()
    assert values(array) == [1] * 4


def test_of_two_the_later_one_stays(array):
    first, second = begun(array), begun(array)
    zarrdask.open_array(second.new.store, mode="r+")[...] = 2
    first.commit()
    second.commit()
    assert values(array) == [2] * 4
    assert not hidden(array)


def test_a_link_stays_a_link(tmp_path):
    zarrdask.create_array(tmp_path / "real", shape=8, dtype="i4", chunks=2)
    (tmp_path / "link").symlink_to("real")
    z = zarrdask.open_array(tmp_path / "link")
    begun(z).commit()
    assert (tmp_path / "link").is_symlink()
    assert zarrdask.open_array(tmp_path / "real")[...].tolist() == [1] * 4


def test_consolidated_metadata_do_not_tell_of_the_old_one(tmp_path):
    root = zarrdask.create_group(tmp_path)
    root.create_array("a", shape=8, dtype="i4", chunks=2)
    z = zarrdask.consolidate_metadata(root)["a"]
    begun(zarrdask.Array(NodePath(uncached(z.store), "a"), z.metadata)).commit()
    assert zarrdask.open_group(tmp_path)["a"].shape == (4,)


def test_a_place_that_can_not_be_written_is_an_error_that_says_so(array, monkeypatch):
    def denied(path):
        raise PermissionError(13, "denied", path)

    monkeypatch.setattr(os, "mkdir", denied)
    with pytest.raises(StoreError, match="beside this one to replace it: denied"):
        begun(array)
    assert values(array) == list(range(8))


def test_a_swap_that_fails_leaves_the_old_one(array, monkeypatch):
    change = begun(array)
    with monkeypatch.context() as patch:
        patch.setattr("zarrdask.storage.local.staged.renameat2", lambda: None)

        def busy(*_):
            raise OSError(16, "busy")

        patch.setattr(os, "replace", busy)
        with pytest.raises(StoreError, match="busy"):
            change.commit()
    assert values(array) == list(range(8))
    change.commit()
    assert values(array) == [1] * 4


def test_what_can_be_replaced_so(tmp_path):
    store = LocalStore(str(tmp_path))
    zarrdask.create_array(store, "a", shape=4, dtype="i4")

    class Other(LocalStore):
        pass

    assert can_stage(NodePath(store, "a"))
    assert can_stage(NodePath(store, ""))
    assert not can_stage(NodePath(store, "b"))
    assert not can_stage(NodePath(LocalStore("/"), ""))
    assert not can_stage(NodePath(Other(str(tmp_path)), "a"))
    assert not can_stage(NodePath(MemoryStore(), ""))
