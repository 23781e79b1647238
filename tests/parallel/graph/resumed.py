"""A process that writes with ``resume=True``, to be killed; it logs the blocks that it computes.

It computes in threads or, with `on="cluster"`, in two workers, which are killed, too.
"""

import multiprocessing
import os
import random
import signal
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import xarray as xr
from distributed import Client, LocalCluster, WorkerPlugin

import zarrdask
from zarrdask.errors import NodeNotFoundError
from zarrdask.storage.locks import leases
from zarrdask.xarray import to_zarr

VALUES = np.arange(1, 401, dtype="i4").reshape(20, 20)
CHUNKS = (2, 2)
BLOCKS = 100
#: The threads that compute, in the process or its workers: so many blocks may be in flight.
THREADS = 2
#: The tasks of a worker that are repeated if it is killed: one that runs, and some whose receipts
#: have not arrived.
IN_FLIGHT = 5
#: The runs of a trial, of which the last one is not killed.
RUNS = {"threads": 5, "cluster": 3}
VERBS = ("new", "overwrite", "region", "append", "several", "dataset", "dataset append")
#: The settings of a cluster whose workers are killed.
_CLUSTER = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.scheduler.allowed-failures": 100,
    "distributed.deploy.lost-worker-timeout": "1 hour",
}
_PROCESSES = multiprocessing.get_context("forkserver")


@dataclass
class Noting:
    """Log which process computes a block; it takes a moment."""

    log: str
    seconds: float

    def __call__(self, block):
        with open(self.log, "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.seconds)
        return block

    def __dask_tokenize__(self):
        # Old releases of Dask add a token to each name, and each run has a log of its own.
        return "noting"


class ForgetsKilledWorkers(WorkerPlugin):
    """Lets a worker that has started, however slowly, try for a short time to connect to others."""

    def setup(self, worker):
        dask.config.set({"distributed.comm.timeouts.connect": "3s"})


def computing(log):
    """Return the processes that have computed blocks, one for each block, in their order."""
    with suppress(FileNotFoundError):
        return [int(line) for line in Path(log).read_text().split("\n")[:-1]]
    return []


def dataset(x, start):
    """Return a dataset of an array, with a coordinate in memory."""
    return xr.Dataset({"a": (("t", "x"), x)}, {"t": np.arange(start, start + len(x))})


def prepare(verb, url, options):
    """Store what is there before the write."""
    if verb in ("region", "append"):
        shape = (30, 20) if verb == "region" else (20, 20)
        z = zarrdask.create_array(
            url, "a", shape=shape, chunks=CHUNKS, dtype="i4", storage_options=options
        )
        z[...] = -1
    elif verb == "overwrite":
        zarrdask.to_zarr(da.zeros(7), url, "a", storage_options=options)
    elif verb == "dataset append":
        old = da.full((20, 20), -1, dtype="i4", chunks=CHUNKS)
        to_zarr(dataset(old, 0), url, storage_options=options)


def write(verb, url, options, log, settings, on="threads"):
    """Write: what the process does."""
    with ExitStack() as stack:
        if on == "cluster":
            stack.enter_context(dask.config.set(_CLUSTER))
            cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
            client = stack.enter_context(Client(stack.enter_context(cluster)))
            client.register_plugin(ForgetsKilledWorkers())
            noting = Noting(log, 0.01)
        else:
            stack.enter_context(dask.config.set(scheduler=on, num_workers=THREADS))
            noting = Noting(log, 0.002)
        _write(verb, url, options, noting, settings)


def _write(verb, url, options, noting, settings):
    # The lease of a killed append is taken soon.
    leases.Lease.RENEWAL, leases.Lease.EXPIRY = 0.5, 3.0
    x = da.from_array(VALUES, chunks=CHUNKS)
    x = x.map_blocks(noting, name="x", dtype="i4", meta=VALUES[:0, :0])
    place = {"storage_options": options, "resume": True}
    with dask.config.set(settings):
        match verb:
            case "region":
                zarrdask.to_zarr(x, url, "a", region=np.s_[4:24], **place)
            case "append":
                zarrdask.append(x, url, "a", **place)
            case "several":
                zarrdask.to_zarr({"a": x[:10], "b": x[10:]}, url, **place)
            case "dataset":
                to_zarr(dataset(x, 0), url, mode="w-", **place)
            case "dataset append":
                to_zarr(dataset(x, 20), url, append_dim="t", **place)
            case _:
                zarrdask.to_zarr(x, url, "a", overwrite=verb == "overwrite", **place)


def check_values(verb, url, options):
    """Check the values that were written; return the group of the arrays."""
    root = zarrdask.open_group(url, storage_options=options)
    found, old = root["a"][...], np.full((20, 20), -1)
    match verb:
        case "region":
            expected = np.concatenate([old[:4], VALUES, old[:6]])
        case "append" | "dataset append":
            expected = np.concatenate([old, VALUES])
        case "several":
            expected, found = VALUES, np.concatenate([found, root["b"][...]])
        case _:
            expected = VALUES
    np.testing.assert_array_equal(found, expected)
    return root


def check(verb, url, options):
    """Check what was written, and that nothing else is left."""
    root = check_values(verb, url, options)
    # A temporary file of the group above the arrays stays until the group is changed.
    above = ".zarrdask-"
    problems = [each for each in zarrdask.verify(root).problems if not each.key.startswith(above)]
    assert not problems, problems
    store = root.node_path.store
    assert not [key for key in store.list_prefix("") if "zarrdask" in key and "lease" not in key]


def is_complete(verb, url, options):
    """Whether the write had ended before the process was killed: the call would begin another."""
    try:
        root = check_values(verb, url, options)
    except (AssertionError, NodeNotFoundError):
        return False
    return not any(key.endswith("plan.json") for key in root.node_path.store.list_prefix(""))


def _kill_sometime(process, log, rng):
    """Kill the process at a random moment after its first block."""
    while process.is_alive() and not log.exists():
        time.sleep(0.005)
    process.join(rng.uniform(0.02, 0.4))


def _kill_workers(process, log, rng):
    """Kill workers that compute, after a random number of blocks, and then the client.

    Return the number of workers that were killed.
    """
    number, killed = 0, set()
    for _ in range(rng.randrange(1, 3)):
        number += rng.randrange(1, 20)
        while process.is_alive() and len(computing(log)) < number:
            time.sleep(0.002)
        if process.is_alive():
            killed.add(worker := computing(log)[-1])
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    process.join(rng.uniform(0.0, 0.5))
    return len(killed)


def kill_until_done(folder, verb, url, options, settings, seed, on="threads"):
    """Kill the writer at random moments until one ends, and check how many blocks were computed.

    Return how many were, the number of runs, and that of the workers that were killed.
    """
    settings = {**settings, "zarrdask.fuse-blocks": (0, 8)[seed // 2 % 2]}
    rng, logs, workers = random.Random(seed), [], 0
    runs = RUNS[on]
    prepare(verb, url, options)
    while True:
        logs.append(log := Path(folder) / f"log{len(logs)}")
        process = _PROCESSES.Process(target=write, args=(verb, url, options, log, settings, on))
        process.start()
        if len(logs) == runs:
            process.join(200)
        elif on == "cluster":
            workers += _kill_workers(process, log, rng)
        else:
            _kill_sometime(process, log, rng)
        process.kill()
        process.join()
        if process.exitcode == 0:
            check(verb, url, options)
            break
        if is_complete(verb, url, options):
            break
        assert len(logs) < runs, "the last run was not killed, but failed"
    computed = sum(len(computing(log)) for log in logs)
    # Blocks in flight are computed again, and those of fused tasks that were not finished. The
    # receipts of a worker may not have arrived when it was killed.
    fused = max(settings["zarrdask.fuse-blocks"], 1)
    repeated = ((len(logs) - 1) * THREADS + workers * IN_FLIGHT) * fused
    assert BLOCKS <= computed <= BLOCKS + repeated, (computed, len(logs), workers)
    return computed, len(logs), workers
