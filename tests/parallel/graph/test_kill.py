"""Processes that are killed in the middle of a write, and disks that are full."""

import errno
import fcntl
import itertools
import os
import random
import signal
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, Status, WorkerPlugin

import zarrdask
from tests.parallel.graph.writer import LAYOUTS, NEW, OLD, job, write_slowly
from tests.processes import running
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.storage.local.local_store import LocalStore

pytestmark = pytest.mark.stress

#: Seconds after which a test is no longer waited for.
PATIENCE = 60


class Slow(WorkerPlugin):
    """Workers that are slow to write, also those that come later."""

    def setup(self, worker):
        write_slowly()


def stored(place, number):
    """Return an array of the old values."""
    options = {"shape": OLD.shape, "dtype": OLD.dtype, **LAYOUTS[number]}
    array = zarrdask.create_array(place, "a", **options)
    array[...] = OLD
    return array


def files(place):
    """Return the paths of all files, also of those that no listing shows."""
    found = (file.relative_to(place) for file in Path(place).rglob("*") if file.is_file())
    return sorted(map(str, found))


def stamps(place):
    """Return what tells files from those that were there before under the same names."""
    found = (entry.stat() for entry in Path(place).rglob("*") if entry.is_file())
    return {(status.st_ino, status.st_mtime_ns) for status in found}


def wait_for_files(place, known, count, done=lambda: False):
    """Wait until so many files were begun that are not known, or the job is done."""
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        with suppress(FileNotFoundError):  # one was renamed meanwhile
            if len(stamps(place) - known) >= count:
                return
        time.sleep(0.001)


def partial(place):
    """Return the paths of files that were not finished."""
    return [file for file in files(place) if file.endswith(".partial")]


def check_listing(place, array):
    """Check that nothing but documents and units is seen."""
    units = {chunks_of(array).key(index) for index in np.ndindex(3, 4)}
    documents = {"a/zarr.json", "a/.zarray", "a/.zattrs"}
    assert set(LocalStore(str(place)).list_prefix("a/")) <= units | documents
    assert list(zarrdask.open_group(place)) == ["a"]
    assert array.nchunks_stored() <= array.nchunks


def check_units(array, *states):
    """Check that each unit is one of those that it may be, as a whole."""
    for unit in np.ndindex(3, 4):
        part = tuple(slice(i * n, i * n + n) for i, n in zip(unit, (20, 12), strict=True))
        found = array[part]
        assert any(np.array_equal(found, state[part]) for state in states), part


# ---- workers


@pytest.fixture(scope="module")
def client():
    options = {
        # A task is not to blame for the death of its worker here,
        "distributed.scheduler.allowed-failures": 100,
        # and a worker that dies twice within this time would not come back.
        "distributed.deploy.lost-worker-timeout": "1 hour",
        # If all are gone for good, nothing is to wait for them.
        "distributed.scheduler.no-workers-timeout": f"{PATIENCE} s",
        # Who asks a worker that was killed for a block soon asks the scheduler again.
        "distributed.comm.timeouts.connect": "3s",
    }
    with (
        dask.config.set(options),
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(Slow())
        yield client


def kill_one(client, rng):
    """Kill one of the workers, whose nanny starts another; return whether there is one."""
    known = client.scheduler_info(n_workers=-1)["workers"]
    # A nanny gives up if its worker dies while it starts.
    nannies = client.cluster.workers.values()
    ready = [n.pid for n in nannies if n.status == Status.running and n.worker_address in known]
    pids = [pid for pid in ready if pid]
    if pids:
        with suppress(ProcessLookupError):
            os.kill(rng.choice(pids), signal.SIGKILL)
    return bool(pids)


# The marker names the worker of the first task: until another worker goes on, readers are warned.
@pytest.mark.filterwarnings("ignore:.*an unfinished write is here")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["new", "region"])
def test_workers_are_killed(client, tmp_path, seed, kind):
    rng = random.Random(seed)
    options = LAYOUTS[seed]
    x = da.from_array(NEW, chunks=(7, 13))
    expected, states = NEW, (np.zeros_like(OLD), NEW)
    if kind == "new":
        task = zarrdask.to_zarr(x, tmp_path, "a", compute=False, **options)
    else:
        stored(tmp_path, seed)
        region = np.s_[5:55, 5:40]
        expected = OLD.copy()
        expected[region] = NEW[region]
        states = (OLD, expected)
        task = zarrdask.to_zarr(x[region], tmp_path, "a", region=region, compute=False)
    array = zarrdask.open_array(tmp_path, "a")
    client.wait_for_workers(2, timeout=PATIENCE)
    future = client.compute(task)
    kills, known = 0, stamps(tmp_path)
    for _ in range(2):
        wait_for_files(tmp_path, known, rng.randrange(12), future.done)
        time.sleep(rng.uniform(0, 0.02))
        kills += kill_one(client, rng)
        # Whoever reads meanwhile sees whole units.
        check_units(array, *states)
    future.result(timeout=PATIENCE)
    np.testing.assert_array_equal(array[...], expected)
    check_listing(tmp_path, array)
    # A thread may leave one; it goes with the array.
    assert len(partial(tmp_path)) <= 2 * kills
    zarrdask.to_zarr(x, tmp_path, "a", overwrite=True, **options)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path, "a")[...], NEW)
    assert not partial(tmp_path)


def test_a_fused_task_is_run_again(client, tmp_path):
    values = np.arange(1, 6401).reshape(80, 80)
    x = da.from_array(values, chunks=(5, 5)) + 1
    task = zarrdask.to_zarr(x, tmp_path, "a", compute=False, compressors=())
    client.wait_for_workers(2, timeout=PATIENCE)
    known = stamps(tmp_path)
    future = client.compute(task)
    wait_for_files(tmp_path, known, 20, future.done)
    kill_one(client, random.Random(1))
    future.result(timeout=PATIENCE)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path, "a")[...], values + 1)


# ---- the client


def writer(*arguments):
    """Return a context with a process that writes when it is told to."""
    code = "import sys; from tests.parallel.graph import writer; writer.main(*sys.argv[1:])"
    return running(code, *arguments)


def check_killed(place, kind):
    """Check what a killed write left: units of both arrays in a region, one array otherwise."""
    array = zarrdask.open_array(place, "a")
    if kind == "region":
        check_units(array, OLD, NEW)
    elif not np.array_equal(array[...], OLD):
        np.testing.assert_array_equal(array[...], NEW)
    check_listing(place, array)


@pytest.mark.parametrize(
    ("kind", "cluster", "count"),
    [
        ("replaced", "threads", 2),
        ("region", "threads", 3),
        ("self", "threads", 1),
        ("last", "threads", 1),
        ("region", "cluster", 1),
    ],
)
def test_the_process_that_computes_is_killed(tmp_path, kind, cluster, count):
    rng = random.Random(kind)
    places = [tmp_path / str(number) for number in range(count)]
    with ExitStack() as stack:
        writers = []
        for number, place in enumerate(places):
            stored(place, number)
            writers.append(writer(place, kind, number, cluster))
        processes = [stack.enter_context(each) for each in writers]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process, place in zip(processes, places, strict=True):
            known = stamps(place)
            process.tell()
            wait_for_files(
                place, known, rng.randrange(1, 13), lambda each=process: not each.is_alive()
            )
            time.sleep(rng.uniform(0, 0.02))
            process.kill()
    for number, place in enumerate(places):
        check_killed(place, kind)
        if kind == "self" and np.array_equal(zarrdask.open_array(place, "a")[...], NEW):
            continue  # it was complete
        x, options = job(place, kind, number)
        zarrdask.to_zarr(x, place, "a", **options)
        array = zarrdask.open_array(place, "a")
        np.testing.assert_array_equal(array[...], NEW)
        check_listing(place, array)


# ---- full disks


def runs_out(call, after):
    """Return a system call that works some times for files that are written, then no more."""
    works, counter, here = getattr(os, call), itertools.count(), threading.get_ident()

    def concerns(first, second=0, *_):
        if threading.get_ident() != here:
            return False
        if call == "open":
            return second & os.O_CREAT and str(first).endswith(".partial")
        return fcntl.fcntl(first, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY

    def limited(*arguments, **options):
        at = next(counter) if concerns(*arguments) else -1
        if at < after:
            return works(*arguments, **options)
        if call == "write" and at == after:
            fd, data = arguments
            return works(fd, memoryview(data)[: len(data) // 2])
        if call == "close":  # where quotas are checked late
            works(*arguments)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return limited


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
@pytest.mark.parametrize(("call", "after"), [("write", 0), ("write", 5), ("close", 5), ("open", 5)])
def test_a_disk_that_is_full_keeps_the_old_values(tmp_path, monkeypatch, number, call, after):
    array = stored(tmp_path, number)
    x, options = job(tmp_path, "part", number)
    task = zarrdask.to_zarr(x, tmp_path, "a", compute=False, **options)
    changed = OLD.copy()
    changed[options["region"]] = NEW[options["region"]]
    before = files(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, runs_out(call, after))
        with pytest.raises(zarrdask.errors.StoreError, match=r"/a/.*: No space left") as caught:
            task.compute(scheduler="sync")
    assert caught.value.key.startswith(f"{tmp_path}/a/")
    assert files(tmp_path) == before
    check_units(array, OLD, changed)
    assert not np.array_equal(array[...], changed)
    task.compute(scheduler="threads")
    np.testing.assert_array_equal(array[...], changed)
    assert files(tmp_path) == before


def test_a_file_that_may_not_get_that_large_keeps_its_old_values(tmp_path):
    stored(tmp_path, 1)
    with writer(tmp_path, "part", 1, "limit") as process:
        process.tell()
        said = process.finish().out
    assert said.startswith(f"ready\n{tmp_path}/a/")
    assert "File too large" in said
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path, "a")[...], OLD)
    assert not partial(tmp_path)
