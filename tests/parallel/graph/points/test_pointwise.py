"""Points of Dask arrays that read stored ones: the elements, each chunk once, few tasks."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.arrays.samples.random_cases import random_array
from tests.counting import CountingStore
from tests.covering import seeds
from zarrdask.storage.memory import MemoryStore


def expected_points(values, key):
    """Return what `vindex` gives: the axes of the points, then those of slices."""
    arrays = [axis for axis, entry in enumerate(key) if isinstance(entry, np.ndarray)]
    index = tuple(slice(None) if axis in arrays else entry for axis, entry in enumerate(key))
    left = [axis for axis, entry in enumerate(key) if not isinstance(entry, int)]
    values = np.moveaxis(values[index], [left.index(axis) for axis in arrays], range(len(arrays)))
    return values[tuple(np.broadcast_arrays(*(key[axis] for axis in arrays)))]


def check_random_case(seed):
    """Check points of a random array, by positions in arrays, integers and slices."""
    rng = np.random.default_rng(seed)
    z, values = random_array(rng, min_dims=1)
    shape = tuple(rng.integers(0, 6, rng.integers(1, 3)).tolist())
    key = []
    for axis, size in enumerate(z.shape):
        kind = 0 if axis == 0 else rng.integers(4)
        if kind == 3:
            key.append(int(rng.integers(-size, size)))
        elif kind == 2:
            key.append(slice(*sorted(rng.integers(0, size + 1, 2).tolist()), rng.integers(1, 3)))
        else:
            key.append(rng.integers(-size, size, shape[-1:] if rng.integers(2) else shape))
    blocks = [1, 3, -1, "auto"][rng.integers(4)]
    with dask.config.set({"zarrdask.block-size": int(rng.integers(1, 2000))}):
        x = zarrdask.from_zarr(z, chunks=blocks)
        found = x.vindex[tuple(key)]
        wanted = expected_points(values, key)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.compute(scheduler="sync"), wanted)
    points = tuple(rng.integers(-size, size, shape) for size in z.shape)
    np.testing.assert_array_equal(z.vindex[points], values[points])
    picks = [rng.integers(-size, size, rng.integers(0, 9)) for size in z.shape]
    np.testing.assert_array_equal(z.oindex[tuple(picks)], values[np.ix_(*picks)])


@pytest.mark.parametrize("seed", seeds(50))
def test_points_of_random_arrays(seed):
    check_random_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 1050, 100))
def test_points_of_many_random_arrays(first):
    for seed in range(first, first + 100):
        check_random_case(seed)


def test_points_and_cubes_in_two_processes(client, tmp_path):
    z = zarrdask.create_array(tmp_path / "z", shape=(40, 30), dtype="i4", chunks=(4, 5))
    z[...] = values = np.arange(1200).reshape(40, 30)
    rows, columns = np.random.default_rng(0).integers(3, 27, (2, 20, 15))
    lazy = [da.from_array(each, chunks=(7, 15)) for each in (rows, columns)]
    points = np.stack([rows.ravel(), columns.ravel()], axis=1)
    with dask.config.set({"zarrdask.block-size": 400}):
        x = zarrdask.from_zarr(z)
        for found in (x.vindex[rows, columns], x.vindex[tuple(lazy)]):
            result = found.compute(scheduler=client)
            np.testing.assert_array_equal(result, values[rows, columns])
        cubes = zarrdask.sample(x, points, 3).compute(scheduler=client)
    np.testing.assert_array_equal(cubes, zarrdask.sample(z, points, 3))


def stored(shape=(40, 30), chunks=(4, 5)):
    store = CountingStore(MemoryStore())
    z = zarrdask.create_array(store, shape=shape, dtype="i4", chunks=chunks)
    z[...] = np.arange(shape[0] * shape[1]).reshape(shape)
    store.reads.clear()
    return z, store


def test_each_chunk_with_points_is_decoded_once_and_no_other():
    z, store = stored()
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 20, 500), rng.integers(0, 30, 500)
    with dask.config.set({"zarrdask.block-size": 400}):
        points = zarrdask.from_zarr(z).vindex[rows, columns]
        np.testing.assert_array_equal(points.compute(), rows * 30 + columns)
    chunks = {key: n for key, n in store.reads.items() if key.startswith("c/")}
    assert len(chunks) == len({*zip(rows // 4, columns // 5, strict=True)})
    assert {*chunks.values()} == {1}


def test_the_graph_does_not_grow_with_the_points():
    z, _ = stored()
    x, rng = zarrdask.from_zarr(z), np.random.default_rng(0)
    keys = [tuple(rng.integers(0, n, count) for n in z.shape) for count in (100, 10_000)]
    few, many = (x.vindex[key] for key in keys)
    assert len(few.dask) == len(many.dask) == 2
    assert x.vindex[keys[0]].name == few.name != many.name


def test_the_blocks_of_many_points_are_limited():
    z, _ = stored()
    rows = np.arange(1000) % 40
    with dask.config.set({"zarrdask.block-size": 1000}):
        points = zarrdask.from_zarr(z).vindex[rows, rows % 30]
    assert points.chunks == ((250,) * 4,)
    np.testing.assert_array_equal(points.compute(), z.vindex[rows, rows % 30])


def test_dask_itself_selects_from_other_arrays_and_raises_its_errors():
    z, _ = stored()
    x = zarrdask.from_zarr(z)
    rows = np.array([3, 39])
    for index, error in [((rows + 9, rows), "out of bounds"), ((slice(3), slice(4)), "non-slice")]:
        with pytest.raises(IndexError, match=error):
            x.vindex[index]
    with pytest.raises(IndexError):
        x.vindex[None, rows, rows % 30]
    np.testing.assert_array_equal((x + 1).vindex[rows, rows % 30], z.vindex[rows, rows % 30] + 1)
    x[0] = 5
    assert x.vindex[[0, 1], [7, 7]].compute().tolist() == [5, 37]
    assert isinstance(x.vindex[rows, rows % 30], da.Array)
