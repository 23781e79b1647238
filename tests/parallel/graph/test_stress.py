"""Any blocks to any stored units, at random: what is stored is the array, each unit once.

The cases are those of fixed seeds; ``ZARRDASK_SEED=1000`` in the environment gives others.
"""

import os

import dask
import dask.array as da
import pytest
from distributed import Client, LocalCluster

import zarrdask
from tests.parallel.graph.cases import case, explained, same, tiles
from tests.parallel.graph.writes import LoggedStore, SlowStore, WritesStore
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.storage.local.local_store import LocalStore

pytestmark = pytest.mark.stress

FIRST = int(os.environ.get("ZARRDASK_SEED", "0"))
THREADS = range(FIRST, FIRST + 320, 40)
CLUSTER = range(FIRST + 500, FIRST + 560, 10)
TILES = range(FIRST + 700, FIRST + 780, 20)


def keys(each, store, wanted):
    """Return the keys of those units of a case's array that are wanted."""
    stored = chunks_of(zarrdask.open_array(store))
    return {stored.key(index) for index, part in each.units() if wanted(part)}


def check(each, store, before):
    """Check what a write left: the values, who wrote them, and what it did not touch."""
    same(zarrdask.open_array(store)[...], each.expected)
    written = {key: n for key, n in store.writes.items() if "zarr" not in key}
    assert set(written.values()) <= {1}, "a unit has several writers"
    assert written.keys() <= keys(each, store, each.meets), "a unit elsewhere was written"
    there = {key for key in store.list() if "zarr" not in key and not key.endswith(".zattrs")}
    assert there == keys(each, store, lambda part: not each.is_fill(part))
    elsewhere = keys(each, store, lambda part: not each.meets(part))
    assert {key: store.get(key) for key in elsewhere} == {key: before.get(key) for key in elsewhere}


@pytest.mark.parametrize("first", THREADS)
def test_threads(first):
    for seed in range(first, first + THREADS.step):
        each = case(seed)
        with explained(each), dask.config.set(scheduler="threads", num_workers=4):
            store = WritesStore()
            each.prepare(store)
            before = dict(store.values)
            store.writes.clear()
            each.write(store)
            check(each, store, before)


def in_tiles(seed, store):
    """Return what writes an array by several regions, and the case."""
    each, regions = tiles(seed)
    zarrdask.create_array(store, **each.options)[...] = each.old
    arrays = [da.from_array(each.expected[region], chunks=-1) for region in regions]
    return each, [
        zarrdask.to_zarr(x.rechunk(5), store, region=region, compute=False)
        for x, region in zip(arrays, regions, strict=True)
    ]


@pytest.mark.parametrize("first", TILES)
def test_regions_that_threads_write_in_one_graph(first):
    for seed in range(first, first + TILES.step):
        store = WritesStore()
        each, tasks = in_tiles(seed, store)
        with explained(each):
            dask.compute(*tasks, scheduler="threads", num_workers=8)
            same(zarrdask.open_array(store)[...], each.expected)


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("first", CLUSTER)
def test_two_processes(client, tmp_path, first):
    cases = [case(seed) for seed in range(first, first + CLUSTER.step)]
    stores = [LoggedStore(str(tmp_path / f"{each.seed}")) for each in cases]
    before, tasks = [], []
    for each, store in zip(cases, stores, strict=True):
        with explained(each):
            each.prepare(store)
            before.append({key: store.get(key) for key in store.list()})
            store.forget()
            tasks.append(each.write(store, compute=False))
    dask.compute(*tasks)
    for each, store, old in zip(cases, stores, before, strict=True):
        with explained(each):
            check(each, store, old)


def test_regions_that_two_processes_write_in_one_graph(client, tmp_path):
    seeds = range(FIRST + 900, FIRST + 912)
    stores = [SlowStore(LocalStore(str(tmp_path / f"{seed}"))) for seed in seeds]
    writes = [in_tiles(seed, store) for seed, store in zip(seeds, stores, strict=True)]
    dask.compute(*(tasks for _, tasks in writes))
    for (each, _), store in zip(writes, stores, strict=True):
        with explained(each):
            same(zarrdask.open_array(store)[...], each.expected)
