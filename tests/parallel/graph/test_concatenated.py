"""Dask arrays of concatenations."""

import cloudpickle
import numpy as np
import pytest

import zarrdask


@pytest.fixture
def days(tmp_path):
    """Return the pattern of 40 stores."""
    for day in range(40):
        z = zarrdask.create_array(tmp_path / f"{day}.zarr", shape=(6, 4), dtype="f4", chunks=(3, 4))
        z[...] = day
    return f"{tmp_path}/*.zarr"


def test_the_read_is_one_layer_whose_blocks_cross_members(days):
    x = zarrdask.from_zarr(zarrdask.concat(days))
    assert len(x.dask.layers) == 1
    assert x.numblocks == (1, 1)
    assert zarrdask.from_zarr(zarrdask.concat(days), chunks="stored").numblocks == (80, 1)


def test_the_graph_and_the_tasks_are_small(days):
    x = zarrdask.from_zarr(zarrdask.concat(days), chunks="stored")
    assert len(cloudpickle.dumps(x)) < 3000 + 40 * 100
    assert max(len(cloudpickle.dumps(task)) for task in dict(x.dask).values()) < 1500


def test_slices_and_reductions_are_those_of_numpy(days):
    array = zarrdask.concat(days)
    x, values = zarrdask.from_zarr(array, chunks="stored"), array[...]
    np.testing.assert_array_equal(x[5:60:7, 1], values[5:60:7, 1])
    assert float(x.mean().compute()) == values.mean()
    np.testing.assert_array_equal((x[6:] - x[:-6]).compute(), values[6:] - values[:-6])


def test_blocks_that_overlap_cross_members(days):
    array = zarrdask.concat(days)
    x = zarrdask.from_zarr(array, chunks=(20, 4), depth={0: 2})
    expected = zarrdask.from_zarr(array)[18:42].compute()
    np.testing.assert_array_equal(x.blocks[1].compute(), expected)


def test_missing_blocks_are_skipped(tmp_path):
    arrays = [zarrdask.create_array({}, shape=4, dtype="i4", chunks=2) for _ in range(3)]
    arrays[1][2:] = 5
    x = zarrdask.from_zarr(zarrdask.concat(arrays), chunks="stored", skip_missing=True)
    assert x.compute().tolist() == [0] * 6 + [5] * 2 + [0] * 4


def test_a_plan_has_the_chunks_of_the_members(days):
    plan = zarrdask.plan_read(zarrdask.from_zarr(zarrdask.concat(days), chunks="stored")[:9])
    assert (plan.requests, len(plan.arrays)) == (3, 2)


def test_a_member_that_is_read_is_replaced_when_it_was_read(days, tmp_path):
    array = zarrdask.concat(days)
    expected = array[...][117:123] + 1
    x = zarrdask.from_zarr(array)[117:123] + 1
    zarrdask.to_zarr(x, tmp_path / "20.zarr", overwrite=True)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "20.zarr"), expected)


def test_the_reads_of_symbolic_layers_are_those_of_the_members(days, tmp_path):
    from zarrdask.parallel.graph.dependencies import reads

    array = zarrdask.concat(days)
    locations = {read.canonical_location for read in reads([zarrdask.from_zarr(array)])}
    assert len(locations) == 40
