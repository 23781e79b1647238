"""Blocks that lie wrong: neighbours exchange edges; tasks and memory are as the plan says."""

import dask
import dask.array as da
import numpy as np
from dask.callbacks import Callback

import zarrdask
from tests.covering import for_each


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


@for_each(("blocks", "chunks"), CASES)
def test_there_are_no_more_tasks_than_the_plan_says(blocks, chunks):
    x = da.zeros(tuple(map(sum, blocks)), chunks=blocks)
    z = zarrdask.create_array({}, shape=x.shape, chunks=chunks, dtype="f8")
    plan = zarrdask.plan_write(x, z)
    tasks = graph_of(x, z)
    # And one that stands for all of them.
    assert plan.tasks + 1 <= len(tasks) <= plan.tasks + plan.extra_tasks + 1


class Largest(Callback):
    """Knows the largest array that a task gave."""

    def __init__(self):
        self.nbytes = 0

    def _posttask(self, key, result, dsk, state, worker_id):
        self.nbytes = max(self.nbytes, getattr(result, "nbytes", 0))


def test_no_block_is_larger_than_planned_also_where_it_takes_several_steps():
    x = da.ones((64, 80, 80), chunks=(1, 80, 80))
    z = zarrdask.create_array({}, shape=x.shape, chunks=(64, 8, 8), dtype="f8")
    with dask.config.set({"zarrdask.block-size": 2**12}), Largest() as largest:
        plan = zarrdask.plan_write(x, z)
        zarrdask.to_zarr(x, z)
    assert (z[...] == 1).all()
    assert largest.nbytes <= plan.block_bytes < x.nbytes / 30


@for_each(("blocks", "chunks"), CASES)
def test_units_are_stored_as_planned(blocks, chunks):
    shape = tuple(map(sum, blocks))
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    z = zarrdask.create_array({}, shape=shape, chunks=chunks, dtype="i8")
    x = da.from_array(values, chunks=blocks)
    plan = zarrdask.plan_write(x, z)
    zarrdask.to_zarr(x, z)
    np.testing.assert_array_equal(z[...], values)
    assert z.nchunks_stored() == plan.objects
