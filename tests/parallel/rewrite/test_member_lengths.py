"""Lengths that are given by the names of dimensions."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.parallel.rewrite.arrays import check_group, quietly


@pytest.fixture
def climate():
    """A group of arrays with named dimensions, one of them in shards."""
    root = zarrdask.create_group({})
    root.create_array("time", shape=8, dtype="i4", chunks=2, dimension_names=("time",))
    names = {"dtype": "i4", "dimension_names": ("time", "lat")}
    root.create_array("t", shape=(8, 6), chunks=(1, 6), **names)[...] = np.arange(48).reshape(8, 6)
    root.create_array("a/t", shape=(8, 6), chunks=(1, 2), shards=(2, 6), **names)[...] = 7
    root.create_array("plain", shape=(4,), dtype="i4", chunks=2)
    return root


def chunks_of(plan):
    new = {path: plan[path].target.metadata for path in plan}
    return {path: (each.read_grid.chunk_shape, each.grid.chunk_shape) for path, each in new.items()}


def test_each_array_of_a_group_takes_the_dimensions_it_has(climate):
    plan = zarrdask.rechunk(climate, {}, chunks={"time": -1, "lat": 3})
    expected = {"a/t": (8, 3), "plain": (2,), "t": (8, 3), "time": (8,)}
    assert chunks_of(plan) == {path: (chunks, chunks) for path, chunks in expected.items()}
    check_group(quietly(plan), climate)
    plan = zarrdask.rechunk(climate, {}, chunks={"lat": 3})
    assert chunks_of(plan)["t"][0] == (1, 3)
    assert chunks_of(plan)["time"][0] == (2,)


def test_paths_come_before_dimensions_and_these_before_the_rest(climate):
    chunks = {"time": 4, "/time": 8, "a/t": {"lat": 6}, None: 4}
    plan = zarrdask.rechunk(climate, {}, chunks=chunks)
    found = {path: shape for path, (shape, _) in chunks_of(plan).items()}
    assert found == {"a/t": (1, 6), "plain": (4,), "t": (4, 6), "time": (8,)}
    plan = zarrdask.rechunk(climate, {}, shards={"lat": -1, None: 4})
    shards = {path: shape for path, (_, shape) in chunks_of(plan).items()}
    assert shards == {"a/t": (2, 6), "plain": (4,), "t": (1, 6), "time": (4,)}


@pytest.mark.parametrize("key", ["chunks", "shards"])
@pytest.mark.parametrize("verb", [zarrdask.rechunk, zarrdask.copy])
def test_a_name_that_is_neither_a_dimension_nor_an_array_is_refused(climate, verb, key):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"'lon'.*\['time', 'lat'\].*'/a/t'"):
        verb(climate, {}, **{key: {"lon": 3}})


def test_an_array_is_rewritten_by_the_names_of_its_dimensions(climate):
    array = climate["t"]
    for chunks in ({"time": -1}, {0: -1}, (-1, None), {"time": 8, "lat": None}):
        plan = zarrdask.rechunk(array, {}, chunks=chunks)
        assert plan.target.metadata.chunk_shape == (8, 6)
    both = zarrdask.rechunk(array, {}, chunks={"lat": 4}, shards={"lat": -1}).target.metadata
    assert (both.read_grid.chunk_shape, both.grid.chunk_shape) == ((1, 4), (1, 8))
    with pytest.raises(zarrdask.errors.SelectionError, match=r"chunks.*'lon'"):
        zarrdask.rechunk(array, {}, chunks={"lon": 3})


def test_a_dask_array_is_rewritten_by_the_names_of_its_dimensions():
    x = da.zeros((8, 6), chunks=(2, 3))
    plan = zarrdask.rechunk(x, {}, chunks={"time": -1}, dimension_names=("time", "lat"))
    assert plan.target.metadata.chunk_shape == (8, 3)


def test_a_copy_takes_chunks_by_dimension(climate):
    target = {}
    zarrdask.copy(climate, target, chunks={"time": 4}, shards={"time": 8}, progress=False)
    copied = zarrdask.open_group(target)
    assert (copied["t"].chunks, copied["t"].shards) == ((4, 6), (8, 6))
    assert (copied["time"].chunks, copied["time"].shards) == ((4,), (8,))
    np.testing.assert_array_equal(copied["t"][...], climate["t"][...])
    assert zarrdask.copy(climate["t"], {}, chunks={"lat": 2}, dry_run=True)
