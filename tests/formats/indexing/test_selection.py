"""Selections, cut at chunk boundaries, mean what NumPy means."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import selections
from tests.axes import axes_of, axis_of
from tests.covering import for_each
from zarrdask.errors import SelectionError
from zarrdask.formats.indexing.projection import Points, numpy_index, permute, project
from zarrdask.formats.indexing.selection import (
    basic,
    is_basic,
    is_integer,
    pick_size,
    pointwise,
    whole_region,
)

shape_and_chunks = selections.shapes.flatmap(
    lambda shape: st.tuples(st.just(shape), st.tuples(*(st.integers(1, 5) for _ in shape)))
)


def padded(array, chunks):
    """Return an array with its edge chunks filled up, as chunks are stored."""
    if not array.ndim:
        return array
    widths = [(0, -n % c) for n, c in zip(array.shape, chunks, strict=True)]
    return np.pad(array, widths, constant_values=-1)


def gather(array, request, chunks, shape):
    """Take a request from an array chunk by chunk; every place of the result exactly once."""
    stored = padded(array, chunks)
    out = np.zeros(shape, array.dtype)
    filled = np.zeros(shape, int)
    cuts = project(request, axes_of(chunks, array.shape))
    assert len(set(cuts.indices)) == len(cuts.indices)
    for index, inside, outside in zip(*cuts, strict=True):
        chunk = stored[tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks, strict=True))]
        out[outside] = chunk if inside is None else chunk[numpy_index(inside)]
        filled[outside] += 1
    assert (filled == 1).all()
    return out


@given(shape_and_chunks, st.data())
def test_a_basic_selection_cut_into_chunks_is_complete_and_disjoint(layout, data):
    shape, chunks = layout
    index = data.draw(selections.basic(shape))
    array = np.arange(math.prod(shape)).reshape(shape)
    selection = basic(index, shape)
    result = gather(array, selection.picks, chunks, selection.shape)
    expected = array[index]
    assert np.array_equal(result[selection.finish], expected)
    assert result[selection.finish].shape == np.shape(expected)


@given(shape_and_chunks, st.data())
def test_an_outer_selection_cut_into_chunks_is_complete_and_disjoint(layout, data):
    shape, chunks = layout
    index = data.draw(selections.outer(shape))
    array = np.arange(math.prod(shape)).reshape(shape)
    selection = basic(index, shape, outer=True)
    result = gather(array, selection.picks, chunks, selection.shape)
    expected, _ = selections.take_outer(array, index)
    assert np.array_equal(result[selection.finish], expected)


@given(selections.shapes.filter(all).filter(len), st.data())
def test_points_cut_into_chunks_are_complete_and_disjoint(shape, data):
    chunks = tuple(data.draw(st.integers(1, 5)) for _ in shape)
    index = data.draw(selections.points(shape))
    array = np.arange(math.prod(shape)).reshape(shape)
    coordinates = pointwise(index, shape)
    request = Points(tuple(c.reshape(-1) for c in coordinates))
    result = gather(array, request, chunks, (coordinates[0].size,))
    assert np.array_equal(result.reshape(coordinates[0].shape), array[index])


@given(st.integers(0, 40), st.integers(1, 12), st.data())
def test_parts_of_a_slice_are_its_elements_in_order(size, chunk, data):
    index = data.draw(st.slices(size))
    taken = range(*index.indices(size))
    [pick] = basic(index, (size,)).picks
    result = axis_of(chunk, size).parts(pick)
    elements = [p.chunk * chunk + n for p in result for n in range(chunk)[p.inside]]
    assert elements == sorted(taken)
    assert [n for p in result for n in range(len(taken))[p.outside]] == list(range(len(taken)))
    assert [p.chunk for p in result] == sorted({n // chunk for n in taken})
    for p in result:
        every = len(range(chunk)[p.inside]) == chunk
        assert p.whole == every if pick.step == 1 else every or not p.whole


@given(st.integers(1, 40), st.integers(1, 12), st.data())
def test_parts_of_positions_are_those_positions(size, chunk, data):
    taken = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=20)), np.intp)
    outcome = axis_of(chunk, size).parts(taken)
    result = np.full(len(taken), -1)
    for p in outcome:
        assert (result[p.outside] == -1).all()
        result[p.outside] = p.chunk * chunk + p.inside
    assert result.tolist() == taken.tolist()
    assert [p.chunk for p in outcome] == sorted({int(n) // chunk for n in taken})


def test_a_part_knows_whether_it_is_the_whole_chunk():
    assert [p.whole for p in axis_of(4, 10).parts(slice(2, 10, 1))] == [False, True, False]
    assert [p.whole for p in axis_of(4, 8).parts(slice(0, 8, 2))] == [False, False]


def test_planning_costs_the_chunks_that_are_met_not_those_there_are():
    cuts = project(
        (slice(10**12, 10**12 + 3, 1), slice(5, 6, 1)), axes_of((2, 10**6), (10**13, 10**7))
    )
    assert cuts.indices == [(5 * 10**11, 0), (5 * 10**11 + 1, 0)]


@given(shape_and_chunks, st.data())
def test_a_permuted_request_takes_the_same_from_the_permuted_array(layout, data):
    shape, _ = layout
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    array = np.arange(math.prod(shape)).reshape(shape)
    request = basic(data.draw(selections.boxes(shape)), shape).picks
    there = permute(request, axes)
    assert np.array_equal(array[request].transpose(axes), array.transpose(axes)[there])


def test_the_whole_region_is_everything():
    assert whole_region((3, 0)) == (slice(0, 3, 1), slice(0, 0, 1))
    assert whole_region(()) == ()


@pytest.mark.parametrize(
    ("pick", "size"), [(slice(0, 7, 2), 4), (slice(3, 3, 1), 0), (np.array([1, 1, 5]), 3)]
)
def test_the_size_of_a_pick(pick, size):
    assert pick_size(pick) == size


@for_each("index", [3, -4, (0, 3), (0, -4), (slice(None), 3), (0, 0, 0)])
def test_a_basic_index_out_of_bounds_is_an_index_error(index):
    with pytest.raises(IndexError) as caught:
        basic(index, (3, 3))
    assert isinstance(caught.value, SelectionError)
    with pytest.raises(IndexError):
        np.empty((3, 3))[index]


def test_an_index_error_names_index_axis_and_size():
    with pytest.raises(SelectionError, match="index 9 is out of bounds for axis 1 with size 3"):
        basic((0, 9), (3, 3))


@for_each("index", [(..., ...), (0, ..., ...), "x", 1.5, [0, 1], (0, [1]), True])
def test_what_is_no_basic_index_is_an_index_error(index):
    with pytest.raises(SelectionError):
        basic(index, (3, 3))


@pytest.mark.parametrize("index", [slice(0, 2, 0), slice("a", None), slice(1.5, None)])
def test_a_slice_that_python_refuses_is_an_index_error(index):
    with pytest.raises(SelectionError):
        basic(index, (3, 3))


@for_each(
    ("index", "answer"),
    [
        (0, True),
        (np.int8(1), True),
        ((slice(None), ..., None), True),
        ((), True),
        ([0], False),
        (True, False),
        (np.True_, False),
        (np.array([0]), False),
        ("name", False),
        (1.0, False),
    ],
)
def test_basic_indices_are_told_from_others(index, answer):
    assert is_basic(index) is answer


@for_each(
    "index",
    [
        [3],
        [-4],
        [0, 9],
        [0.5],
        ["a"],
        [[0, 1]],
        [True, False],
        [True] * 4,
        (0, 0, 0),
        None,
        (slice(None), [3]),
        np.array([2**63], "u8"),
    ],
)
def test_an_outer_index_that_does_not_fit_is_an_index_error(index):
    with pytest.raises(SelectionError):
        basic(index, (3, 3), outer=True)


@for_each(
    "index",
    [
        ([3], [0]),
        ([0], [-4]),
        ([0],),
        ([0], [0], [0]),
        ([0, 1], [0, 1, 2]),
        ([0.5], [0]),
        ([True], [0]),
        (slice(None), [0]),
        np.ones((2, 3), bool),
        np.ones((3, 4), bool),
        np.ones(3, bool),
    ],
)
def test_points_that_do_not_fit_are_an_index_error(index):
    with pytest.raises(SelectionError):
        pointwise(index, (3, 3))


def test_unsigned_positions_are_positions():
    [result] = pointwise((np.array([2, 0], "u8"),), (3,))
    assert result.tolist() == [2, 0]


def test_a_mask_of_the_arrays_shape_is_its_true_points():
    mask = np.array([[True, False], [True, True]])
    assert [c.tolist() for c in pointwise(mask, (2, 2))] == [[0, 1, 1], [0, 0, 1]]


def test_a_duration_is_no_integer():
    assert [is_integer(each) for each in (3, np.int8(3), np.timedelta64(3, "h"))] == [
        True,
        True,
        False,
    ]
