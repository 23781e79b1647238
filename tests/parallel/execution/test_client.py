"""The current client and worker, where there is none."""

import dask

from zarrdask.parallel.execution import client


def test_without_a_cluster_there_is_neither_client_nor_worker():
    with dask.config.set(scheduler="threads"):
        assert client.current_client() is None
    assert client.current_worker() is None


def test_the_number_of_threads_is_that_of_the_settings():
    with dask.config.set(scheduler="threads", num_workers=3):
        assert client.thread_count() == client.local_threads() == 3
    with dask.config.set(scheduler="sync", num_workers=3):
        assert client.local_threads() == 1


def test_a_task_of_the_synchronous_scheduler_computes_in_its_thread():
    with dask.config.set(scheduler="sync"), client.scheduler_in_task() as options:
        assert options == {}


def test_a_task_of_another_scheduler_has_threads_of_its_own():
    with dask.config.set(scheduler="threads"), client.scheduler_in_task() as options:
        assert options
        x = dask.delayed(sum)([1, 2])
        assert dask.compute(x, **options) == (3,)
