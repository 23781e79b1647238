"""What tasks of other threads and processes have done is counted."""

import io
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client

import zarrdask
from zarrdask.parallel.execution.counter import Counter, Tasks
from zarrdask.runtime import progress as progress_module
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.wrapper import WrappedStore


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Heard:
    """Where a progress bar is written: keeps how much was done at each time."""

    def __init__(self):
        self.seen = []

    def advance(self, by):
        self.seen.append((self.seen[-1] if self.seen else 0) + by)


@pytest.fixture
def slow(monkeypatch):
    """Bars that are written with each step."""
    monkeypatch.setattr(progress_module, "TERMINAL_INTERVAL", 0)
    monkeypatch.setattr(progress_module, "LOG_INTERVAL", 0)


def test_a_task_counts_what_it_has_done_so_far():
    said = []
    counter = Counter(7, lambda number, nbytes: said.append((number, nbytes)))
    counter(10)
    counter(5)
    assert said == [(7, 10), (7, 15)]


def test_a_task_that_runs_twice_counts_once():
    heard = Heard()
    tasks = Tasks(heard)
    tasks.report(0, 6)
    tasks.report(1, 1)
    tasks.report(0, 2)  # its worker was lost: another one began anew
    tasks.end(0, 8)
    tasks.report(0, 4)  # this report was late
    tasks.end(1, 8)
    assert heard.seen == [6, 7, 3, 9, 16]


def test_processes_that_share_a_number_count_once():
    heard = Heard()
    tasks = Tasks(heard)
    tasks.report_total(5)
    tasks.end(0, 8)
    tasks.report_total(7)  # this look was late
    tasks.report_total(12)
    tasks.end(1, 8)
    assert heard.seen == [5, 8, 8, 12, 16]


class SlowStore(LocalStore):
    """A store whose chunks take so long that a task reports before it ends."""

    def set(self, key, value):
        if "zarr" not in key:
            time.sleep(0.01)
        super().set(key, value)


def one_task(place):
    """Plan to rewrite an array of many small chunks by one task."""
    z = zarrdask.create_array(place / "a", shape=(4, 48), dtype="i4", chunks=(1, 48))
    z[...] = 7
    target = SlowStore(str(place / "b"))
    plan = zarrdask.rechunk(place / "a", target, chunks=(4, 1), scheduler="sync")
    assert plan.tasks == 1
    return plan


def shares(out):
    """Return all shares that a bar has shown, in percent."""
    lines = [line for line in out.getvalue().split("\r") if "%" in line]
    return [int(line.partition("%")[0].rpartition(":")[2]) for line in lines]


@pytest.mark.parametrize("kind", ["sync", "threads", "processes", "cluster"])
def test_a_plan_of_one_task_shows_how_far_that_is(slow, tmp_path, cluster_address, kind):
    out = Terminal()
    if kind == "cluster":
        with Client(cluster_address, set_as_default=False) as client:
            one_task(tmp_path).execute(client, progress=out)
    else:
        one_task(tmp_path).execute(kind, progress=out)
    found = shares(out)
    assert found == sorted(found)
    assert found[-1] == 100
    assert any(0 < share < 100 for share in found)
    assert (zarrdask.open_array(tmp_path / "b")[...] == 7).all()


def test_several_plans_of_one_client_show_each_its_own(slow, tmp_path, cluster_address):
    outs = [Terminal(), Terminal()]
    plans = [one_task(tmp_path / str(number)) for number in range(2)]
    with Client(cluster_address, set_as_default=False) as client, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda plan, out: plan.execute(client, progress=out), plans, outs))
    for out in outs:
        assert shares(out) == sorted(shares(out))
        assert shares(out)[-1] == 100
        assert any(0 < share < 100 for share in shares(out))


def test_bytes_that_are_moved_as_they_are_count_too(slow, tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=450, dtype="i4", chunks=1)
    z[...] = 7
    plan = zarrdask.rechunk(tmp_path / "a", tmp_path / "b", max_mem="1 GiB", scheduler="sync")
    assert plan.scheme.name == "bytes as they are"
    out = Terminal()
    plan.execute("sync", progress=out)
    assert len(set(shares(out))) > 5
    assert shares(out)[-1] == 100


class Remote(WrappedStore):
    """A store that is treated as a remote one."""

    @property
    def capabilities(self):
        return replace(super().capabilities, costs=REMOTE_COSTS)


def test_tasks_of_a_cluster_have_telling_names(tmp_path, cluster_address):
    with Client(cluster_address, set_as_default=False) as client:
        client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_log.clear())
        one_task(tmp_path).execute(client, progress=False)
        zarrdask.copy(tmp_path / "a", tmp_path / "c", scheduler=client)
        zarrdask.to_zarr({"x": np.ones(2), "y": np.ones(2)}, tmp_path / "g")
        # Only remote arrays are copied several in a task.
        zarrdask.copy(Remote(LocalStore(str(tmp_path / "g"))), tmp_path / "h", scheduler=client)
        zarrdask.verify(tmp_path / "a", scheduler=client)
        zarrdask.compare(tmp_path / "a", tmp_path / "c", scheduler=client)
        keys = client.run_on_scheduler(
            lambda dask_scheduler: {str(each[0]) for each in dask_scheduler.transition_log}
        )
    names = {key.rpartition("-")[0].partition("-")[0] for key in keys}
    assert {"rechunk_b", "copy_c", "copy_x_and_others"} <= names
    assert {"verify_chunks", "compare_regions"} <= names
