"""Rectilinear grids."""

import pickle
from dataclasses import FrozenInstanceError
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import selections
from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.grids.axis import Even
from zarrdask.formats.grids.chunk_grid import GRIDS, parse_grid
from zarrdask.formats.grids.rectilinear import (
    MAX_LENGTHS,
    RectilinearGrid,
    expand,
    make_grid,
    parse_runs,
    render_runs,
    trim_last_run,
)
from zarrdask.formats.grids.regular import RegularGrid


@st.composite
def grids(draw, max_dims=3):
    """A grid, and its lengths as lists that reach beyond the end."""
    shape = tuple(draw(st.lists(st.integers(0, 20), max_size=max_dims)))
    lengths = tuple(draw(selections.lengths(size)) for size in shape)
    return RectilinearGrid(shape, lengths), lengths


def met(lengths, size):
    """Return those of an axis' chunks that meet the array."""
    starts = accumulate(lengths, initial=0)
    return [n for n, start in zip(lengths, starts, strict=False) if start < size]


@given(grids())
def test_chunks_lie_one_after_the_other(case):
    grid, lengths = case
    axes = [met(axis, size) for axis, size in zip(lengths, grid.shape, strict=True)]
    assert grid.counts == tuple(map(len, axes))
    assert list(grid.indices()) == list(product(*(range(len(axis)) for axis in axes)))
    assert grid.size == len(list(grid.indices()))
    for index in grid.indices():
        assert grid.shape_of(index) == tuple(a[i] for a, i in zip(axes, index, strict=True))
        starts = tuple(sum(a[:i]) for a, i in zip(axes, index, strict=True))
        assert grid.start(index) == starts
    assert grid.start(grid.counts) == tuple(map(sum, axes))
    if grid.size:
        assert grid.chunk_shape == tuple(map(max, axes))


@given(grids())
def test_axes_are_even_or_have_boundaries(case):
    grid, _ = case
    for number, (axis, count, size) in enumerate(
        zip(grid.axes, grid.counts, grid.shape, strict=True)
    ):
        index = [0] * len(grid.shape)
        for i in range(count + 1):
            index[number] = i
            start = grid.start(tuple(index))[number]
            assert start == axis.start(i)
        if not isinstance(axis, Even):
            assert axis.boundaries.dtype == np.int64
            assert not axis.boundaries.flags.writeable
            assert axis.boundaries[-1] >= size
    assert grid.is_regular == all(isinstance(axis, Even) for axis in grid.axes)


@given(grids())
def test_a_grid_is_what_its_document_says(case):
    grid, lengths = case
    document = grid.to_json()
    assert document["name"] == "rectilinear"
    result = parse_grid(document, grid.shape)
    assert result == grid
    assert hash(result) == hash(grid)
    plain = {"kind": "inline", "chunk_shapes": [list(axis) for axis in lengths]}
    assert parse_grid({"name": "rectilinear", "configuration": plain}, grid.shape) == grid
    assert pickle.loads(pickle.dumps(grid)) == grid


@given(grids(), st.data())
def test_resizing_keeps_chunks_that_are_in_both(case, data):
    grid, _ = case
    shape = tuple(data.draw(st.integers(0, 40)) for _ in grid.shape)
    result = grid.resize(shape)
    assert result.shape == shape
    both = zip(grid.counts, result.counts, strict=True)
    for index in product(*(range(min(a, b)) for a, b in both)):
        assert result.shape_of(index) == grid.shape_of(index)
        assert result.start(index) == grid.start(index)
    assert result.resize(shape) == result
    # Also if an axis was shorter meanwhile.
    longer = tuple(map(max, shape, grid.shape))
    again, never = result.resize(longer), grid.resize(longer)
    assert again.counts == never.counts
    assert {again.shape_of(i) == never.shape_of(i) for i in never.indices()} <= {True}


@for_each(
    ("size", "lengths"),
    [
        # Longer: chunks of the last length, after those that are declared.
        (30, (10, 4, 4, 4, 4, 4)),
        (15, (10, 4, 4)),
        (14, (10, 4)),
        # Shorter: all stay declared.
        (11, (10, 4)),
        (10, (10, 4)),
        (3, (10, 4)),
        (0, (10, 4)),
    ],
)
def test_an_axis_of_another_length_has_these_chunks(size, lengths):
    assert RectilinearGrid((14,), ((10, 4),)).resize((size,)).chunk_lengths == (lengths,)


def test_chunks_declared_outside_come_first_when_an_axis_grows():
    grid = RectilinearGrid((3,), ((3, 5, 2),))
    assert grid.counts == (1,)
    assert grid.resize((9,)).chunk_lengths == ((3, 5, 2),)
    assert grid.resize((12,)).chunk_lengths == ((3, 5, 2, 2),)


def test_an_axis_without_chunks_grows_by_one():
    grid = RectilinearGrid((0, 4), ((), (1, 3)))
    assert (grid.counts, grid.size, list(grid.indices())) == ((0, 2), 0, [])
    assert grid.to_json()["configuration"]["chunk_shapes"] == [[], [1, 3]]
    assert grid.resize((0, 4)) == grid
    assert grid.resize((5, 4)).chunk_lengths == (5, (1, 3))


def test_an_axis_that_grows_by_too_many_chunks_is_an_error():
    with pytest.raises(UnsupportedError, match=str(MAX_LENGTHS)):
        RectilinearGrid((3,), ((2, 1),)).resize((10**12,))


@for_each(
    ("size", "lengths", "plain"),
    [
        (12, (4, 4, 4), 4),
        (10, (4, 4, 4), 4),
        (10, (4, 4, 4, 4, 4), 4),
        (10, (4, 4, 2), (4, 4, 2)),
        (10, (2, 4, 4, 4), (2, 4, 4)),
        (2, (2, 4, 4), (2, 4)),
        (1, (7,), 7),
    ],
)
def test_equal_grids_have_one_form(size, lengths, plain):
    grid = RectilinearGrid((size,), (lengths,))
    assert grid.chunk_lengths == (plain,)
    assert grid == RectilinearGrid((size,), (plain,))


def test_a_grid_is_no_list_of_millions_where_chunks_are_alike():
    grid = RectilinearGrid((10**15, 3), (1, (1, 2)))
    assert grid.counts == (10**15, 2)
    assert grid.start((10**14, 1)) == (10**14, 1)
    assert grid.to_json()["configuration"]["chunk_shapes"] == [1, [1, 2]]


@for_each(
    ("shape", "lengths"),
    [
        ((5,), ((2, 2),)),
        ((5,), ((),)),
        ((5,), ((5, 0),)),
        ((5,), ((6, -1),)),
        ((5,), (0,)),
        ((5,), ((True, 4),)),
        ((5,), ((2.0, 3),)),
        ((5,), (5, 5)),
        ((5, 5), (5,)),
        ((), (1,)),
        ((5,), ((2**62, 2**62),)),
    ],
)
def test_lengths_that_do_not_fit_are_an_error(shape, lengths):
    with pytest.raises(MetadataError) as caught:
        RectilinearGrid(shape, lengths)
    assert caught.value.key == "chunk_shapes"


def test_a_grid_cannot_be_changed():
    grid = RectilinearGrid((4,), ((1, 3),))
    with pytest.raises(FrozenInstanceError):
        grid.shape = (5,)
    with pytest.raises(ValueError, match="read-only"):
        grid.axes[0].boundaries[1] = 2


def test_it_is_known_by_its_name():
    assert GRIDS.find("rectilinear") is RectilinearGrid


@for_each(
    ("shape", "lengths", "chunk_shape"),
    [
        ((10,), ((4, 4, 2),), (4,)),
        ((10,), ((10,),), (10,)),
        ((10,), ((4, 4, 4),), (4,)),
        ((10, 3), ((4, 4, 2), 2), (4, 2)),
        ((0, 3), ((), (3,)), (1, 3)),
        ((), (), ()),
    ],
)
def test_chunks_as_dask_has_them_may_be_regular(shape, lengths, chunk_shape):
    assert make_grid(shape, lengths) == RegularGrid(shape, chunk_shape)


@for_each(
    ("lengths", "kept"),
    [
        ((4, 4, 8), (4, 4, 8)),
        ((2, 4, 4), (2, 4, 4)),
        ((4, 2, 4), (4, 2, 4)),
        ((4, 6), (4, 6)),
    ],
)
def test_chunks_of_different_lengths_are_kept(lengths, kept):
    assert make_grid((10,), (lengths,)) == RectilinearGrid((10,), (kept,))


def test_in_a_rectilinear_grid_no_chunk_is_longer_than_it_is_said():
    grid = make_grid((10, 10), ((4, 6), (4, 4, 2)))
    assert grid == RectilinearGrid((10, 10), ((4, 6), (4, 4, 2)))
    assert grid.shape_of((1, 2)) == (6, 2)


@for_each("lengths", [((4, 4),), ((0, 10),), ((),), ((5, 5), (5, 5))])
def test_chunks_that_do_not_fit_are_an_error(lengths):
    with pytest.raises(MetadataError):
        make_grid((10,), lengths)


# --------------------------------------------------------------------------------------------
# Runs of equal lengths


lists = st.lists(st.integers(1, 3), min_size=1, max_size=12).map(tuple)


@given(lists)
def test_what_is_rendered_is_parsed_to_the_same_lengths(lengths):
    assert expand([parse_runs(render_runs(lengths))]) == (lengths,)


@for_each(
    ("lengths", "text"),
    [
        ((16, 10), [16, 10]),
        ((2, 2, 2), [[2, 3]]),
        ((1, 1, 1, 3), [[1, 3], 3]),
        ((5, 5, 1), [5, 5, 1]),
        ((), []),
    ],
)
def test_three_equal_lengths_become_a_pair(lengths, text):
    assert render_runs(lengths) == text


@for_each(
    "value",
    [
        0,
        -1,
        True,
        2.0,
        "2",
        None,
        {},
        [0],
        [[2, 0]],
        [[0, 2]],
        [[2]],
        [[2, 3, 4]],
        [[2, [3]]],
        [2**63],
    ],
)
def test_other_things_are_no_lengths(value):
    with pytest.raises(MetadataError) as caught:
        parse_runs(value)
    assert caught.value.key == "chunk_shapes"


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=5), st.data())
def test_what_is_needed_reaches_as_far_as_the_axis(runs, data):
    size = data.draw(st.integers(0, sum(n * times for n, times in runs)))
    [before] = expand([runs])
    [result] = expand([trim_last_run(runs, size)])
    if isinstance(result, int):
        assert set(before) == {result}
    else:
        assert sum(result) >= size
        assert before[: len(result)] == result
        assert set(before[len(result) :]) <= {result[-1]}


def test_an_endless_run_costs_nothing():
    assert expand([trim_last_run([(1, 10**12)], 7)]) == (1,)
    assert expand([trim_last_run([(3, 1), (1, 10**12)], 7)]) == ((3, 1, 1, 1, 1),)


@pytest.mark.parametrize(
    "axes",
    [[[(1, 10**12), (2, 1)]], [[(1, MAX_LENGTHS), (2, 1)]], [[(1, MAX_LENGTHS)], [(1, 1)]]],
)
def test_too_many_lengths_are_an_error_and_no_memory(axes):
    with pytest.raises(UnsupportedError) as caught:
        expand(axes)
    assert caught.value.key == "chunk_shapes"
    assert caught.value.found > MAX_LENGTHS


@pytest.mark.parametrize("chunk_shapes", [[], [2], [2, 2, 2]])
def test_lengths_for_another_number_of_axes_are_an_error(chunk_shapes):
    with pytest.raises(MetadataError, match="chunk_shapes"):
        RectilinearGrid.from_configuration({"kind": "inline", "chunk_shapes": chunk_shapes}, (4, 6))
