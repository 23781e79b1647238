"""Copies that are interrupted, and go on when the same copy is made again."""

import signal
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import covering
from tests.storage.local.test_atomic import name_of
from tests.storage.unlisted import UnlistedStore
from tests.tools.cli.commands import fork
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeExistsError, StoreError
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.parallel.rewrite import destination
from zarrdask.parallel.rewrite.copying import copy_tasks
from zarrdask.parallel.rewrite.rewrite_changes import Rewrite
from zarrdask.tools.cli.app import run

VALUES = np.arange(1, 97, dtype="i4").reshape(8, 12)
#: The command, as a process that a signal stops before its sixth task.
STOPPED = """
import os
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.parallel.rewrite.copying import copy_tasks
from zarrdask.parallel.rewrite import destination
journal.WRITE_INTERVAL, copy_tasks.TASK_UNITS = 0, 3
copy, begun = copy_tasks.copy_part, []
def count(part):
    begun.append(part)
    if len(begun) == 6:
        os.kill(os.getpid(), {signal})
    return copy(part)
copy_tasks.copy_part = count
from zarrdask.tools.cli import main
main()
"""


class Stop(KeyboardInterrupt):
    """Ctrl-C, in a test."""


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Tasks of three units, and a record that is stored after each."""
    monkeypatch.setattr(copy_tasks, "TASK_UNITS", 3)
    monkeypatch.setattr(journal, "WRITE_INTERVAL", 0)


@pytest.fixture
def copied(monkeypatch):
    """The arrays and units that are copied from now on; `copied.stop_at` interrupts the copy."""

    class Copied(list):
        stop_at = None

    units, copy = Copied(), copy_tasks.copy_part

    def record(part):
        if len(units) == units.stop_at:
            raise Stop
        units.append((part.source.prefix, part.indices))
        return copy(part)

    monkeypatch.setattr(copy_tasks, "copy_part", record)
    return units


def hierarchy(place, zarr_format=2):
    root = zarrdask.create_group(place, zarr_format=zarr_format, attributes={"k": 1})
    for name in ("a", "g/b", "g/c"):
        root.create_array(name, shape=(8, 12), chunks=(2, 3), dtype="i4")[...] = VALUES
    return root


def interrupted(copied, *arguments, after=6, **options):
    """Interrupt a copy after some tasks; return what it has copied."""
    copied.stop_at = after
    with pytest.raises(Stop):
        zarrdask.copy(*arguments, scheduler="sync", **options)
    done = list(copied)
    copied.clear()
    copied.stop_at = None
    return done


def check(target, names=("a", "g/b", "g/c")):
    """Check the values of a copy, and that nothing else is left."""
    root = zarrdask.open_group(target)
    for name in names:
        np.testing.assert_array_equal(root[name][...], VALUES)
    assert not [key for key in root.store.list_prefix("") if "zarrdask" in key]


@covering(
    strength=1,
    arguments=(
        ["copy", "in/a", "out"],
        ["copy", "in", "out", "--overwrite"],
        ["convert", "in", "out", "--zarr-format", "v3-draft"],
        ["copy", "in", "out", "--shards", "4,6", "--zarr-format", "3"],
    ),
    name=("SIGINT", "SIGKILL"),
)
def test_the_same_command_goes_on_where_a_signal_stopped_it(tmp_path, copied, arguments, name):
    hierarchy(tmp_path / "in")
    number, (verb, source, target, *options) = getattr(signal, name), arguments
    command = verb, f"{tmp_path / source}", f"{tmp_path / target}", *options, "--scheduler", "sync"
    stopped = fork(*command, code=STOPPED.format(signal=int(number)))
    if number == signal.SIGINT:
        assert stopped.code == 130
        assert stopped.err == "zarrdask: interrupted; run the same command again to resume\n"
    else:
        assert stopped.code == -number
    assert run([*command]) == 0
    # Five tasks had been done; each array has 16 chunks or 4 shards, and a task 3 of them.
    arrays, tasks = 1 if source == "in/a" else 3, 2 if "--shards" in options else 6
    assert len(copied) == arrays * tasks - 5
    if arrays == 1:
        np.testing.assert_array_equal(zarrdask.open_array(tmp_path / target)[...], VALUES)
    else:
        check(tmp_path / target)
    assert not [path for path in (tmp_path / target).rglob("*") if "zarrdask" in path.name]


@pytest.mark.parametrize("after", [0, 1, 6, 17])
def test_no_unit_is_copied_twice(copied, after):
    root, target = hierarchy({}), {}
    done = interrupted(copied, root, target, zarr_format=3, after=after)
    number = sum(len(indices) for _, indices in done)
    report = zarrdask.copy(root, target, zarr_format=3, scheduler="sync")
    assert len({repr(task) for task in done + copied}) == len(done + copied) == 18
    assert report.objects == 48 - number
    assert report.notes == (f"an earlier run copied {number} of 48 chunks or shards",) * (after > 0)
    check(target)


def test_a_complete_array_is_seen_and_an_incomplete_one_is_not(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root, target)
    assert [path for path, _ in zarrdask.open_group(target).walk()] == ["a", "g"]


def test_what_was_removed_meanwhile_is_copied_again(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root, target, after=8)
    del zarrdask.open_group(target, mode="r+")["a"]
    for key in [key for key in target if key.startswith("g/b/")]:
        del target[key]
    assert zarrdask.copy(root, target, scheduler="sync").objects == 48
    check(target)


def grow(root):
    root["a"].append(VALUES)


def change_attributes(root):
    root["g/c"].attrs["new"] = 1


def erase_a_chunk(root):
    root.store.erase("g/c/0.0")


@pytest.mark.parametrize(
    ("change", "options", "differs"),
    [
        (grow, {"overwrite": True}, "source, target, stored chunks or shards"),
        (change_attributes, {"restart": True}, "source, target"),
        (erase_a_chunk, {"restart": True}, "stored chunks or shards"),
    ],
)
def test_a_source_that_changed_is_noticed(copied, change, options, differs):
    root, target = hierarchy({}), {}
    interrupted(copied, root, target)
    change(root)
    with pytest.raises(StoreError, match=rf"what differs: {differs}\).*restart=True"):
        zarrdask.copy(root, target)
    zarrdask.copy(root, target, **options)
    assert zarrdask.compare(root, target).ok


def test_another_copy_does_not_go_on(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root["a"], target, after=3)
    with pytest.raises(StoreError, match="another write"):
        zarrdask.copy(root["g/b"], target, scheduler="sync")
    with pytest.raises(StoreError, match="another write"):
        zarrdask.rechunk(root["a"], target, chunks=4).execute(progress=False)
    assert zarrdask.copy(root["a"], target, restart=True, scheduler="sync").objects == 16
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES)


def test_a_copy_of_another_region_does_not_go_on(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root["a"], target, region=(slice(0, 4),), after=0)
    with pytest.raises(StoreError, match="another write"):
        zarrdask.copy(root["a"], target, region=(slice(4, 8),), scheduler="sync")
    zarrdask.copy(root["a"], target, region=(slice(0, 4),), scheduler="sync")
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES[:4])


def test_a_restart_does_not_replace_an_array_to_which_a_run_was_appending(copied):
    root, target = hierarchy({}), {}
    zarrdask.copy(root["a"], target)
    target[".zarrdask-rewrite/plan.json"] = b'{"version": 1, "plan": "an append", "done": []}'
    with pytest.raises(NodeExistsError):
        zarrdask.copy(root["g/b"], target, restart=True)
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES)


def test_a_restart_removes_what_an_interrupted_copy_has_written_and_nothing_else(tmp_path, copied):
    root, target = hierarchy({}), tmp_path / "out"
    zarrdask.create_array(target / "other", shape=3, dtype="u1", zarr_format=2)
    interrupted(copied, root, target, after=8)
    notes = [target / "notes.txt", target / "a" / "notes.txt"]
    for path in notes:
        path.write_text("mine")
    zarrdask.copy(root, target, include="g/c", restart=True, scheduler="sync")
    assert sorted(p for p, _ in zarrdask.open_group(target).walk()) == ["g", "g/c", "other"]
    assert [path for path in (target / "a").rglob("*") if path.is_file()] == notes[1:]
    assert not (target / "g" / "b").exists()
    assert [path.read_text() for path in notes] == ["mine", "mine"]


def test_a_restart_of_an_array_leaves_other_files_alone(tmp_path, copied):
    root, target = hierarchy({}), tmp_path / "out"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    interrupted(copied, root["a"], target, after=3)
    zarrdask.copy(root["a"], target, restart=True, scheduler="sync")
    assert (target / "notes.txt").read_text() == "mine"
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES)


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft"])
def test_a_restart_leaves_files_whose_names_look_like_chunks(copied, zarr_format):
    root, target = hierarchy({}), {}
    interrupted(copied, root, target, after=3, zarr_format=zarr_format)
    names = ["2024/01", "7", "c/9999/0", "a/2024/01/02", "a/c9/9"]
    # What is spelt as a chunk of the array goes, or a later resize would show it.
    names += ["a/c/9999/0"] if zarr_format == 2 else ["a/9.9"]
    if zarr_format == "v3-draft":
        names = [f"data/root/{name}" for name in names]
    theirs = dict.fromkeys(names, b"theirs")
    target.update(theirs)
    zarrdask.copy(root, target, restart=True, scheduler="sync", zarr_format=zarr_format)
    assert {name: target.pop(name, None) for name in theirs} == theirs
    check(target)


def test_a_restart_removes_chunks_of_a_registered_key_encoding(copied, own_registries):
    class Reversed(ChunkKeys):
        def key(self, index):
            return "-".join(map(str, reversed(index)))

        def names(self, indices):
            return [self.key(index) for index in indices]

        def index(self, key, ndim):
            parts = key.split("-")
            is_key = len(parts) == ndim and all(part.isdecimal() for part in parts)
            return tuple(map(int, reversed(parts))) if is_key else None

        def to_json(self):
            return {"name": "reversed"}

    zarrdask.register.chunk_key_encoding("reversed", lambda _: Reversed())
    root, target = hierarchy({}), {}
    changes = {"zarr_format": 3, "chunk_key_encoding": {"name": "reversed"}}
    interrupted(copied, root, target, after=3, **changes)
    assert "a/0-1" in target
    zarrdask.copy(root, target, include="g/c", restart=True, scheduler="sync")
    assert not [key for key in target if key.startswith("a/")]
    check(target, ["g/c"])


def test_an_error_says_how_the_rewrite_goes_on(copied):
    root, target = hierarchy({}), {}
    copied.stop_at = 8
    with pytest.raises(Stop) as caught:
        zarrdask.copy(root, target, scheduler="sync")
    (note,) = caught.value.__notes__
    assert "the same call resumes it" in note


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("verb", ["copy", "rechunk"])
def test_what_is_killed_before_its_record_is_due_can_be_done_again(monkeypatch, verb, restart):
    root, target = hierarchy({}), {}

    def run(**options):
        if verb == "copy":
            zarrdask.copy(root, target, scheduler="sync", **options)
        else:
            plan = zarrdask.rechunk(root, target, chunks=(2, 3), overwrite=False)
            plan.execute("sync", progress=False, **options)

    def killed(*_, **__):
        raise Stop

    monkeypatch.setattr(journal, "WRITE_INTERVAL", 1000)
    with monkeypatch.context() as patch:
        patch.setattr(Rewrite, "abort", lambda self: "")
        patch.setattr(journal.Journal, "done", killed)
        with pytest.raises(Stop):
            run()
    assert ".zgroup" in target
    run(restart=restart)
    check(target)


@pytest.mark.parametrize("options", [{}, {"restart": True}])
def test_temporary_files_of_a_killed_process_are_removed(tmp_path, copied, options):
    root, target = hierarchy({}, 3), tmp_path / "out"
    interrupted(copied, root, target, after=8)
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait(60)
    (target / "a" / "c" / "0" / name_of(killed.pid)).write_text("half")
    zarrdask.copy(root, target, scheduler="sync", **options)
    check(target)
    assert not list(target.rglob("*.partial"))


def test_a_restart_in_a_store_that_cannot_be_listed(copied):
    root, target = hierarchy({}), UnlistedStore()
    interrupted(copied, root, target, after=8)
    assert zarrdask.copy(root, target, restart=True, scheduler="sync").objects == 48
    np.testing.assert_array_equal(zarrdask.open_array(target, "g/b")[...], VALUES)


@pytest.mark.parametrize("options", [{}, {"restart": True}, {"dry_run": True}])
def test_nothing_is_written_if_there_is_an_array_already(options):
    root, target = hierarchy({}), {}
    zarrdask.create_array(target, "g/c", shape=3, dtype="u1", zarr_format=2)
    for key in [key for key in target if not key.startswith("g/c/")]:
        del target[key]
    before = dict(target)
    for _ in range(2):
        with pytest.raises(NodeExistsError, match="g/c"):
            zarrdask.copy(root, target, **options)
    assert target == before


def test_an_array_that_another_program_created_meanwhile_is_left_alone(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root, target)
    zarrdask.create_array(target, "g/c", shape=3, dtype="u1", zarr_format=2)
    with pytest.raises(NodeExistsError, match="g/c"):
        zarrdask.copy(root, target)
    assert zarrdask.open_array(target, "g/c").shape == (3,)


def test_an_array_that_another_program_created_at_the_root_is_left_alone(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root["a"], target, after=3)
    theirs = zarrdask.create_array(target, shape=(8, 12), chunks=(2, 3), dtype="i4", zarr_format=2)
    theirs[...] = 5
    with pytest.raises(NodeExistsError):
        zarrdask.copy(root["a"], target)
    assert (theirs[...] == 5).all()


def test_an_equal_array_that_another_program_created_meanwhile_is_left_alone(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root, target, after=7)
    layout = {"shape": (8, 12), "chunks": (2, 3), "dtype": "i4", "zarr_format": 2}
    theirs = zarrdask.create_array(target, "g/b", **layout)
    theirs[...] = 5
    for options in ({}, {"restart": True}):
        with pytest.raises(NodeExistsError, match="g/b"):
            zarrdask.copy(root, target, **options)
    assert (theirs[...] == 5).all()


@pytest.mark.parametrize("written", [True, False])
def test_a_process_that_is_killed_beside_a_document_goes_on(copied, monkeypatch, written):
    root, target = hierarchy({}), {}
    create = NodePath.create_members

    def killed(*arguments, **options):
        if arguments[1] and written:
            create(*arguments, **options)
        if arguments[1]:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(NodePath, "create_members", killed)
        patch.setattr(Rewrite, "abort", lambda self: "")
        with pytest.raises(Stop):
            zarrdask.copy(root, target, scheduler="sync")
    assert ("a/.zarray" in target) == written
    assert zarrdask.copy(root, target, scheduler="sync").objects == 48 - 16
    assert len(copied) == 18
    check(target)


@pytest.mark.parametrize("verb", ["copy", "rechunk"])
def test_documents_are_written_while_other_arrays_are_copied(monkeypatch, verb):
    root, target, seen = hierarchy({}), {}, []

    def clock():
        seen.append("a/.zarray" in target)
        return len(target) / 8  # each chunk takes a moment

    monkeypatch.setattr(journal, "WRITE_INTERVAL", 1)
    monkeypatch.setattr(journal, "monotonic", clock)
    if verb == "copy":
        zarrdask.copy(root, target, scheduler="sync")
    else:
        zarrdask.rechunk(root, target, chunks=(2, 2)).execute("sync", progress=False)
    assert any(seen)
    check(target)


@pytest.mark.parametrize(
    "create",
    [
        lambda place: zarrdask.create_group(place, zarr_format=2),
        lambda place: zarrdask.create_array(place, shape=3, dtype="u1", zarr_format=2),
        lambda place: zarrdask.to_zarr(da.zeros(3), place, zarr_format=2),
        lambda place: zarrdask.to_zarr(da.zeros(3), place, overwrite=True),
        lambda place: zarrdask.to_zarr(da.zeros(3), place, commit="last"),
    ],
)
def test_a_node_that_is_created_over_a_copy_leaves_nothing_of_it(tmp_path, copied, create):
    root, target = hierarchy({}), tmp_path / "out"
    interrupted(copied, root["a"], target, after=3)
    create(target)
    assert not [path for path in target.rglob("*") if "zarrdask" in path.name]
    with pytest.raises(NodeExistsError):
        zarrdask.copy(root["a"], target)
    zarrdask.copy(root["a"], target, overwrite=True)
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES)


def test_a_record_that_other_software_left_beside_its_array_is_overwritten(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root["a"], target, after=3)
    record = target[".zarrdask-rewrite/plan.json"]
    theirs = zarrdask.create_array(target, shape=96, dtype="i4", chunks=6, zarr_format=2)
    theirs[...] = 5
    target[".zarrdask-rewrite/plan.json"] = record
    with pytest.raises(NodeExistsError):
        zarrdask.copy(root["a"], target)
    assert not copied
    assert (theirs[...] == 5).all()
    zarrdask.copy(root["a"], target, overwrite=True)
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES)


def test_an_array_whose_document_could_not_be_written_goes_on(copied, monkeypatch):
    root, target = hierarchy({}), {}

    def full(*_, **__):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(destination.Destination, "commit", full)
        with pytest.raises(StoreError, match="full"):
            zarrdask.copy(root["a"], target, scheduler="sync")
    copied.clear()
    zarrdask.copy(root["a"], target, scheduler="sync")
    assert not copied
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES)


def test_a_group_that_overwrites_an_interrupted_array_has_none_of_its_chunks(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root["a"], target, after=3)
    zarrdask.copy(root["g"], target, overwrite=True)
    check(target, ("b", "c"))
    assert not zarrdask.verify(target).problems


def test_a_damaged_record_is_overwritten(copied):
    root, target = hierarchy({}), {}
    interrupted(copied, root, target)
    target[".zarrdask-rewrite/plan.json"] = b"{"
    with pytest.raises(StoreError, match=r"damaged.*restart=True"):
        zarrdask.copy(root, target)
    zarrdask.copy(root, target, overwrite=True)
    check(target)


def test_a_sparse_array_of_any_size_is_resumed(tmp_path, copied):
    z = zarrdask.create_array(tmp_path / "a", shape=(10**9, 10**9), chunks=1000, dtype="u1")
    for at in range(10):
        z[at * 10**8, at * 10**8] = at + 1
    interrupted(copied, z, tmp_path / "b", after=2)
    assert zarrdask.copy(z, tmp_path / "b").objects == 4
    found = zarrdask.open_array(tmp_path / "b")
    assert [int(found[at * 10**8, at * 10**8]) for at in range(10)] == list(range(1, 11))
