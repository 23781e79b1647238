"""Writes that share stored units: under each scheduler nothing is lost."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrdask
from tests.parallel.graph.writes import SlowStore
from tests.processes import running
from zarrdask.parallel.execution import locks
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore

pytestmark = pytest.mark.stress

PATIENCE = 60
SHAPE = (12, 10)
LAYOUTS = {
    "chunks": {"chunks": (5, 4)},
    "shards": {"chunks": (1, 2), "shards": (5, 4)},
    "v2": {"chunks": (5, 4), "zarr_format": 2},
    "draft": {"chunks": (1, 2), "shards": (5, 4), "zarr_format": "v3-draft"},
}
#: Each element is in one of them, each unit in several.
REGIONS = (np.s_[:3, :5], np.s_[:3, 5:], np.s_[3:7, :], np.s_[7:, :6], np.s_[7:, 6:])
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def made(store, layout):
    """Return an array of ones in a store that is slow to read."""
    z = zarrdask.create_array(SlowStore(store), "a", shape=SHAPE, dtype="i4", **layout)
    z[...] = 1
    return z


def tasks(z, value=0):
    """Return the writes of all regions, each to be computed."""
    return [
        zarrdask.to_zarr(
            da.full(np.empty(SHAPE)[region].shape, value + i, chunks=3, dtype="i4"),
            z,
            region=region,
            compute=False,
        )
        for i, region in enumerate(REGIONS)
    ]


def expected(value=0):
    found = np.zeros(SHAPE, "i4")
    for i, region in enumerate(REGIONS):
        found[region] = value + i
    return found


def check(z, value=0):
    found = zarrdask.open_array(z.store, "a")[...]
    np.testing.assert_array_equal(found, expected(value))


@layouts
@pytest.mark.parametrize("options", [{"scheduler": "sync"}, {"scheduler": "threads"}], ids=str)
@pytest.mark.parametrize("kind", [MemoryStore, LocalStore])
def test_regions_of_one_graph(tmp_path, layout, options, kind):
    z = made(MemoryStore() if kind is MemoryStore else LocalStore(str(tmp_path)), layout)
    for value in (10, 20, 30):
        dask.compute(*tasks(z, value), num_workers=8, **options)
        check(z, value)


def test_regions_of_one_graph_in_processes(tmp_path):
    z = made(LocalStore(str(tmp_path)), LAYOUTS["chunks"])
    dask.compute(*tasks(z, 10), scheduler="processes", num_workers=2)
    check(z, 10)


@layouts
def test_graphs_that_are_computed_by_several_threads(layout):
    z = made(MemoryStore(), layout)
    for value in (10, 20, 30):
        barrier = threading.Barrier(len(REGIONS))

        def work(task, barrier=barrier):
            barrier.wait(PATIENCE)
            task.compute(scheduler="sync")

        threads = [threading.Thread(target=work, args=(task,)) for task in tasks(z, value)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        check(z, value)


@layouts
def test_other_spellings_of_the_array(tmp_path, layout):
    made(LocalStore(str(tmp_path)), layout)
    (tmp_path / "link").symlink_to(".")
    stores = [
        zarrdask.open_array(SlowStore(LocalStore(str(tmp_path / place))), path, mode="r+")
        for place, path in (("", "a"), ("link", "a"), ("link/link", "a"))
    ]
    if layout.get("zarr_format") != "v3-draft":
        stores.append(zarrdask.open_array(SlowStore(LocalStore(str(tmp_path / "a"))), mode="r+"))
    parts = [
        zarrdask.to_zarr(
            da.full(np.empty(SHAPE)[region].shape, i),
            stores[i % len(stores)],
            region=region,
            compute=False,
        )
        for i, region in enumerate(REGIONS)
    ]
    dask.compute(*parts, scheduler="threads", num_workers=8)
    check(zarrdask.open_array(LocalStore(str(tmp_path)), "a"))


def test_eager_writes_beside_a_graph():
    z = made(MemoryStore(), LAYOUTS["chunks"])
    others = tasks(z, 10)[:-1]

    def work():
        for _ in range(5):
            z[REGIONS[-1]] = 14

    thread = threading.Thread(target=work)
    thread.start()
    dask.compute(*others, scheduler="threads", num_workers=4)
    thread.join(PATIENCE)
    check(z, 10)


@layouts
def test_whole_units_and_parts_that_overlap(layout):
    """Elements that several write are of one of them, all others are of their one writer."""
    for value in range(10):
        z = made(MemoryStore(), layout)
        first = zarrdask.to_zarr(
            da.full((10, 10), 100 + value, dtype="i4", chunks=5),
            z,
            region=np.s_[:10],
            compute=False,
        )
        second = zarrdask.to_zarr(
            da.full((6, 10), 200 + value, dtype="i4", chunks=3), z, region=np.s_[3:9], compute=False
        )
        writes = [first, second][:: 1 if value % 2 else -1]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda write: write.compute(num_workers=4), writes))
        found = z[...]
        assert (found[:3] == 100 + value).all()
        assert (found[9:10] == 100 + value).all()
        assert set(found[3:9].flat) <= {100 + value, 200 + value}
        assert (found[10:] == 1).all()


# ---- a cluster


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def compute(client, found):
    for future in client.compute(found):
        future.result(timeout=PATIENCE)


@layouts
def test_regions_on_a_cluster(client, tmp_path, layout):
    z = made(LocalStore(str(tmp_path)), layout)
    for value in (10, 20):
        compute(client, tasks(z, value))
        check(z, value)


def test_graphs_of_several_clients_of_a_cluster(client, tmp_path):
    z = made(LocalStore(str(tmp_path)), LAYOUTS["shards"])
    with Client(client.cluster, set_as_default=False) as other:
        parts = tasks(z, 10)
        futures = [(client, other)[i % 2].compute(part) for i, part in enumerate(parts)]
        for future in futures:
            future.result(timeout=PATIENCE)
    check(z, 10)


@pytest.fixture
def machines(client, tmp_path):
    """Let each worker be a machine of its own: they share the store, but no files to lock."""

    def leave(dask_worker):
        directory = tmp_path / f"machine-{dask_worker.name}"
        dask.config.set({"zarrdask.lock-directory": str(directory)})
        dask_worker.is_here, locks.is_here = locks.is_here, lambda address: False

    def come_back(dask_worker):
        dask.config.set({"zarrdask.lock-directory": None})
        locks.is_here = dask_worker.is_here

    client.run(leave)
    yield
    client.run(come_back)


def test_regions_on_a_cluster_of_several_machines(client, machines, tmp_path):
    z = made(LocalStore(str(tmp_path)), LAYOUTS["chunks"])
    for value in (10, 20):
        compute(client, tasks(z, value))
        check(z, value)
    names = client.run_on_scheduler(
        lambda dask_scheduler: list(dask_scheduler.extensions["semaphores"].max_leases)
    )
    assert [name for name in names if name.startswith("zarrdask-unit-")]


def test_whole_units_need_no_lock_of_the_cluster(client, machines, tmp_path):
    def acquired(dask_scheduler):
        counts = dask_scheduler.extensions["semaphores"].metrics["acquire_total"]
        return sum(count for name, count in counts.items() if name.startswith("zarrdask"))

    z = made(LocalStore(str(tmp_path)), LAYOUTS["chunks"])
    before = client.run_on_scheduler(acquired)
    whole = np.s_[:10, :8]
    x = da.full((10, 8), 2, chunks=5, dtype="i4")
    compute(client, [zarrdask.to_zarr(x, z, region=whole, compute=False)])
    assert client.run_on_scheduler(acquired) == before
    assert (z[whole] == 2).all()
    compute(client, tasks(z))
    assert client.run_on_scheduler(acquired) > before


def test_on_one_machine_no_lock_of_the_cluster_is_taken(client):
    assert client.submit(lambda: locks.among_workers() is None, pure=False).result(PATIENCE)
    assert locks.among_workers() is None


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("tls://127.0.0.1:8786", True),
        ("tcp://[::1]:8786", True),
        ("inproc://192.168.1.2/44/1", True),
        ("tcp://192.168.1.2:8786", False),
        ("ws://10.1.1.1:80", False),
        ("tcp://scheduler.example:8786", False),
    ],
)
def test_addresses_that_only_this_machine_can_reach(address, here):
    assert locks.is_here(address) is here


# ---- processes that know nothing of each other

WRITE = """
import sys
import dask
import dask.array as da
import zarrdask
from tests.parallel.graph import test_shared_units as this
from tests.parallel.graph.writes import SlowStore
from zarrdask.storage.local.local_store import LocalStore

place, number = sys.argv[1], int(sys.argv[2])
z = zarrdask.open_array(SlowStore(LocalStore(place)), "a", mode="r+")
print("ready", flush=True)
sys.stdin.readline()
for value in (10, 20, 30):
    this.tasks(z, value)[number].compute(scheduler="threads")
"""


def test_several_processes(tmp_path):
    z = made(LocalStore(str(tmp_path)), LAYOUTS["shards"])
    with ExitStack() as stack:
        programs = [
            stack.enter_context(running(WRITE, tmp_path, number)) for number in range(len(REGIONS))
        ]
        for program in programs:
            assert program.stdout.readline() == "ready\n"
        for program in programs:
            program.tell()
        assert [program.finish().code for program in programs] == [0] * len(REGIONS)
    check(z, 30)
