"""Nodes that are written beside those that they replace."""

import os
import pickle

import numpy as np
import pytest

import zarrdask
from zarrdask.errors import StoreError
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.replace import Stage, can_stage
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import MemoryStore


def begun(array):
    """Return what is to replace an array: one of ones, half as long."""
    metadata = array.metadata.resized((array.shape[0] // 2,))
    stage = Stage(array.node_path)
    stage.begin(metadata.render())
    zarrdask.open_array(stage.inner, mode="r+")[...] = 1
    return stage


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
    stage = begun(array)
    assert values(array) == list(range(8))
    assert len(hidden(array)) == 1
    stage.finish()
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
    stage = begun(array)
    again = pickle.loads(pickle.dumps(stage))
    stage.finish()
    again.finish()
    stage.finish()
    assert values(array) == [1] * 4
    # Who is late writes nowhere.
    again.inner.set("c/0", b"nonsense")
    again.finish()
    assert values(array) == [1] * 4
    assert not hidden(array)


def test_finishing_that_was_cut_short_is_finished(array, monkeypatch):
    stage = begun(array)
    with monkeypatch.context() as patch:
        patch.setattr("zarrdask.storage.staged.remove_directory", None)
        with pytest.raises(TypeError):
            stage.finish()
    assert values(array) == [1] * 4
    assert len(hidden(array)) == 1
    stage.finish()
    assert values(array) == [1] * 4
    assert not hidden(array)


def test_giving_up_leaves_the_old_one(array):
    stage = begun(array)
    stage.give_up()
    stage.give_up()
    assert values(array) == list(range(8))
    assert not hidden(array)
    with pytest.raises(StoreError, match="no longer exists"):
        stage.finish()
    assert values(array) == list(range(8))


def test_an_old_one_that_is_gone_is_no_obstacle(array):
    stage = begun(array)
    array.store.erase_prefix(f"{array.path}/" if array.path else "")
    stage.finish()
    assert values(array) == [1] * 4


def test_of_two_the_later_one_stays(array):
    first, second = begun(array), begun(array)
    zarrdask.open_array(second.inner, mode="r+")[...] = 2
    first.finish()
    second.finish()
    assert values(array) == [2] * 4
    assert not hidden(array)


def test_a_link_stays_a_link(tmp_path):
    zarrdask.create_array(tmp_path / "real", shape=8, dtype="i4", chunks=2)
    (tmp_path / "link").symlink_to("real")
    z = zarrdask.open_array(tmp_path / "link")
    begun(z).finish()
    assert (tmp_path / "link").is_symlink()
    assert zarrdask.open_array(tmp_path / "real")[...].tolist() == [1] * 4


def test_consolidated_metadata_do_not_tell_of_the_old_one(tmp_path):
    root = zarrdask.create_group(tmp_path)
    root.create_array("a", shape=8, dtype="i4", chunks=2)
    z = zarrdask.consolidate_metadata(root)["a"]
    begun(zarrdask.Array(z.store.current, "a", z.metadata)).finish()
    assert zarrdask.open_group(tmp_path)["a"].shape == (4,)


def test_a_place_that_can_not_be_written_is_an_error_that_says_so(array, monkeypatch):
    def denied(path):
        raise PermissionError(13, "denied", path)

    monkeypatch.setattr(os, "mkdir", denied)
    with pytest.raises(StoreError, match="beside this one to replace it: denied"):
        begun(array)
    assert values(array) == list(range(8))


def test_a_swap_that_fails_leaves_the_old_one(array, monkeypatch):
    stage = begun(array)
    with monkeypatch.context() as patch:
        patch.setattr("zarrdask.storage.staged._renameat2", lambda: None)

        def busy(*_):
            raise OSError(16, "busy")

        patch.setattr(os, "replace", busy)
        with pytest.raises(StoreError, match="busy"):
            stage.finish()
    assert values(array) == list(range(8))
    stage.finish()
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
