"""rechunked, while workers are lost: what they had packed and read is computed again."""

import os
import signal
import threading
import time

import dask
import numpy as np
import pytest

import zarrdask

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("delay", [0.1, 0.5, 1.0])
def test_a_lost_worker_costs_its_tasks_only(tmp_path, delay):
    from distributed import Client, LocalCluster

    values = np.random.default_rng(0).random((400, 64, 64))
    z = zarrdask.create_array(tmp_path / "z", shape=values.shape, dtype="f8", chunks=(1, 64, 64))
    z[...] = values
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 10}),
        LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        x = zarrdask.from_zarr(tmp_path / "z", chunks=(1, 64, 64)) + 1
        y = zarrdask.rechunked(x, (400, 8, 8), temp=tmp_path, max_mem="2 MiB")
        slow = y.map_blocks(lambda block: time.sleep(0.02) or block)
        [process, _] = client.run(os.getpid).values()
        timer = threading.Timer(delay, os.kill, (process, signal.SIGKILL))
        timer.start()
        np.testing.assert_array_equal(slow.compute(), values + 1)
        timer.join()
