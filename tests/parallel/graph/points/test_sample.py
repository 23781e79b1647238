"""Cubes around points: equal to those of NumPy, within the array and beyond its ends."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.arrays.samples.random_cases import random_array
from tests.counting import CountingStore
from tests.covering import for_each, seeds
from tests.storage.latency import FarStore
from zarrdask.errors import NodeTypeError, SelectionError
from zarrdask.storage.memory import MemoryStore


def expected_cubes(values, points, lengths, ends):
    """Return the cubes around points, of an array with margins."""
    margins = [
        (lengths[axis], lengths[axis]) if axis in lengths else (0, 0) for axis in range(values.ndim)
    ]
    if ends == "clip":
        padded = np.pad(values, margins, mode="edge")
    else:
        padded = np.pad(values, margins, constant_values=7)
    cubes = []
    for point in zip(*points.values(), strict=True):
        index, is_inside = [slice(None)] * values.ndim, True
        for axis, position in zip(points, point, strict=True):
            start = position % values.shape[axis] - lengths[axis] // 2
            is_inside &= start >= 0 and start + lengths[axis] <= values.shape[axis]
            index[axis] = slice(start + lengths[axis], start + 2 * lengths[axis])
        if is_inside or ends != "drop":
            cubes.append(padded[tuple(index)])
    return cubes


def check_random_case(seed):
    """Check the cubes of a random array, at once and by Dask."""
    rng = np.random.default_rng(seed)
    z, values = random_array(rng, min_dims=1)
    axes = [int(n) for n in np.flatnonzero(rng.integers(0, 2, z.ndim))] or [0]
    count = int(rng.integers(0, 6))
    points = {axis: rng.integers(-z.shape[axis], z.shape[axis], count) for axis in axes}
    lengths = {axis: int(rng.integers(1, 7)) for axis in axes}
    ends = ["pad", "clip", "drop"][rng.integers(3)]
    expected = expected_cubes(values, points, lengths, ends)
    found = zarrdask.sample(z, points, lengths, ends=ends)
    shape = tuple(lengths.get(axis, n) for axis, n in enumerate(z.shape))
    assert found.shape == (len(expected), *shape)
    with dask.config.set({"zarrdask.block-size": int(rng.integers(1, 2000))}):
        lazy = zarrdask.sample(zarrdask.from_zarr(z), points, lengths, ends=ends)
    assert (lazy.shape, lazy.dtype) == (found.shape, found.dtype)
    if expected:
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), found)


@pytest.mark.parametrize("seed", seeds(50))
def test_cubes_of_random_arrays(seed):
    check_random_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 1050, 100))
def test_cubes_of_many_random_arrays(first):
    for seed in range(first, first + 100):
        check_random_case(seed)


def test_cubes_of_several_variables():
    t = zarrdask.create_array({}, shape=(3, 8, 9), dtype="f4", dimension_names=("t", "y", "x"))
    h = zarrdask.create_array({}, shape=(8, 9), dtype="i4", dimension_names=("y", "x"))
    t[...], h[...] = 2, 3
    points = {"y": [1, 5, 7], "x": [0, 4, 8]}
    cubes = zarrdask.sample({"t": t, "h": h}, points, {"x": 3})
    assert {name: each.shape for name, each in cubes.items()} == {
        "t": (3, 3, 1, 3),
        "h": (3, 1, 3),
    }
    assert len(zarrdask.sample({"t": t, "h": h}, points, 3, ends="drop")["h"]) == 1


def test_large_cubes_decode_each_chunk_once():
    store = CountingStore(MemoryStore())
    z = zarrdask.create_array(store, shape=(60, 60), dtype="i4", chunks=(10, 10))
    z[...] = np.arange(3600).reshape(60, 60)
    store.reads.clear()
    points = np.random.default_rng(0).integers(10, 50, (40, 2))
    cubes = zarrdask.sample(z, points, 11)
    assert {*store.reads.values()} == {1}
    np.testing.assert_array_equal(cubes[:, 5, 5], points @ [60, 1])


@for_each("join", ["concat", "stack"])
@for_each("far", [False, True])
def test_cubes_of_concatenations_decode_each_chunk_once(far, join):
    parts, stores = [], []
    for number in range(3):
        stores.append(FarStore(seconds=0) if far else CountingStore(MemoryStore()))
        z = zarrdask.create_array(stores[-1], shape=(12, 20), dtype="i4", chunks=(5, 6))
        z[...] = np.arange(240).reshape(12, 20) + 1000 * number
        parts.append(z)
    whole = zarrdask.concat(parts) if join == "concat" else zarrdask.stack(parts)
    values = (np.concatenate if join == "concat" else np.stack)([z[...] for z in parts])
    for store in stores:
        store.clear() if far else store.reads.clear()
    points = np.random.default_rng(0).integers(0, whole.shape, (20, whole.ndim))
    lengths = dict(enumerate([9, 9] if join == "concat" else [2, 7, 9]))
    cubes = zarrdask.sample(whole, points, lengths, ends="clip")
    for store in stores:
        keys = store.keys if far else [*store.reads.elements()]
        assert len({*keys}) == len(keys) > 0
    expected = expected_cubes(values, dict(enumerate(points.T)), lengths, "clip")
    np.testing.assert_array_equal(cubes, expected)


def test_errors_name_the_argument():
    z = zarrdask.create_array({}, shape=(6, 8), dtype="i4", dimension_names=("y", "x"))
    for points, size, key in [
        ([1, 2], 1, "points"),
        ({"y": [1], "x": [1, 2]}, 1, "points"),
        ({"y": 1}, 1, "points"),
        ({"y": [1], 0: [1]}, 1, "two positions along one axis"),
        ({"z": [1]}, 1, "points"),
        ({"y": [6]}, 1, r"points\['y'\]"),
        ({"y": [0.5]}, 1, "points"),
        ({"y": [1]}, 0, "size"),
        ({"y": [1]}, {"x": 2}, "size"),
    ]:
        with pytest.raises(SelectionError, match=key):
            zarrdask.sample(z, points, size)
    for wrong in (da.ones(3), zarrdask.from_zarr(z) + 1, [z]):
        with pytest.raises(NodeTypeError, match="arrays"):
            zarrdask.sample(wrong, {0: [1]})


def test_the_requests_of_several_arrays_are_in_flight_together():
    store = FarStore(seconds=0.02)
    group = zarrdask.create_group(store)
    arrays = {
        name: group.create_array(name, shape=(40, 40), dtype="i4", chunks=(20, 20))
        for name in "abc"
    }
    for number, z in enumerate(arrays.values()):
        z[...] = np.arange(1600).reshape(40, 40) + number
    points = np.random.default_rng(0).integers(0, 40, (30, 2))
    for size in (1, 9):  # points, and regions
        store.clear()
        cubes = zarrdask.sample(arrays, points, size, ends="clip")
        assert store.calls == ["get"] * 12
        assert (store.rounds, store.most) == (1, 12)
        for number, values in enumerate(cubes.values()):
            centres = values[:, size // 2, size // 2]
            np.testing.assert_array_equal(centres, points @ [40, 1] + number)


def test_stored_and_lazy_arrays_are_sampled_in_one_call():
    z = zarrdask.create_array({}, shape=(9,), dtype="i4", chunks=(4,))
    z[...] = np.arange(9)
    found = zarrdask.sample({"b": zarrdask.from_zarr(z), "a": z}, {0: [8, 1]}, 2)
    assert list(found) == ["b", "a"]
    assert isinstance(found["b"], da.Array)
    assert found["b"].compute().tolist() == found["a"].tolist() == [[7, 8], [0, 1]]
