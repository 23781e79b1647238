"""Fused tasks: what they request together, and the errors of their blocks."""

import os
import threading

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrdask
from tests.parallel.graph.fuse.stored import SHAPE, VALUES, stored
from tests.parallel.graph.fuse.test_writes import failing
from tests.storage.latency import FarStore
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array
from zarrdask.storage.memory import MemoryStore

pytestmark = pytest.mark.usefixtures("three_tasks")


@pytest.mark.parametrize("shards", [None, 4])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: (x * 2).sum(),
        lambda x: zarrdask.to_zarr(x, {}, compute=False),
        lambda x: zarrdask.to_zarr(x[::-1] + 1, {}, compute=False),
    ],
    ids=["sum", "write", "reversed"],
)
@pytest.mark.parametrize("skip_missing", [False, True])
def test_blocks_of_a_fused_task_are_requested_together_from_a_far_store(
    compute, shards, skip_missing
):
    together = threading.Event()

    class Store(FarStore):
        """The first request waits until another one is in flight."""

        def get_range(self, key, start, length=None):
            return self.request("get", [key], lambda: self._get(key, start, length))

        def get(self, key):
            return self.get_range(key, 0)

        def _get(self, key, start, length):
            if self.in_flight >= 2:
                together.set()
            assert together.wait(30)
            return self.inner.get_range(key, start, length)

    inner = MemoryStore()
    z = zarrdask.create_array(inner, shape=SHAPE, dtype="f8", chunks=2, shards=shards)
    z[...] = VALUES
    array = Array(NodePath(Store(inner, seconds=0), ""), z.metadata)
    with dask.config.set(scheduler="sync", num_workers=1):
        dask.compute(compute(zarrdask.from_zarr(array, chunks=2, skip_missing=skip_missing)))
    assert together.is_set()


def test_an_error_names_the_block_and_its_key(tmp_path, scheduler):
    x = stored(tmp_path).map_blocks(failing, dtype="f8").sum()
    with dask.config.set(scheduler=scheduler), pytest.raises(ZeroDivisionError) as caught:
        x.compute()
    assert any("block (1, 2)" in note and "c/1/2" in note for note in caught.value.__notes__)


def _dying(block, marker, block_id):
    if block_id == (1, 2) and not marker.exists():
        marker.touch()
        os._exit(1)
    return block


@pytest.mark.stress
def test_a_fused_task_of_a_worker_that_dies_is_computed_by_another(tmp_path):
    x = stored(tmp_path / "a").map_blocks(
        _dying, tmp_path / "died", dtype="f8", meta=np.empty((0, 0))
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        np.testing.assert_array_equal(x.max(axis=1).compute(), VALUES.max(axis=1))
    assert (tmp_path / "died").exists()
