"""Blocks that lie wrong: neighbours exchange edges, in one step, as the plan says."""

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrdask


def graph_of(x, target):
    """Return the tasks of a write by their keys, without those of the array and mere names."""
    found = dict(zarrdask.to_zarr(x, target, compute=False).__dask_graph__())
    before = dict(x.dask)
    return {
        key: task
        for key, task in found.items()
        if key not in before and type(task).__name__ != "Alias"
    }


CASES = [
    # blocks, stored chunks
    (((50, 50, 50),), (64,)),
    (((50, 50, 50), (100, 50)), (64, 64)),
    (((10,) * 5,) * 3, (16,) * 3),
    (((6, 6, 6),) * 4, (4,) * 4),
    (((4, 8), (4, 4, 4)), (4, 4)),
]


@pytest.mark.parametrize(("blocks", "chunks"), CASES)
def test_there_are_no_more_tasks_than_the_plan_says(blocks, chunks):
    x = da.zeros(tuple(map(sum, blocks)), chunks=blocks)
    z = zarrdask.create_array({}, shape=x.shape, chunks=chunks, dtype="f8")
    plan = zarrdask.plan_write(x, z)
    tasks = graph_of(x, z)
    # And one that stands for all of them.
    assert plan.tasks + 1 <= len(tasks) <= plan.tasks + plan.extra_tasks + 1


def test_no_block_waits_for_others_than_its_neighbours():
    # Of so many, Dask by itself would have all workers exchange all blocks.
    x = da.zeros((36,) * 4, chunks=6)
    z = zarrdask.create_array({}, shape=x.shape, chunks=7, dtype="f8")
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        keys = graph_of(x, z)
    assert not any("p2p" in str(key) for key in keys)


@pytest.mark.parametrize(("blocks", "chunks"), CASES)
def test_units_are_stored_as_planned(blocks, chunks):
    shape = tuple(map(sum, blocks))
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    z = zarrdask.create_array({}, shape=shape, chunks=chunks, dtype="i8")
    x = da.from_array(values, chunks=blocks)
    plan = zarrdask.plan_write(x, z)
    zarrdask.to_zarr(x, z)
    np.testing.assert_array_equal(z[...], values)
    assert z.nchunks_stored == plan.units
