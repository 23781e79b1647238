"""Several arrays in one graph."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.delayed import Delayed

import zarrdask
from tests.covering import for_each
from tests.parallel.graph.counting import CountingStore
from zarrdask.errors import MetadataError
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(1.0, 121.0).reshape(12, 10)


@pytest.fixture(params=["sync", "threads"], autouse=True)
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield


@pytest.fixture
def x():
    return da.from_array(VALUES, chunks=4)


def test_a_mapping_of_names(x, place):
    assert (
        zarrdask.to_zarr({"a": x, "g/b": x + 1}, place, chunks=3, attributes={"unit": "K"}) is None
    )
    root = zarrdask.open_group(place)
    np.testing.assert_array_equal(root["a"][...], VALUES)
    np.testing.assert_array_equal(root["g/b"][...], VALUES + 1)
    for name in ("a", "g/b"):
        assert root[name].chunks == (3, 3)
        assert root[name].attrs["unit"] == "K"


def test_pairs_of_targets_and_arrays(x):
    root = zarrdask.create_group({})
    z = zarrdask.create_array({}, shape=VALUES.shape, dtype="f4", chunks=5)
    zarrdask.to_zarr([("a", x), (z, x * 2), ("b", np.arange(3))], root)
    np.testing.assert_array_equal(root["a"][...], VALUES)
    np.testing.assert_array_equal(root["b"][...], np.arange(3))
    np.testing.assert_array_equal(z[...], VALUES * 2)
    zarrdask.to_zarr((target, x) for target in [z])
    np.testing.assert_array_equal(z[...], VALUES)


def test_pairs_of_numbers_are_one_array():
    memory = {}
    zarrdask.to_zarr([(1, 2), (3, 4)], memory)
    np.testing.assert_array_equal(zarrdask.open_array(memory)[...], [[1, 2], [3, 4]])


def test_a_target_stands_before_its_array(x):
    z = zarrdask.create_array({}, shape=VALUES.shape, dtype="f8", chunks=5)
    with pytest.raises(MetadataError, match="the target comes first in each pair"):
        zarrdask.to_zarr([(x, z)])
    with pytest.raises(MetadataError, match="url: pass a URL to store the array at"):
        zarrdask.to_zarr([z, x])


@for_each("compute", [True, False])
def test_what_they_have_in_common_is_computed_once(compute):
    source = CountingStore()
    z = zarrdask.create_array(source, shape=VALUES.shape, dtype="f8", chunks=4)
    z[...] = VALUES
    calls = []

    def slowly(block):
        calls.append(1)
        return block * 2

    x = zarrdask.from_zarr(z, chunks="stored")
    y = x.map_blocks(slowly, dtype="f8", meta=VALUES[:0])
    source.reads.clear()
    task = zarrdask.to_zarr(
        {"a": y, "b": y + 1, "c": y.T.rechunk(5), "d": y.mean(axis=0), "e": x},
        target := MemoryStore(),
        compute=compute,
    )
    if not compute:
        assert isinstance(task, Delayed)
        assert calls == []
        task.compute()
    assert len(calls) == 9
    assert len(source.reads) == 9
    root = zarrdask.open_group(target)
    for name, expected in {
        "a": VALUES * 2,
        "b": VALUES * 2 + 1,
        "c": VALUES.T * 2,
        "d": (VALUES * 2).mean(axis=0),
        "e": VALUES,
    }.items():
        np.testing.assert_array_equal(root[name][...], expected)


def test_the_format_is_that_of_the_group(x):
    for zarr_format in (2, 3, "v3-draft"):
        store = MemoryStore()
        group = zarrdask.create_group(store, "g", zarr_format=zarr_format)
        zarrdask.to_zarr({"a": x}, group)
        assert zarrdask.open_array(store, "g/a").zarr_format == zarr_format
        zarrdask.to_zarr({"b": x}, zarrdask.open_group(store, "g"))
        assert zarrdask.open_array(store, "g/b").zarr_format == zarr_format
    store = MemoryStore()
    zarrdask.create_group(store, zarr_format=2)
    zarrdask.to_zarr({"a": x}, store)
    assert zarrdask.open_array(store, "a").zarr_format == 2
    zarrdask.to_zarr({"a": x}, other := MemoryStore(), zarr_format=2)
    assert zarrdask.open_array(other, "a").zarr_format == 2


def test_options_are_those_of_to_zarr(x):
    store = MemoryStore()
    zarrdask.to_zarr({"a": x, "b": x}, store, dimension_names=["t", "y"])
    zarrdask.to_zarr({"a": x[:5] * 2, "b": x[:5] * 3}, store, region={"t": slice(2, 7)})
    assert zarrdask.open_array(store, "b")[2:7].tolist() == (VALUES[:5] * 3).tolist()
    zarrdask.to_zarr({"a": x[:3], "b": x[:3]}, store, overwrite=True, grid="rectilinear")
    assert zarrdask.open_array(store, "a").shape == (3, 10)
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.to_zarr({"b": x}, store, mode="w-")


def test_nothing_is_written_if_one_of_them_can_not_be(x, place):
    store = MemoryStore()
    unknown = x[:, 0][x[:, 0] > 3]
    z = zarrdask.create_array({}, shape=3, dtype="f4")
    for arrays in (
        {"a": x, "b": unknown},
        {"a": x, "zarr.json": x},
        {"a": x, "a/b": x, "..": x},
        {"a": x, "/a/": x},
        [("a", x), (z, x)],
        [("a", x), (3, x)],
        [("a", x), (zarrdask.open_array(z.store), x[0, :3])],
    ):
        with pytest.raises(zarrdask.ZarrdaskError):
            zarrdask.to_zarr(arrays, store)
    assert list(store.list()) == []
    with pytest.raises(zarrdask.errors.MetadataError, match="a path in the group"):
        zarrdask.to_zarr({"a": x})
    with pytest.raises(zarrdask.errors.UnsupportedError, match="return_stored"):
        zarrdask.to_zarr({"a": x}, store, return_stored=True)
    assert list(store.list()) == []


def test_none_at_all():
    assert zarrdask.to_zarr({}, {}) is None
    assert zarrdask.to_zarr({}, {}, compute=False).compute() is None


def test_arrays_appear_when_they_are_complete(x):
    store = MemoryStore()
    task = zarrdask.to_zarr({"a": x, "g/b": x + 1}, store, commit="last", compute=False)
    assert list(store.list()) == []
    task.compute()
    task.compute()
    np.testing.assert_array_equal(zarrdask.open_array(store, "g/b")[...], VALUES + 1)


@pytest.mark.parametrize("compute", [True, False])
def test_arrays_are_replaced_by_what_is_computed_from_both(tmp_path, compute):
    first, second = VALUES, VALUES * 10
    zarrdask.to_zarr({"a": da.from_array(first), "b": da.from_array(second)}, tmp_path)
    a, b = (zarrdask.from_zarr(tmp_path, name, chunks=5) for name in "ab")
    task = zarrdask.to_zarr({"a": a + b, "b": a - b}, tmp_path, overwrite=True, compute=compute)
    if not compute:
        task.compute()
    root = zarrdask.open_group(tmp_path)
    np.testing.assert_array_equal(root["a"][...], first + second)
    np.testing.assert_array_equal(root["b"][...], first - second)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "zarr.json"]


def test_an_array_that_another_one_is_computed_from_is_not_replaced(x):
    store = MemoryStore()
    zarrdask.to_zarr({"a": x, "b": x}, store)
    arrays = {"a": x * 2, "b": zarrdask.from_zarr(store, "a") + 1}
    with pytest.raises(zarrdask.errors.NodeExistsError, match="computed from"):
        zarrdask.to_zarr(arrays, store, overwrite=True)
    np.testing.assert_array_equal(zarrdask.open_array(store, "b")[...], VALUES)


def test_errors_say_what_there_is(x):
    store = MemoryStore()

    def fail(block):
        raise RuntimeError

    y = x.map_blocks(fail, dtype="f8", meta=VALUES[:0])
    with pytest.raises(RuntimeError) as caught:
        zarrdask.to_zarr({"a": x, "b": y}, store)
    assert [note.split(": ")[0].rpartition("/")[2] for note in caught.value.__notes__] == ["a", "b"]
