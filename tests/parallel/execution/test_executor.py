"""One task for each of many items, on each kind of scheduler."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dask
import pytest
from distributed import Client, LocalCluster

from zarrdask.errors import MetadataError, StoreError
from zarrdask.parallel.execution import executor
from zarrdask.parallel.execution.executor import workers
from zarrdask.storage.resolve import resolve

SCHEDULERS = ["sync", "threads", "processes"]


def square(n):
    return n * n


def run(task, items, scheduler=None, **options):
    with workers(scheduler) as on:
        return executor.run(task, items, on=on, **options)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_results_come_in_the_order_of_the_items(scheduler):
    seen = []
    with dask.config.set(num_workers=2):
        found = run(
            square, range(20), scheduler=scheduler, finished=lambda i, r: seen.append((i, r))
        )
    assert found == [n * n for n in range(20)]
    assert sorted(seen) == [(n, n * n) for n in range(20)]


def test_an_interrupt_waits_until_processes_are_started():
    class Started(ThreadPoolExecutor):
        def submit(self, *arguments):
            blocked.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
            return super().submit(*arguments)

    blocked = []
    with Started(1) as threads:
        assert executor._Pickling(threads).submit(square, 3).result() == 9
    assert signal.SIGINT in blocked[0]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_functions_of_a_script_go_along(scheduler):
    three = 3
    with dask.config.set(num_workers=2):
        assert run(lambda n: n * three, [1, 2], scheduler=scheduler) == [3, 6]


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_the_first_error_ends_it_and_nothing_goes_on(scheduler):
    begun, ended = [], []

    def task(n):
        begun.append(n)
        if n == 5:
            raise OSError("broken")
        time.sleep(0.01)
        ended.append(n)

    with pytest.raises(OSError, match="broken"):
        run(task, range(1000), scheduler=scheduler)
    assert len(begun) < 200
    assert sorted(ended) == sorted(set(begun) - {5})


def test_an_error_is_not_hidden_by_one_of_waiting_for_other_tasks(monkeypatch):
    class LostClient:
        def nthreads(self):
            raise OSError("the connection to the scheduler was lost")

    def task(n):
        if n:
            begun.set()
            others_end.wait(20)
        else:
            begun.wait(20)
            raise ZeroDivisionError("the first error")

    monkeypatch.setattr(executor, "CHECK_INTERVAL", 0.01)
    begun, others_end = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as threads:
        on = executor.Workers(threads, processes=1, threads=2, client=LostClient())
        with pytest.raises(ZeroDivisionError, match="the first error") as caught:
            executor.run(task, range(2), on=on)
        others_end.set()
    assert "connection to the scheduler was lost" in caught.value.__notes__[0]


def test_the_current_scheduler_is_taken():
    with dask.config.set(scheduler="sync"), workers() as found:
        assert found.executor is None
    with dask.config.set(scheduler="threads", num_workers=3), workers() as found:
        assert (found.processes, found.threads) == (1, 3)
    names = set()
    with dask.config.set(num_workers=2):
        run(lambda _: names.add(threading.current_thread().name), range(10))
    assert threading.current_thread().name not in names


def test_distributed_is_not_imported_to_find_that_there_is_no_client(monkeypatch):
    monkeypatch.delitem(sys.modules, "distributed")
    with workers() as found:
        assert (found.processes, found.client) == (1, None)
    assert "distributed" not in sys.modules


def test_a_cluster_runs_them_all(cluster_address):
    with Client(cluster_address) as client:
        with workers() as found:
            assert (found.processes, found.threads) == (2, 1)
        assert run(square, range(40)) == [n * n for n in range(40)]
        with pytest.raises(ZeroDivisionError):
            run(lambda n: 1 / (n - 10), range(40), scheduler=client)
    assert run(square, range(5), scheduler=cluster_address) == [0, 1, 4, 9, 16]


def test_what_is_no_scheduler_is_refused():
    with pytest.raises(MetadataError, match="unknown scheduler"):
        run(square, [1], scheduler="nonsense")
    cluster = type("Cluster", (), {"get_client": None})()
    with pytest.raises(MetadataError, match=r"needs a client; pass cluster\.get_client\(\)"):
        run(square, [1], scheduler=cluster)


def test_workers_are_shared_by_those_that_pass_them_on():
    with workers("threads") as on:
        with workers(on) as same:
            assert same is on
        assert executor.run(square, [3], on=on) == [9]


def test_tasks_that_run_while_another_one_fails_count_as_finished():
    """A record of what is done must not lack them."""
    together, finished = threading.Barrier(2), []

    def task(number):
        together.wait(60)
        if number == 0:
            raise MetadataError("broken")
        time.sleep(0.1)

    with dask.config.set(num_workers=2), pytest.raises(MetadataError, match="broken"):
        run(task, [0, 1], "threads", finished=lambda number, _: finished.append(number))
    assert finished == [1]


def test_a_cluster_without_workers_is_not_waited_for():
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        workers(client) as on,
    ):
        store = resolve("memory://without-workers")
        with pytest.raises(StoreError, match="memory of one process"):
            executor.check_reached(on, store)

        def interrupt():
            while not client.futures:
                time.sleep(0.01)
            time.sleep(0.3)  # a signal right before a thread begins to wait does not wake it
            os.kill(os.getpid(), signal.SIGINT)

        (thread := threading.Thread(target=interrupt)).start()
        with pytest.raises(KeyboardInterrupt):
            executor.run(square, range(3), on=on)
        thread.join()
        assert not client.futures
