"""Tasks of which only the end matters, with a progress bar on every scheduler."""

import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from distributed import Client, LocalCluster

from zarrdask.parallel.execution.compute import compute_blocks


def blocks(count):
    return da.zeros(count, chunks=1).map_blocks(np.negative, meta=np.empty(0))


@pytest.mark.parametrize("scheduler", ["sync", "threads", "cluster"])
def test_each_block_is_counted(scheduler, request):
    address = request.getfixturevalue("cluster_address") if scheduler == "cluster" else None
    out = io.StringIO()
    with Client(address) if address else dask.config.set(scheduler=scheduler):
        compute_blocks([blocks(3), blocks(4), blocks(1)], "write", out)
    assert "write: 100%" in out.getvalue()
    assert "8/8 [" in out.getvalue()


def test_computations_at_the_same_time_are_counted_apart():
    both = threading.Barrier(2, timeout=20)

    def write(out):
        x = da.zeros(1, chunks=1).map_blocks(lambda block: both.wait() * block, meta=np.empty(0))
        compute_blocks([x, blocks(3)], "write", out)
        return out.getvalue()

    with dask.config.set(scheduler="threads"), ThreadPoolExecutor(2) as pool:
        for text in pool.map(write, [io.StringIO(), io.StringIO()]):
            assert "4/4 [" in text


@pytest.mark.parametrize("scheduler", ["threads", dask.get])
def test_callbacks_of_users_are_called_all_the_same(scheduler):
    finished = []
    with dask.config.set(scheduler=scheduler), Callback(posttask=lambda *_: finished.append(1)):
        compute_blocks([blocks(3)], "write", out := io.StringIO())
    assert finished
    assert "3/3 [" in out.getvalue()


def test_receipts_that_have_arrived_are_released(cluster_address, tmp_path):
    def waiting(block, block_info=None):
        while block_info[0]["chunk-location"] == (2,) and not (tmp_path / "end").exists():
            time.sleep(0.01)
        return block

    def end():
        for _ in range(1000):
            counts.append(len(client.futures))
            if max(counts) == 4 and counts[-1] <= 2:
                break
            time.sleep(0.01)
        (tmp_path / "end").touch()

    x = da.zeros(4, chunks=1).map_blocks(waiting, meta=np.empty(0))
    counts = []
    with Client(cluster_address) as client, ThreadPoolExecutor(1) as thread:
        thread.submit(end)
        compute_blocks([x], "write", is_recorded=True)
    # That of the block that was computed last may still be held.
    assert counts[-1] in (1, 2)


def test_a_task_computes_blocks_on_the_thread_that_runs_it():
    def compute():
        compute_blocks([blocks(3)], "write", is_recorded=True)
        return "done"

    with (
        LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        assert client.submit(compute, pure=False).result(timeout=10) == "done"


@pytest.mark.parametrize("scheduler", ["sync", "cluster"])
def test_the_error_of_a_block_is_raised(scheduler, request):
    address = request.getfixturevalue("cluster_address") if scheduler == "cluster" else None

    def fail(block):
        raise OSError("disk full")

    x = da.zeros(2, chunks=1).map_blocks(fail, meta=np.empty(0))
    with Client(address) if address else nullcontext(), pytest.raises(OSError, match="disk full"):
        compute_blocks([x], "write", io.StringIO())
