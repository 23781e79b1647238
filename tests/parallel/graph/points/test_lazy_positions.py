"""Points at positions that are Dask arrays: the elements, in order, and each chunk once."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.arrays.samples.random_cases import random_array
from tests.counting import CountingStore
from tests.covering import seeds
from zarrdask.errors import SelectionError
from zarrdask.storage.memory import MemoryStore


def check_random_case(seed):
    """Check points of the first axes of a random array, at lazy and other positions."""
    rng = np.random.default_rng(seed)
    z, values = random_array(rng, min_dims=1)
    shape = tuple(rng.integers(seed % 9 > 0, 6, rng.integers(1, 4)).tolist())
    ndim = int(rng.integers(1, z.ndim + 1))
    # Some have fewer axes, and broadcast.
    shapes = [shape, *(shape[rng.integers(len(shape)) :] for _ in range(ndim - 1))]
    positions = [rng.integers(-n, n, own) for n, own in zip(z.shape, shapes, strict=False)]
    lazy = [da.from_array(each, chunks=int(rng.integers(1, 6))) for each in positions]
    if ndim > 1 and rng.integers(2):
        lazy[1] = positions[1]
    with dask.config.set({"zarrdask.block-size": int(rng.integers(1, 2000))}):
        found = zarrdask.from_zarr(z).vindex[tuple(lazy)]
    expected = values[tuple(positions)]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), expected)


@pytest.mark.parametrize("seed", seeds(50))
def test_lazy_points_of_random_arrays(seed):
    check_random_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 1050, 100))
def test_lazy_points_of_many_random_arrays(first):
    for seed in range(first, first + 100):
        check_random_case(seed)


def test_each_chunk_is_decoded_once_for_all_blocks_of_positions():
    store = CountingStore(MemoryStore())
    z = zarrdask.create_array(store, shape=(40, 30), dtype="i4", chunks=(4, 5))
    z[...] = np.arange(1200).reshape(40, 30)
    store.reads.clear()
    rows, columns = np.random.default_rng(0).integers(0, 30, (2, 300))
    positions = [da.from_array(each, chunks=50) for each in (rows, columns)]
    with dask.config.set({"zarrdask.block-size": 400}):
        points = zarrdask.from_zarr(z).vindex[tuple(positions)]
        np.testing.assert_array_equal(points.compute(), rows * 30 + columns)
    assert {*store.reads.values()} == {1}


def test_positions_outside_are_found_when_they_are_computed():
    z = zarrdask.create_array({}, shape=(9,), dtype="i4", chunks=(2,))
    points = zarrdask.from_zarr(z).vindex[da.from_array(np.array([3, 9]), chunks=1)]
    with pytest.raises(SelectionError, match="out of bounds"):
        points.compute()


def test_dask_refuses_positions_of_unknown_number():
    z = zarrdask.create_array({}, shape=(9, 9), dtype="i4", chunks=(2, 2))
    x, some = zarrdask.from_zarr(z), da.arange(9, chunks=3)
    with pytest.raises(IndexError, match="dask objects"):
        x.vindex[some[some > 4], some[some > 4]]
