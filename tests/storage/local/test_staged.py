"""Directories that take the place of others, and those that are made once."""

import errno
import os
import pickle
import re
import shutil

import pytest

from zarrdask.errors import StoreError
from zarrdask.storage.local import staged
from zarrdask.storage.local.atomic import beside
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.local.staged import StagedStore, remove_directory, replace_directory

HIDDEN = re.compile(r"\.zarrdask-[0-9a-f]{16}-[0-9a-f]+-[0-9a-f]{12}-[0-9a-f]+\.partial")


@pytest.fixture(params=["at once", "unknown", "refused"])
def exchange(request, monkeypatch):
    """Whether the system can exchange two directories."""
    if request.param != "at once":
        call = None if request.param == "unknown" else lambda *_: -1
        monkeypatch.setattr(staged, "renameat2", lambda: call)


@pytest.fixture
def pair(tmp_path):
    for name in ("new", "old"):
        (tmp_path / name / "c").mkdir(parents=True)
        (tmp_path / name / "c" / name).write_text(name)
    return str(tmp_path / "new"), str(tmp_path / "old")


def tree(path):
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


def test_one_takes_the_place_of_the_other(exchange, pair, tmp_path):
    replace_directory(*pair)
    assert tree(tmp_path) == ["old", "old/c", "old/c/new"]


def test_nothing_is_left_if_removing_the_other_is_interrupted(
    exchange, pair, tmp_path, monkeypatch
):
    remove = shutil.rmtree

    def interrupted(path, **options):
        monkeypatch.setattr(shutil, "rmtree", remove)
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_directory(*pair)
    assert tree(tmp_path) == ["old", "old/c", "old/c/new"]


def test_there_need_be_no_other(exchange, pair, tmp_path):
    replace_directory(pair[0], str(tmp_path / "third"))
    assert tree(tmp_path) == ["old", "old/c", "old/c/old", "third", "third/c", "third/c/new"]


def test_linux_can_exchange_two_at_once(pair, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "replace", None)
    assert staged.exchanged(*pair)
    assert tree(tmp_path) == ["new", "new/c", "new/c/old", "old", "old/c", "old/c/new"]
    assert not staged.exchanged(pair[0], str(tmp_path / "nothing"))


def test_one_that_is_not_there_takes_no_place(exchange, pair, tmp_path):
    with pytest.raises(FileNotFoundError):
        replace_directory(str(tmp_path / "nothing"), pair[1])
    before = tree(tmp_path)
    assert "new/c/new" in before
    assert "old/c/old" in before
    remove_directory(str(tmp_path / "nothing"))
    assert tree(tmp_path) == before


def test_names_beside_are_not_listed(tmp_path):
    store = LocalStore(str(tmp_path))
    name = beside(str(tmp_path / "a"))
    assert os.path.dirname(name) == str(tmp_path)
    assert HIDDEN.fullmatch(os.path.basename(name))
    assert beside(str(tmp_path / "a")) != name
    LocalStore(name).set("zarr.json", b"{}")
    assert store.list_dir("") == ([], [])
    assert list(store.list()) == []


def test_a_directory_is_removed_though_others_write_to_it(tmp_path, monkeypatch):
    path = tmp_path / "a"
    (path / "c").mkdir(parents=True)
    store = StagedStore(str(path))
    remove = staged.shutil.rmtree

    def rmtree(gone):
        store.set("c/0", b"late")
        remove(gone)

    monkeypatch.setattr(staged.shutil, "rmtree", rmtree)
    remove_directory(str(path))
    assert tree(tmp_path) == []


def test_a_store_that_is_gone_is_not_made_again(tmp_path):
    root = tmp_path / "a"
    store = pickle.loads(pickle.dumps(StagedStore(str(root))))
    store.set("c/0/0", b"0")
    store.set("zarr.json", b"0")
    assert tree(tmp_path) == []
    root.mkdir()
    store.set("c/0/0", b"0")
    store.set("c/0/1", b"1")
    store.set("zarr.json", b"2")
    assert tree(root) == ["c", "c/0", "c/0/0", "c/0/1", "zarr.json"]
    assert store.get("c/0/1") == b"1"


def test_other_errors_are_errors(tmp_path, monkeypatch):
    store = StagedStore(str(tmp_path))

    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="c/0: full"):
        store.set("c/0", b"0")
