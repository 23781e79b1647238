"""What is being written beside its place, and what is left of it."""

import os
import subprocess
import sys
import time

import dask.array as da
import pytest

import zarrdask
from zarrdask.storage.local import atomic as module
from zarrdask.storage.local.atomic import beside, is_temporary, tidy
from zarrdask.storage.local.local_store import LocalStore


@pytest.fixture(scope="module")
def dead():
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    return process.pid


def name_of(process):
    """Return the name of something that a process of this machine was writing."""
    own = f"-{os.getpid():x}-"
    assert beside("").count(own) == 1
    return beside("").replace(own, f"-{process:x}-")


def test_names_are_their_own():
    first, second = beside(""), beside("")
    assert first != second
    assert is_temporary(first)
    assert not is_temporary("c0")
    assert is_temporary(".zarrdask-0123456789abcdef.partial"), "of an older version"


def test_what_a_process_that_is_gone_left_is_removed(tmp_path, dead):
    (tmp_path / name_of(dead)).write_text("half")
    tidy(str(tmp_path))
    assert not os.listdir(tmp_path)


def test_what_may_be_in_use_stays(tmp_path, dead):
    machine = module.machine_token()
    kept = {
        name_of(os.getpid()),
        name_of(os.getppid()),
        name_of(dead).replace(machine, "0" * 16),
        ".zarrdask-0123456789abcdef.partial",
        "data",
    }
    for name in kept:
        (tmp_path / name).touch()
    tidy(str(tmp_path))
    assert set(os.listdir(tmp_path)) == kept


@pytest.mark.parametrize("deep", ["", "c", "c/0"])
def test_a_directory_goes_when_nothing_was_added_for_a_while(tmp_path, dead, deep):
    place = tmp_path / name_of(dead)
    (place / "c" / "0").mkdir(parents=True)
    (place / "c" / "0" / "0").touch()
    before = time.time() - 2 * module.ABANDONED_AFTER
    for path in (place, place / "c", place / "c" / "0"):
        os.utime(path, (before, before))
    os.utime(place / deep)
    tidy(str(tmp_path))
    assert place.exists()
    os.utime(place / deep, (before, before))
    tidy(str(tmp_path))
    assert not place.exists()


def test_a_link_is_not_followed(tmp_path, dead):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").touch()
    (tmp_path / name_of(dead)).symlink_to("data")
    tidy(str(tmp_path))
    assert os.listdir(tmp_path) == ["data"]
    assert os.listdir(tmp_path / "data") == ["x"]


@pytest.mark.parametrize("form", [2, 3, "v3-draft"])
def test_a_node_that_is_created_begins_without(tmp_path, dead, form):
    path = tmp_path / ("data/a" if form == "v3-draft" else "a")
    path.mkdir(parents=True)
    (path / name_of(dead)).touch()
    zarrdask.create_array(tmp_path, "a", shape=4, dtype="i4", chunks=2, zarr_format=form)
    assert [name for name in os.listdir(path) if is_temporary(name)] == []


def test_a_node_that_is_replaced_has_none_beside_it(tmp_path, dead):
    zarrdask.to_zarr(da.ones(4), tmp_path, "a")
    left = tmp_path / name_of(dead)
    left.mkdir()
    before = time.time() - 2 * module.ABANDONED_AFTER
    os.utime(left, (before, before))
    zarrdask.to_zarr(da.zeros(4), tmp_path, "a", overwrite=True, commit="last")
    assert [name for name in os.listdir(tmp_path) if is_temporary(name)] == []


def test_a_process_that_is_killed_while_it_writes_leaves_what_the_next_one_removes(tmp_path):
    code = (
        "import os, sys; from zarrdask.storage.local import local_store as local\n"
        "os.replace = lambda *_: os._exit(9)\n"
        "local.LocalStore(sys.argv[1]).set('a/k', b'1')\n"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == 9
    assert len(os.listdir(tmp_path / "a")) == 1
    assert LocalStore(str(tmp_path)).list_dir("a/") == ([], [])
    zarrdask.create_array(tmp_path, "a", shape=4, dtype="i4")
    assert os.listdir(tmp_path / "a") == ["zarr.json"]
