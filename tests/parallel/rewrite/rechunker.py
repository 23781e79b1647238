"""A process that rechunks, to be killed; and one that tells how much memory that took."""

import os
import time
from dataclasses import replace
from pathlib import Path

import dask
import numpy as np
from distributed import Client

import zarrdask
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.parallel.plan.shuffle import exchanges
from zarrdask.parallel.rewrite.exchange import ExchangeMember
from zarrdask.storage.local.local_store import LocalStore

SHAPE = (40, 48)
VALUES = np.arange(1, 40 * 48 + 1, dtype="i4").reshape(SHAPE)
MIB = 2**20


def source(place):
    """Store what is rechunked."""
    array = zarrdask.create_array(place, shape=SHAPE, dtype="i4", chunks=(2, 48))
    array[...] = VALUES


def plan(place, target, way):
    """Plan to turn rows into columns, one way or another."""
    found = zarrdask.rechunk(place, target, chunks=(40, 2), scheduler="threads")
    costs = found.costs._replace(memory=2400)
    if way == "in the cluster":
        costs = costs._replace(memory=7000, threads=1, processes=2)
        (chosen,) = exchanges(found.grids, costs)
    else:
        (chosen,) = (each for each in schemes(found.grids, costs) if each.name == way)
    return replace(found, costs=costs, schemes=(chosen,))


def rewrite(place, target, way):
    """Rechunk slowly, and remember often what is done."""
    store = LocalStore.set

    def slow(self, key, value):
        time.sleep(0.004)
        store(self, key, value)

    LocalStore.set = slow
    journal._PAUSE = 0.02
    plan(place, target, way).execute("threads", progress=False)


def rewrite_on(address, place, target):
    """Rechunk by the workers of a cluster, who take their time to ask each other."""
    with Client(address, set_as_default=False) as client:
        client.run(hesitate)
        plan(place, target, "in the cluster").execute(client, progress=False)


_WRITE = ExchangeMember.write


def hesitate(seconds=0.5):
    """Let this worker wait before it asks for pieces."""

    def slow(self, *args):
        time.sleep(seconds)
        return _WRITE(self, *args)

    ExchangeMember.write = slow


def megabytes(what):
    """Return a number of this process's memory: VmRSS, or VmHWM since `forget`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def start():
    """Begin to measure by how much this process grows; return its memory in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return megabytes("VmRSS")


def large(place):
    """Store 200 MiB, and a little, of which the whole way is gone once before one measures."""
    for name, shape in (("small", (8, 64, 64)), ("large", (200, 512, 512))):
        array = zarrdask.create_array(
            f"{place}/{name}", shape=shape, dtype="f4", chunks=(1, *shape[1:])
        )
        for at in range(shape[0]):
            array[at] = np.arange(shape[1] * shape[2], dtype="f4").reshape(shape[1:]) + at


def growth(place, target, way, far, queue):
    """Tell by how much this process grows when it rechunks 200 MiB within 48 MiB."""
    with dask.config.set(num_workers=2):
        # What is loaded, and made once, counts for nothing.
        _columns(f"{place}/small", f"{target}/small", far, way, (8, 8, 8), 2**19)
        before = start()
        peak = _columns(f"{place}/large", f"{target}/large", far, way, (200, 32, 32), 48 * MIB)
        queue.put((megabytes("VmHWM") - before, peak / MIB))


def _columns(source, target, far, way, chunks, memory):
    source, target = (from_afar(place) if far else place for place in (source, target))
    found = zarrdask.rechunk(source, target, chunks=chunks, max_mem=memory, scheduler="threads")
    ways = [each for each in found.schemes if each.name == way]
    array = replace(found, schemes=tuple(ways[:1] or found.schemes)).execute(progress=False)
    assert array.chunks == chunks
    return found.peak


def from_afar(place):
    """Return a directory seen through fsspec, as what is far away is."""
    from fsspec.implementations.local import LocalFileSystem

    from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore

    return FsspecStore(LocalFileSystem(auto_mkdir=True), os.fspath(place))
