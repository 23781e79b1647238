"""A process that writes with ``resume=True``, to be killed; it logs the blocks that it computes."""

import multiprocessing
import os
import random
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np

import zarrdask
from zarrdask.errors import NodeNotFoundError
from zarrdask.storage import unchanged

VALUES = np.arange(1, 401, dtype="i4").reshape(20, 20)
CHUNKS = (2, 2)
BLOCKS = 100
#: The threads of the process, so many blocks may be in flight when it is killed.
THREADS = 2
VERBS = ("new", "overwrite", "region", "append", "several")
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.graph.resumed", "s3fs", "obstore"])


def note(block):
    """Log that a block is computed; it takes a moment."""
    with open(os.environ["ZARRDASK_TEST_LOG"], "a") as file:
        file.write("x")
    time.sleep(0.002)
    return block


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


def write(verb, url, options, log, settings):
    """Write: what the process does."""
    os.environ["ZARRDASK_TEST_LOG"] = str(log)
    # The lease of a killed append is taken soon.
    unchanged.RENEWAL, unchanged.EXPIRY = 0.5, 3.0
    x = da.from_array(VALUES, chunks=CHUNKS)
    x = x.map_blocks(note, name="x", dtype="i4", meta=VALUES[:0, :0])
    place = {"storage_options": options, "resume": True}
    with dask.config.set(settings, scheduler="threads", num_workers=THREADS):
        match verb:
            case "region":
                zarrdask.to_zarr(x, url, "a", region=np.s_[4:24], **place)
            case "append":
                zarrdask.append(x, url, "a", **place)
            case "several":
                zarrdask.to_zarr({"a": x[:10], "b": x[10:]}, url, **place)
            case _:
                zarrdask.to_zarr(x, url, "a", overwrite=verb == "overwrite", **place)


def check_values(verb, url, options):
    """Check the values that were written; return the group of the arrays."""
    root = zarrdask.open_group(url, storage_options=options)
    found, old = root["a"][...], np.full((20, 20), -1)
    match verb:
        case "region":
            expected = np.concatenate([old[:4], VALUES, old[:6]])
        case "append":
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


def kill_until_done(folder, verb, url, options, settings, seed):
    """Kill the writer at random moments until one ends, and check how many blocks were computed."""
    settings = {**settings, "zarrdask.fuse-blocks": (0, 8)[seed // 2 % 2]}
    rng, computed, runs = random.Random(seed), 0, 0
    prepare(verb, url, options)
    while True:
        log = Path(folder) / f"log{runs}"
        process = _PROCESSES.Process(target=write, args=(verb, url, options, log, settings))
        process.start()
        while process.is_alive() and not log.exists():
            time.sleep(0.005)
        process.join(rng.uniform(0.02, 0.4) if runs < 4 else 60)
        process.kill()
        process.join()
        computed, runs = computed + (os.path.getsize(log) if log.exists() else 0), runs + 1
        if process.exitcode == 0:
            check(verb, url, options)
            break
        if is_complete(verb, url, options):
            break
        assert runs < 5, "the last run was not killed, but failed"
    # Blocks in flight are computed again, and those of fused tasks that were not finished.
    per_kill = THREADS * max(settings["zarrdask.fuse-blocks"], 1)
    assert BLOCKS <= computed <= BLOCKS + (runs - 1) * per_kill
    return computed, runs
