"""`measured`: equal to what a store and a codec count themselves, wherever tasks run."""

import json
import multiprocessing
import os
import pickle
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import dask
import pytest
from distributed import Client, LocalCluster

import zarrdask
from tests.parallel.execution.counted_jobs import NAMES, VARIABLE, noted, random_job, register
from tests.storage.unlisted import UnlistedStore
from zarrdask.arrays.chunks.region import planned_reads
from zarrdask.errors import MetadataError
from zarrdask.runtime import measuring, process_counts
from zarrdask.storage.memory import MemoryStore

# Parts of chunks are written to a store without conditional writes.
pytestmark = pytest.mark.filterwarnings("ignore:.*can't detect another machine")


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "log"))


def counts_of(m):
    numbers = m.to_dict()
    names = {"fetched": "bytes_fetched", "stored": "bytes_stored"}
    names |= {"decoded": "chunks_decoded", "encoded": "chunks_encoded"}
    return {
        name: numbers["requests"][name] if name.isupper() else numbers[names[name]]
        for name in NAMES
    }


def check(seed, tmp_path, **options):
    """Check the numbers of one random job."""
    noted()
    with zarrdask.measured() as m:
        store, x = random_job(seed, str(tmp_path / f"job{seed}"))
        x.compute(**options)
    counted, expected = counts_of(m), noted()
    if isinstance(store, zarrdask.storage.LocalStore):
        # It counts no requests itself; the codec counts.
        expected |= {name: counted[name] for name in NAMES[:7]}
    assert counted == {name: expected[name] for name in NAMES}, seed


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_of_a_counting_store_and_codec(seed, tmp_path, log):
    check(seed, tmp_path, scheduler="threads")


@contextmanager
def cluster_of_threads():
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0"
    )
    with cluster, Client(cluster):
        yield {}


@contextmanager
def cluster_of_processes():
    cluster = LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        client.run(register, os.environ[VARIABLE])
        yield {}


@contextmanager
def pool_of_processes():
    # Processes write what they count for the block within which they have started.
    with (
        zarrdask.measured(),
        ProcessPoolExecutor(
            2, multiprocessing.get_context("spawn"), register, (os.environ[VARIABLE],)
        ) as pool,
    ):
        yield {"scheduler": "processes", "pool": pool}


@contextmanager
def threads():
    yield {"scheduler": "threads"}


@pytest.mark.stress
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("workers", "seeds"),
    [
        (threads, range(300)),
        (cluster_of_threads, range(300, 350)),
        (cluster_of_processes, range(350, 425)),
        (pool_of_processes, range(425, 500)),
    ],
)
def test_numbers_are_right_in_many_jobs(workers, seeds, tmp_path, log):
    with workers() as options:
        for seed in seeds:
            check(seed, tmp_path, **options)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [cluster_of_threads, cluster_of_processes, pool_of_processes])
def test_numbers_of_workers_are_added(workers, tmp_path, log):
    with workers() as options:
        for seed in range(5):
            check(seed, tmp_path, **options)


@pytest.mark.slow
def test_workers_report_to_the_scheduler_without_a_block(cluster_address, tmp_path):
    z = zarrdask.create_array(tmp_path, "t2m", shape=(4, 6), dtype="f4", chunks=(2, 6))
    z[...] = 1
    with Client(cluster_address) as client:
        x = zarrdask.from_zarr(z)
        x.persist(optimize_graph=False).compute()
        client.run(heartbeat)
        metrics = client.run_on_scheduler(
            lambda dask_scheduler: dict(dask_scheduler.cumulative_worker_metrics)
        )
    assert metrics["execute", "read_t2m", "zarr-GET", "count"] >= 2
    assert metrics["execute", "read_t2m", "zarr-decoded", "count"] >= 2
    assert metrics["execute", "read_t2m", "zarr-fetched", "bytes"] > 0


@pytest.mark.slow
def test_a_process_counts_for_its_workers_only_until_they_have_closed(tmp_path):
    z = zarrdask.create_array(tmp_path, "t2m", shape=(4, 6), dtype="f4", chunks=(2, 6))
    x = zarrdask.from_zarr(z)
    for _ in range(2):  # the array is cached by the process
        with (
            LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            pickled = client.submit(pickle.loads, pickle.dumps(x)).result()
            client.compute(pickled).result()
            assert measuring.IS_ACTIVE
        z[...]
        assert not measuring.IS_ACTIVE


async def heartbeat(dask_worker):
    await dask_worker.heartbeat()


def ones(store, name="t2m"):
    z = zarrdask.create_array(store, name, shape=(4, 6), dtype="f4", chunks=(2, 6))
    z[...] = 1
    return z


def test_nothing_is_counted_outside_of_a_block():
    before = measuring.IS_ACTIVE  # a worker of a cluster in this process may count
    with zarrdask.measured() as m:
        pass
    ones(MemoryStore())
    assert before == measuring.IS_ACTIVE
    assert not any(m.requests.values())
    assert m.to_dict()["rows"] == []


def test_blocks_within_blocks_count_both():
    store = MemoryStore()
    with zarrdask.measured() as outer:
        z = ones(store)
        with zarrdask.measured() as inner:
            z[...]
    assert inner.requests["GET"] == inner.chunks_decoded == 2
    assert outer.chunks_decoded == 2
    assert outer.chunks_encoded == 2
    assert inner.chunks_encoded == 0


def test_numbers_are_grouped_by_task_array_and_store():
    first, second = MemoryStore(), MemoryStore()
    a, b = ones(first, "a"), ones(second, "g/b")
    with zarrdask.measured() as m, dask.config.set(scheduler="threads"):
        dask.compute(zarrdask.from_zarr(a), zarrdask.from_zarr(b)[:2])
    assert m.by("task", "array")["read_a", "a"]["chunks_decoded"] == 2
    assert m.by("task", "array")["read_b", "g/b"]["chunks_decoded"] == 1
    assert m.by("store")[second.url,]["requests"]["GET"] >= 1
    json.dumps(m.to_dict())


def test_a_measurement_prints_as_a_table_that_says_what_limited_the_job():
    z = ones(MemoryStore())
    with zarrdask.measured() as m:
        z[...]
    lines = str(m).splitlines()
    assert lines[0].split()[:3] == ["task", "array", "GET"]
    assert lines[1].split()[:3] == ["read_t2m", "t2m", "2"]
    assert lines[-1].startswith(f"limited by {m.limit[0]}: ")
    assert "<pre" in m._repr_html_()
    assert repr(m).startswith("<zarrdask.Measurement 2 requests")


@pytest.mark.parametrize(
    ("counts", "limit"),
    [
        ({"waiting": 8, "GET": 100, "fetched": 1000}, "requests"),
        ({"waiting": 8, "GET": 10, "fetched": 2**30}, "bandwidth"),
        ({"waiting": 1, "decoding": 9}, "decoding"),
        ({"locked": 9, "encoding": 1}, "locks"),
        ({"waiting": 0.1, "GET": 1}, "Dask"),
    ],
)
def test_the_limit_is_what_took_the_most_time(counts, limit):
    with zarrdask.measured() as m:
        pass
    m.add_all([(measuring.Labels("read_x", "x", "memory"), counts)])
    m.seconds_elapsed = 10.0
    assert m.limit[0] == limit


def test_threads_add_to_the_same_numbers():
    z = ones(MemoryStore())
    with zarrdask.measured() as m, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: z[...], range(50)))
    assert m.chunks_decoded == m.requests["GET"] == 100
    assert m.operations == 50


def test_a_block_may_be_used_again_and_numbers_are_there_before_it_ends():
    z, block = ones(MemoryStore()), zarrdask.measured()
    for _ in range(2):
        with block as m:
            z[...]
            assert m.chunks_decoded == pickle.loads(pickle.dumps(m)).chunks_decoded == 2
        assert m.chunks_decoded == 2
    with pytest.raises(AttributeError, match="as m"):
        block.requests  # noqa: B018
    with pytest.raises(MetadataError, match="labels"):
        m.by("tsk")


def test_blocks_in_threads_end_in_any_order():
    z, entered = ones(MemoryStore()), Barrier(3)

    def block(number):
        with zarrdask.measured() as m:
            entered.wait()
            z[...]
            time.sleep(number / 100)
        return m.chunks_decoded

    with ThreadPoolExecutor(3) as pool:
        assert max(pool.map(block, range(3))) == 6
    assert process_counts.VARIABLE not in os.environ


def decoded_in_a_block(url):
    with zarrdask.measured() as m:
        zarrdask.open_array(url)[...]
    return m.chunks_decoded


@pytest.mark.slow
def test_a_block_in_another_process_counts_once(tmp_path):
    ones(tmp_path)
    context = multiprocessing.get_context("spawn")
    with zarrdask.measured() as m, ProcessPoolExecutor(1, context) as pool:
        assert pool.submit(decoded_in_a_block, tmp_path / "t2m").result() == 2
    assert m.chunks_decoded == 2


def test_a_batch_counts_the_chunks_that_are_decoded():
    z = zarrdask.create_array(MemoryStore(), "t2m", shape=(300, 4), dtype="f4", chunks=(1, 4))
    z[:200] = 1
    with zarrdask.measured() as m:
        z[...]
        z[::2, 1:3]
    assert m.chunks_decoded == 200 + 100


def test_hits_of_the_cache_of_decoded_chunks_are_counted(tmp_path):
    with dask.config.set({"zarrdask.cache-size": 2**20}):
        z = ones(tmp_path)
        z[...]
        with zarrdask.measured() as m:
            z[...]
    assert m.cache_hits in (0, 2)
    assert m.cache_hits + m.chunks_decoded == 2


def test_seconds_under_locks_are_counted():
    z = ones(MemoryStore())
    with zarrdask.measured() as m:
        z[0, 0] = 2
    assert m.seconds_locked > 0
    assert m.chunks_decoded == m.chunks_encoded == 1


def test_what_a_fused_task_reads_is_reported_once():
    z, reports = ones(MemoryStore()), []
    measuring.begin(report := lambda labels, counts: reports.append((labels, counts)))
    try:
        with planned_reads(()):
            z[:2]
            z[2:]
            before = [each for each in reports if each[0].array == "t2m"]
    finally:
        measuring.end(report)
    assert before == []
    ((_, counts),) = (each for each in reports if each[0].array == "t2m")
    assert (counts["decoded"], counts["operations"]) == (2, 2)


class LateStore(UnlistedStore):
    """A store that answers late."""

    def get(self, key):
        time.sleep(0.02)
        return self.values.get(key)


def test_the_wait_for_a_chunk_is_not_counted_as_decoding():
    z = ones(LateStore())
    with zarrdask.measured() as m:
        z[:2]
    assert m.chunks_decoded == m.requests["GET"] == 1
    assert m.seconds_waiting > m.seconds_decoding


def test_spans_are_made_if_opentelemetry_is_loaded(monkeypatch):
    spans = []

    class Span:
        def __init__(self, name, attributes):
            self.name, self.attributes = name, dict(attributes)
            spans.append(self)

        def set_attributes(self, attributes):
            self.attributes |= attributes

        def end(self):
            self.is_ended = True

    class Trace:
        @staticmethod
        def get_tracer(name):
            return Trace

        @staticmethod
        def start_span(name, attributes):
            return Span(name, attributes)

    z = ones(MemoryStore())
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", Trace)
    with zarrdask.measured():
        z[...]
    (span,) = spans
    assert span.name == "read_t2m"
    assert span.is_ended
    assert span.attributes["zarrdask.array"] == "t2m"
    assert span.attributes["zarrdask.GET"] == 2
