"""Files that only this user can read."""

import os
import stat
from pathlib import Path

import pytest

from zarrdask.storage.local import atomic
from zarrdask.storage.local.private import PrivateStore
from zarrdask.storage.zip.store import ZipStore
from zarrdask.testing import StoreContract


@pytest.fixture(autouse=True)
def no_umask():
    """Let other users read all files whose mode does not forbid it."""
    before = os.umask(0)
    yield
    os.umask(before)


class TestPrivateStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return PrivateStore(str(tmp_path / "p"))


def modes(folder):
    return {stat.S_IMODE(path.lstat().st_mode) for path in Path(folder).rglob("*")}


def test_files_and_directories_are_those_of_the_user_alone(tmp_path):
    store = PrivateStore(str(tmp_path / "p" / "q"))
    store.set("a/b/c", b"1")
    store.create("a/d", b"2")
    assert modes(tmp_path) == {0o700, 0o600}


@pytest.mark.parametrize("make", [PrivateStore.in_folder, None])
def test_a_temporary_directory_has_a_new_name_and_leaves_nothing(tmp_path, make):
    def create():
        if make is None:
            return ZipStore(tmp_path / "a.zip").temporary("x/packed/")
        return make(str(tmp_path))

    (store, prefix), (_, other) = create(), create()
    assert prefix != other
    assert os.listdir(tmp_path) == []
    store.set(f"{prefix}0/1", b"1")
    assert modes(tmp_path) == {0o700, 0o600}
    assert list(store.list_prefix(prefix)) == [f"{prefix}0/1"]
    store.erase_prefix(prefix)
    assert os.listdir(tmp_path) == []


def test_what_killed_processes_left_is_removed(tmp_path, monkeypatch):
    store, prefix = PrivateStore.in_folder(str(tmp_path))
    store.set(f"{prefix}0", b"1")
    PrivateStore.in_folder(str(tmp_path))
    assert store.get(f"{prefix}0") == b"1"
    monkeypatch.setattr(atomic, "ABANDONED_AFTER", -1)
    monkeypatch.setattr(atomic, "is_alive", lambda process: False)
    PrivateStore.in_folder(str(tmp_path))
    assert os.listdir(tmp_path) == []
