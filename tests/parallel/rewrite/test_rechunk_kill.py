"""Rewrites that are killed again and again, and how much memory one takes."""

import multiprocessing
import os
import random
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrdask
from tests.parallel.graph.test_kill import PATIENCE, Slow, kill_one, stamps, wait_for_files
from tests.parallel.rewrite import rechunker
from zarrdask.parallel.plan.shuffle import exchanges

pytestmark = pytest.mark.stress

#: How often a rewrite is killed; by hand, more: ZARRDASK_KILLS=20.
KILLS = int(os.environ.get("ZARRDASK_KILLS", "2"))
WAYS = ("one pass", "two passes", "three passes")
#: What a process may grow besides what a plan reckons with, in MiB: threads, and what is freed
#: but not given back.
BESIDES = 16


@pytest.fixture(scope="module")
def processes():
    """Where processes come from, that have everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.parallel.rewrite.rechunker", "dask.array", "fsspec"])
    return context


def left(place):
    """Return the names of files that are neither a document nor a chunk, nor a part of one."""
    names = (str(file.relative_to(place)) for file in Path(place).rglob("*") if file.is_file())
    return [
        name
        for name in names
        if name != "zarr.json" and not name.startswith("c/") and not name.endswith(".partial")
    ]


def check(target):
    """Check that all is there, and nothing else."""
    array = zarrdask.open_array(target)
    np.testing.assert_array_equal(array[...], rechunker.VALUES)
    assert array.nchunks_stored() == array.nchunks == 24
    assert left(target) == []


@pytest.mark.parametrize("way", WAYS)
def test_what_is_killed_goes_on_until_it_ends(processes, tmp_path, way):
    rng = random.Random(way)
    source, target = tmp_path / "a", tmp_path / "0"
    rechunker.source(source)
    kills = 0
    while kills < KILLS:
        known = stamps(target)
        process = processes.Process(target=rechunker.rewrite, args=(str(source), str(target), way))
        process.start()
        wait_for_files(target, known, rng.randrange(1, 15), lambda p=process: not p.is_alive())
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.join(PATIENCE)
        if process.exitcode == 0:
            check(target)
            target = tmp_path / str(kills)
            continue
        kills += 1
        # Nobody sees an array that is not complete.
        with suppress(zarrdask.errors.NodeNotFoundError):
            np.testing.assert_array_equal(zarrdask.open_array(target)[...], rechunker.VALUES)
    if not (target / "zarr.json").exists() or left(target):
        rechunker.plan(source, target, way).execute("threads", progress=False)
    check(target)


@pytest.mark.parametrize("way", ["two passes", "in the cluster"])
def test_workers_are_killed(tmp_path, way):
    rng = random.Random(way)
    source, target = tmp_path / "a", tmp_path / "b"
    rechunker.source(source)
    # A task is not to blame for the death of its worker here.
    options = {
        "distributed.scheduler.allowed-failures": 100,
        "distributed.deploy.lost-worker-timeout": "1 hour",
        "distributed.scheduler.no-workers-timeout": f"{PATIENCE} s",
    }
    with (
        dask.config.set(options),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(Slow())
        client.wait_for_workers(2, timeout=PATIENCE)
        done = []
        plan = rechunker.plan(source, target, way)
        thread = threading.Thread(
            target=lambda: done.append(plan.execute(client, progress=False)), daemon=True
        )
        thread.start()
        wait_for_files(target, set(), rng.randrange(3, 12), lambda: not thread.is_alive())
        assert kill_one(client, rng)
        thread.join(PATIENCE)
    (array,) = done
    np.testing.assert_array_equal(array[...], rechunker.VALUES)
    assert left(target) == []


def test_who_lets_workers_hand_each_other_values_is_killed(processes, tmp_path):
    """What they wait for then never comes: they must be free for whoever comes next."""
    source = tmp_path / "a"
    rechunker.source(source)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        for kill in range(2):
            target = tmp_path / str(kill)
            process = processes.Process(
                target=rechunker.rewrite_on,
                args=(cluster.scheduler_address, str(source), str(target)),
            )
            process.start()
            wait_for_files(target, set(), 3 + kill, lambda p=process: not p.is_alive())
            process.kill()
            process.join(PATIENCE)
            with Client(cluster, set_as_default=False) as client:
                client.run(rechunker.hesitate, 0)
                rechunker.plan(source, target, "in the cluster").execute(client, progress=False)
            check(target)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A directory with 200 MiB that are to be rechunked."""
    place = tmp_path_factory.mktemp("large")
    rechunker.large(place)
    return place


@pytest.mark.parametrize(("way", "far"), [*((way, False) for way in WAYS), ("two passes", True)])
def test_a_process_grows_by_no_more_than_the_plan_says(processes, large, tmp_path, way, far):
    queue = processes.SimpleQueue()
    process = processes.Process(
        target=rechunker.growth, args=(str(large), str(tmp_path), way, far, queue)
    )
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0
    growth, peak = queue.get()
    shutil.rmtree(tmp_path)
    assert peak <= 48
    # Not all of the array was in memory.
    assert growth <= 48 + BESIDES


def test_workers_that_hand_each_other_values_grow_by_no_more_than_the_plan_says(tmp_path):
    rechunker.large(tmp_path)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        found = []
        for name, chunks, memory in (("small", (8, 8, 8), 2**20), ("large", (200, 32, 32), 2**27)):
            plan = zarrdask.rechunk(
                tmp_path / name,
                tmp_path / f"{name} columns",
                chunks=chunks,
                max_mem=memory,
                scheduler=client,
            )
            (way, *_) = exchanges(plan.grids, plan.costs)
            # What is loaded, and made once, counts for nothing.
            before = client.run(rechunker.start)
            array = replace(plan, schemes=(way,)).execute(client, progress=False)
            peaks = client.run(rechunker.megabytes, "VmHWM")
            found = [peaks[worker] - before[worker] for worker in before]
        assert array.nchunks_stored() == 256
        assert way.peak <= 2**27
        # Both had half of the array.
        assert min(found) > 100
        assert max(found) <= 128 + BESIDES
