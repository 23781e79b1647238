"""The removal of nodes; tests/crashes/test_removal.py interrupts it."""

import os

import pytest

import zarrdask


@pytest.fixture
def root(tmp_path):
    """Return a group with a group that is a symbolic link, and one that has such a member."""
    root = zarrdask.create_group(tmp_path / "root")
    for target in ("other", "third"):
        elsewhere = zarrdask.create_group(tmp_path / target)
        elsewhere.create_array("b/a", shape=3, dtype="i4", chunks=2)[...] = 1
    root.create_group("g").create_array("a", shape=3, dtype="i4", chunks=2)[...] = 1
    os.symlink(tmp_path / "other", tmp_path / "root/link")
    os.symlink(tmp_path / "third", tmp_path / "root/g/link")
    return root


def test_of_a_group_that_is_a_symbolic_link_the_link_is_removed(root, tmp_path):
    del root["link"]
    assert not os.path.lexists(tmp_path / "root/link")
    assert zarrdask.open_array(tmp_path / "other/b/a")[...].tolist() == [1, 1, 1]


def test_of_a_member_that_is_a_symbolic_link_the_link_is_removed(root, tmp_path):
    del root["g"]
    assert not os.path.lexists(tmp_path / "root/g")
    assert zarrdask.open_array(tmp_path / "third/b/a")[...].tolist() == [1, 1, 1]


def test_a_group_whose_document_is_damaged_is_replaced(root, tmp_path):
    (tmp_path / "root/g/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"')
    assert not list(root.create_group("g", overwrite=True))
    assert os.listdir(tmp_path / "root/g") == ["zarr.json"]


def test_what_is_left_of_an_array_is_reported_and_removed_as_a_group(root, tmp_path):
    root.create_array("a", shape=3, dtype="i4", chunks=2)[...] = 1
    os.unlink(tmp_path / "root/a/zarr.json")  # a process that deleted the array died here
    assert "a" not in root
    extra = [problem.key for problem in zarrdask.verify(root).problems if problem.kind == "extra"]
    assert extra == ["a/c/0", "a/c/1"]
    root.create_group("a")
    del root["a"]
    assert not (tmp_path / "root/a").exists()
