"""Selections by lists, points, masks and blocks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests import selections
from tests.arrays.nodes.stores import counting, filled
from tests.covering import for_each
from tests.documents import named, same, sharding
from zarrdask import create_array
from zarrdask.errors import (
    SelectionError,
)


@given(selections.stored_arrays(), st.data())
def test_outer_reads_are_numpys(case, data):
    z, expected = case
    index = data.draw(selections.outer(z.shape))
    same(z.oindex[index], selections.take_outer(expected, index)[0])


@given(selections.stored_arrays(), st.data())
def test_outer_writes_are_numpys(case, data):
    z, expected = case
    index = data.draw(selections.outer(z.shape))
    found, grid = selections.take_outer(expected, index)
    value = (np.arange(found.size).reshape(found.shape) + 50) % 200
    if all(len(set(axis.ravel())) == axis.size for axis in grid):
        expected[grid] = value.reshape(expected[grid].shape)
    else:
        value = 99
        expected[grid] = value
    z.oindex[index] = value
    same(z[...], expected)


@given(selections.stored_arrays(min_dims=1, min_side=1), st.data())
def test_pointwise_reads_and_writes_are_numpys(case, data):
    z, expected = case
    index = data.draw(selections.points(z.shape))
    same(z.vindex[index], expected[index])
    # Written one after another: of a place that is met twice, the last value stays.
    value = (np.arange(index[0].size).reshape(index[0].shape) + 50) % 200
    z.vindex[index] = value
    expected[index] = value
    same(z[...], expected)


def test_points_of_shards_that_are_stored_transposed():
    codecs = [named("transpose", order=[1, 0]), sharding((3, 2))]
    z = create_array({}, shape=(6, 8), chunks=(4, 6), dtype="i4", codecs=codecs)
    z[...] = expected = np.arange(48).reshape(6, 8)
    same(z.vindex[[0, 5, 3], [7, 1, 2]], expected[[0, 5, 3], [7, 1, 2]].astype("i4"))


@given(selections.stored_arrays(min_dims=1), st.data())
def test_mask_reads_and_writes_are_numpys(case, data):
    z, expected = case
    flat = data.draw(st.lists(st.booleans(), min_size=z.size, max_size=z.size))
    mask = np.array(flat, bool).reshape(z.shape)
    same(z.vindex[mask], expected[mask])
    same(z[mask], expected[mask])
    value = np.arange(mask.sum()) + 50
    z[mask] = value
    expected[mask] = value
    same(z[...], expected)
    z[mask] = 3
    expected[mask] = 3
    same(z[...], expected)


def cumulated(lengths):
    """Return where lengths begin, and where the last one ends."""
    return list(itertools.accumulate(lengths, initial=0))


@given(selections.stored_arrays(min_dims=1, min_side=1), st.data())
def test_blocks_are_the_stored_units(case, data):
    z, expected = case
    index, region = [], []
    for size, lengths in zip(z.shape, z.shards or z.chunks, strict=True):
        edges = [*range(0, size, lengths), size] if isinstance(lengths, int) else cumulated(lengths)
        count = len(edges) - 1
        if data.draw(st.booleans()):
            at = data.draw(st.integers(-count, count - 1))
            index.append(at)
            region.append(slice(edges[at % count], edges[at % count + 1]))
        else:
            start = data.draw(st.integers(0, count))
            stop = data.draw(st.integers(start, count + 1))
            index.append(slice(start, stop))
            region.append(slice(edges[start], edges[min(stop, count)]))
    index, region = tuple(index), tuple(region)
    same(z.blocks[index], expected[region])
    z.blocks[index] = 77
    expected[region] = 77
    same(z[...], expected)


FANCY = [
    ([1, 0, 1],),
    (np.array([-1, 2]),),
    (np.array([True, False, True, False, False, False, True]),),
    ([1, 2], slice(1, 5)),
    (slice(None), [3, 1, 3]),
    (..., [0, -1]),
    ([0, 2], ...),
    ((0, 2), slice(None)),
    (slice(None), (3, 1)),
    (3, [1, 2]),
    ([1, 2], 3),
    ([0, 1, 2], [3, 2, 1]),
    (np.array([[0, 1], [2, 3]]), np.array([[4, 5], [6, 7]])),
    ([],),
]


@for_each("index", FANCY)
def test_lists_and_masks_in_brackets_mean_what_they_mean_in_numpy(index):
    z, values = filled()
    index = index if len(index) > 1 else index[0]
    numpys = np.array([], int) if isinstance(index, list) and not index else index
    same(z[index], values[numpys])
    z[index] = -5
    values[numpys] = -5
    same(z[...], values)


@for_each(
    "index",
    [
        ([0, 1], slice(None), [0, 1]),
        (0, slice(None), [0, 1]),
        ([[0, 1]], slice(None), 0),
        (None, [0]),
    ],
)
def test_mixtures_that_mean_something_else_in_numpy_are_refused_with_advice(index):
    z, _ = filled((3, 3, 3), (2, 2, 2))
    with pytest.raises(SelectionError, match=r"oindex|newaxis"):
        z[index]


@for_each("index", [slice(None, None, 2), slice(None, None, -1), slice(2, 0, -1), None, [0]])
def test_blocks_are_selected_by_integers_and_plain_slices_only(index):
    z, _ = filled()
    with pytest.raises(SelectionError):
        z.blocks[index]


def test_points_ask_for_each_chunk_once():
    z, values = filled()
    watched, store = counting(z)
    index = ([0, 6, 1, 0, 6], [0, 9, 1, 3, 8])
    same(watched.vindex[index], values[index])
    assert sorted(store.gets) == ["c/0/0", "c/2/2"]


def test_an_array_of_no_axes_by_points():
    z = create_array({}, shape=(), dtype="i4")
    z[...] = 5
    assert z.vindex[()].tolist() == 5


def test_masks_along_several_axes_are_an_error_that_says_what_to_write():
    z = zarrdask.create_array({}, shape=(4, 4), dtype="i4")
    values = np.arange(16).reshape(4, 4)
    z[...] = values
    mask = np.array([True, False, True, False])
    for index in ((mask, mask), (mask, [0, 1]), ([0, 1, 2], mask)):
        with pytest.raises(SelectionError, match=r"array\.oindex\[mask1, mask2\].*np\.nonzero"):
            z[index]
        with pytest.raises(SelectionError, match=r"array\.oindex\[mask1, mask2\]"):
            z[index] = 1
    np.testing.assert_array_equal(z.oindex[mask, mask], values[np.ix_(mask, mask)])
    pairs = np.nonzero(mask)[0], np.nonzero(mask)[0]
    np.testing.assert_array_equal(z.vindex[pairs], values[mask, mask])
