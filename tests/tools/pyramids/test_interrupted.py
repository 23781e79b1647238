"""Pyramids that are interrupted, and on other schedulers."""

import random
import shutil
import time
from contextlib import suppress

import numpy as np
import pytest

import zarrdask
from tests.parallel.rewrite.cut_short import cut_short
from tests.processes import Program
from tests.tools.pyramids.reference import reference
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.errors import NodeExistsError, StoreError
from zarrdask.tools.pyramids.passes import PyramidPass

VALUES = np.random.default_rng(0).integers(0, 100, (96, 96)).astype("u1")
LEVELS = reference(VALUES, [(2, 2)] * 4, "mean", "trim")


def source(place):
    array = zarrdask.create_array(place / "a", shape=VALUES.shape, dtype="u1", chunks=(8, 8))
    array[...] = VALUES
    return array


def planned(array, target, scheduler="threads", **options):
    arguments = {"levels": 5, "max_mem": "2.01 MiB", "scheduler": scheduler, **options}
    return zarrdask.pyramid(array, target, **arguments)


def check(group):
    for number, level in enumerate(LEVELS):
        np.testing.assert_array_equal(group[str(number)][...], level, str(number))


@pytest.mark.parametrize("inside", [False, True])
def test_a_run_that_is_cut_short_goes_on(tmp_path, monkeypatch, inside):
    monkeypatch.setattr(journal, "WRITE_INTERVAL", 0)
    array = source(tmp_path)
    if inside:
        zarrdask.create_group(tmp_path / "b")
        zarrdask.copy(array, tmp_path / "b", "0")
        array = zarrdask.open_array(tmp_path / "b", "0")
    plan = planned(array, tmp_path / "b")
    assert len(plan.scheme.stages) > 1
    last = 2 if inside else plan.scheme.stages[0].tasks
    cut_short(plan, monkeypatch, last, PyramidPass)
    assert "1" not in zarrdask.open_group(tmp_path / "b")
    again, call = [], PyramidPass.__call__
    monkeypatch.setattr(
        PyramidPass, "__call__", lambda self, n, *count: again.append(n) or call(self, n, *count)
    )
    check(planned(array, tmp_path / "b").execute("sync", progress=False))
    assert last + len(again) == plan.tasks
    names = {path.name for path in (tmp_path / "b").iterdir()}
    assert names == {".zarrdask", "zarr.json", *"01234"}


def test_workers_of_a_cluster_pass_on_what_they_have(tmp_path, client):
    group = planned(source(tmp_path), tmp_path / "b", client).execute(client, progress=False)
    check(group)


RUN = """
import sys, zarrdask
from zarrdask.arrays.hierarchy.changes import journal
journal.WRITE_INTERVAL = 0
a, b = sys.argv[1:]
plan = zarrdask.pyramid(a, b, levels=5, max_mem="2.01 MiB", scheduler="threads")
print("begins", flush=True)
plan.execute("threads", progress=False)
"""


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(2))
def test_what_is_killed_goes_on(tmp_path, seed):
    array, wait, kills = source(tmp_path), random.Random(seed), 0
    for _ in range(3):
        program = Program(RUN, tmp_path / "a", tmp_path / "b")
        program.stdout.readline()
        time.sleep(wait.uniform(0, 0.15))
        program.kill()
        if program.finish().code == 0:
            break
        kills += 1
    if program.exitcode:
        with suppress(NodeExistsError):  # it was killed when it had written everything
            planned(array, tmp_path / "b").execute("threads", progress=False)
    check(zarrdask.open_group(tmp_path / "b"))
    assert not zarrdask.verify(tmp_path / "b").problems
    assert kills


UPDATE = """
import sys, zarrdask
print("begins", flush=True)
zarrdask.update_pyramid(sys.argv[1], max_mem="2.01 MiB").execute("threads", progress=False)
"""


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(2))
def test_an_update_that_is_killed_is_stale_until_it_is_done_again(tmp_path, seed):
    place = tmp_path / "b"
    group = planned(source(tmp_path), place).execute("threads", progress=False)
    group["0"][:50, 40:] = 255
    group["0"].append(VALUES[:20])
    program = Program(UPDATE, place)
    program.stdout.readline()
    time.sleep(random.Random(seed).uniform(0, 0.1))
    program.kill()
    if program.finish().code:
        assert "stale" in {problem.kind for problem in zarrdask.verify(place).failures}
    updated = zarrdask.update_pyramid(place).execute("threads", progress=False)
    levels = reference(updated["0"][...], [(2, 2)] * 4, "mean", "trim")
    for number, level in enumerate(levels):
        np.testing.assert_array_equal(updated[str(number)][...], level, str(number))
    assert not zarrdask.verify(place).problems


@pytest.mark.slow
def test_levels_of_a_group_that_is_removed_meanwhile_are_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "WRITE_INTERVAL", 0)
    array = source(tmp_path)
    zarrdask.create_group(tmp_path / "b")
    zarrdask.copy(array, tmp_path / "b", "0")
    plan = planned(zarrdask.open_array(tmp_path / "b", "0"), tmp_path / "b")
    call = PyramidPass.__call__

    def removed(self, number, *count):
        for path in (tmp_path / "b").iterdir():
            if path.is_file():
                path.unlink()
            elif path.name != "0":
                shutil.rmtree(path)
        return call(self, number, *count)

    monkeypatch.setattr(PyramidPass, "__call__", removed)
    with pytest.raises(StoreError, match="another writer removed or replaced") as caught:
        plan.execute("sync", progress=False)
    assert "was removed while it was written" in caught.value.__notes__[-1]
    assert not list(tmp_path.glob("b/**/plan.json"))
