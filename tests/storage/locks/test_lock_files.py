"""The directory of lock files belongs to the user, or it is not used."""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

import zarrdask
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.locks.lock_files import UnsafeDirectoryError, lock_directory, open_lock_file

#: A user without rights.
NOBODY = 65534


@pytest.fixture
def shared(monkeypatch, setting, tmp_path):
    """A directory for temporary files, in which all users may make theirs."""
    # With `tmp_path`, the directory of the tests exists before.
    place = Path(tempfile.mkdtemp(prefix="shared-"))
    place.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    setting({"zarrdask.lock-directory": None})
    yield place
    shutil.rmtree(place)


@pytest.fixture
def victim(tmp_path):
    """A file that one write of its owner must not damage."""
    place = tmp_path / "thesis.txt"
    place.write_bytes(b"years of work" * 5000)
    return place


@pytest.fixture
def as_another(monkeypatch):
    """Run a shell's commands as another user, or be another one after having run them."""

    def run(script, *arguments):
        root = os.geteuid() == 0
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}
        subprocess.run(["sh", "-ec", script, "sh", *map(str, arguments)], check=True, **user)
        if not root:
            victim = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: victim)

    return run


def change_a_part(place):
    zarrdask.open_array(place, mode="r+")[1:3] = 7


@pytest.fixture
def array(tmp_path):
    """An array with one chunk."""
    z = zarrdask.create_array(tmp_path / "a", shape=8, dtype="i4", chunks=8)
    z[...] = 1
    return tmp_path / "a"


ATTACKS = {
    "files that are links": 'umask 0; mkdir "$1"; ln -s "$2" "$1/traces"',
    "a directory without rights": 'mkdir -m 0700 "$1"',
    "a directory for all": 'mkdir "$1"; chmod 0777 "$1"',
    "a file": 'touch "$1"',
    "a link to a directory": 'mkdir "$1.real"; ln -s "$1.real" "$1"',
}


@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
def test_the_directory_of_another_user_is_refused(shared, as_another, victim, array, script):
    uid = os.geteuid() if os.geteuid() == 0 else os.geteuid() + 1
    place, before = shared / f"zarrdask-{uid}", victim.read_bytes()
    shutil.rmtree(place, ignore_errors=True)
    as_another(script, place, victim)
    assert lock_directory() == str(place)
    with pytest.raises(zarrdask.errors.StoreError, match=r"set zarrdask\.lock-directory") as caught:
        change_a_part(array)
    assert str(place) in str(caught.value)
    # Whole chunks need no lock, whatever there is in that directory.
    zarrdask.open_array(array, mode="r+")[...] = 2
    assert zarrdask.open_array(array)[...].tolist() == [2] * 8
    assert victim.read_bytes() == before


def test_a_lock_that_another_user_pretends_to_hold_delays_nobody(shared, as_another, array):
    uid = os.geteuid() if os.geteuid() == 0 else os.geteuid() + 1
    locks = ChunkLocks(LocalStore("/"))
    lock = Path(locks.version("unit").lock).name
    shutil.rmtree(shared / f"zarrdask-{os.geteuid()}")
    as_another('mkdir "$1"; touch "$1/$2"', shared / f"zarrdask-{uid}", lock)
    unit_locks = ChunkLocks(LocalStore("/"))
    assert not unit_locks.is_outdated(unit_locks.version("unit"))


def test_what_is_made_is_the_users_alone(shared, array):
    before = os.umask(0)
    try:
        change_a_part(array)
    finally:
        os.umask(before)
    place = shared / f"zarrdask-{os.geteuid()}"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()} == {0o600}


def test_all_processes_of_a_user_lock_in_the_same_directory(shared, monkeypatch):
    places = {lock_directory()}
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shared))
    places.add(lock_directory())
    assert places == {str(shared / f"zarrdask-{os.geteuid()}")}


def test_a_directory_that_others_may_write_to_is_refused(tmp_path, setting, array):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks").chmod(0o770)
    setting({"zarrdask.lock-directory": str(tmp_path / "locks")})
    with pytest.raises(zarrdask.errors.StoreError, match="770"):
        change_a_part(array)
    (tmp_path / "locks").chmod(0o755)
    change_a_part(array)
    assert zarrdask.open_array(array)[1] == 7


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_directory_that_is_a_link_is_refused(tmp_path, setting, array, slash):
    (tmp_path / "locks").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("locks")
    setting({"zarrdask.lock-directory": f"{tmp_path}/link{slash}"})
    with pytest.raises(zarrdask.errors.StoreError, match="is a symbolic link"):
        change_a_part(array)
    assert list((tmp_path / "locks").iterdir()) == []


@pytest.mark.parametrize("kind", ["symbolic", "hard", "fifo", "directory"])
def test_only_files_of_the_directory_itself_are_opened(tmp_path, victim, kind):
    place = tmp_path / "locks" / "traces"
    place.parent.mkdir(mode=0o700)
    if kind == "symbolic":
        place.symlink_to(victim)
    elif kind == "hard":
        place.hardlink_to(victim)
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    expected = IsADirectoryError if kind == "directory" else UnsafeDirectoryError
    with pytest.raises(expected):
        open_lock_file(str(place.parent), place.name)


def test_a_directory_that_was_refused_is_used_when_it_is_right(tmp_path, setting, array):
    place = tmp_path / "deep" / "locks"
    place.parent.mkdir()
    place.touch()
    setting({"zarrdask.lock-directory": str(place)})
    with pytest.raises(zarrdask.errors.StoreError):
        change_a_part(array)
    place.unlink()
    change_a_part(array)
    assert (place / "traces").exists()
