"""Copies and comparisons of a region of an array, or of the arrays of a group."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import SelectionError, ZarrdaskError
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(10 * 7, dtype="i4").reshape(10, 7)


@for_each(
    ("options", "region"),
    [
        ({"chunks": (3, 2)}, (slice(2, 9), slice(1, None))),
        ({"chunks": (3, 2), "shards": (6, 4)}, {"y": slice(5)}),
        ({"chunks": ((1, 2, 7), (7,))}, {"y": slice(2, 4), "x": slice(6, 7)}),
        ({"chunks": (3, 2), "zarr_format": 2}, {"x": slice(3, 3)}),
    ],
)
def test_a_region_of_an_array_is_copied(options, region):
    z = zarrdask.create_array({}, shape=(10, 7), dtype="i4", dimension_names=("y", "x"), **options)
    z[...] = VALUES
    store = {}
    zarrdask.copy(z, store, region=region, scheduler="sync")
    index = region if isinstance(region, tuple) else tuple(map(region.get, "yx", [slice(None)] * 2))
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], VALUES[index])
    assert zarrdask.open_array(store).dimension_names == ("y", "x")


def test_chunks_that_are_not_stored_are_not_read_and_not_stored():
    store = MemoryStore({})
    z = zarrdask.create_array(store, shape=(40, 40), dtype="i4", chunks=(4, 4))
    z[21:23, 30:32] = 5
    target = {}
    report = zarrdask.copy(z, target, region=(slice(18, None), slice(2, None)), scheduler="sync")
    assert report.arrays[0].objects == zarrdask.open_array(target).nchunks_stored() == 2
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], z[18:, 2:])


def test_all_arrays_of_a_group_that_have_the_dimension_are_cut():
    root = zarrdask.create_group({})
    for name, shape, dims in (("t", (6, 4), ("time", "x")), ("x", (4,), ("x",)), ("n", (), ())):
        root.create_array(name, shape=shape, dtype="i4", dimension_names=dims)
    target = {}
    zarrdask.copy(root, target, region={"time": slice(1, 3)}, scheduler="sync")
    shapes = {name: array.shape for name, array in zarrdask.open_group(target).arrays()}
    assert shapes == {"t": (2, 4), "x": (4,), "n": ()}
    for region in {"tim": slice(3)}, {"time": slice(7)}, (slice(2),), {"time": 3}:
        for act in zarrdask.copy, zarrdask.compare:
            with pytest.raises(ZarrdaskError, match="region"):
                act(root, {} if act is zarrdask.copy else root, region=region)
    with pytest.raises(SelectionError, match="by reference"):
        zarrdask.copy(root, {}, by="reference", region={"time": slice(1, 3)})


def test_only_the_elements_of_a_region_are_compared():
    one, other = (
        zarrdask.create_array({}, shape=(10, 7), dtype="i4", chunks=n) for n in (3, (2, 7))
    )
    one[...] = other[...] = VALUES
    other[9, 6] = -1
    same = zarrdask.compare(one, other, region=(slice(0, 9),))
    assert (same.ok, same.arrays[0].size) == (True, 63)
    assert zarrdask.compare(one, other, region=(slice(8, None),)).arrays[0].first == (9, 6)
