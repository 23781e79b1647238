"""Requests cut at the boundaries of chunks."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import selections
from tests.axes import axes_of, axis_of
from zarrdask.formats.indexing.projection import Points, numpy_index, project, project_each
from zarrdask.formats.indexing.selection import basic, pointwise


@st.composite
def axes(draw):
    """A shape, the chunks along its axes, and where each of them begins and ends."""
    shape = tuple(draw(st.lists(st.integers(0, 15), max_size=3)))
    chunks, edges = [], []
    for size in shape:
        if draw(st.booleans()):
            chunks.append(draw(st.integers(1, 6)))
            edges.append(np.arange(20) * chunks[-1])
        else:
            lengths = (*draw(selections.lengths(size)), 3)
            edges.append(np.array(list(accumulate(lengths, initial=0))))
            chunks.append(edges[-1])
    return shape, chunks, edges


def check(request, case, expected):
    """Check that the parts of a request, put in their places, are what is wanted."""
    shape, chunks, edges = case
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    out = np.full(expected.shape, -1)
    cuts = project(request, axes_of(chunks, shape))
    assert len(set(cuts.indices)) == len(cuts.indices)
    for index, inside, outside in zip(*cuts, strict=True):
        assert all(type(i) is int for i in index)
        places = tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, index, strict=True))
        lengths = tuple(int(s.stop - s.start) for s in places)
        chunk = np.full(lengths, -9)
        held = values[places]
        chunk[tuple(slice(0, n) for n in held.shape)] = held
        part = chunk if inside is None else chunk[numpy_index(inside)]
        assert part.size
        assert (out[outside] == -1).all()
        out[outside] = part
    np.testing.assert_array_equal(out, expected)


@given(axes(), st.data())
def test_parts_of_slices_make_up_the_whole(case, data):
    shape = case[0]
    selection = basic(data.draw(selections.basic(shape, newaxis=False)), shape)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    check(selection.picks, case, values[selection.picks])
    grid = axes_of(case[1], shape)
    assert [*project_each([selection.slices] * 2, grid)] == [project(selection.picks, grid)] * 2


@given(axes(), st.data())
def test_parts_of_outer_selections_make_up_the_whole(case, data):
    shape = case[0]
    selection = basic(data.draw(selections.outer(shape)), shape, outer=True)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    check(selection.picks, case, values[numpy_index(selection.picks)])


@given(axes(), st.data())
def test_points_are_found_in_their_chunks(case, data):
    shape = case[0]
    if not shape or 0 in shape:
        return
    coordinates = pointwise(data.draw(selections.points(shape)), shape)
    points = Points(tuple(c.reshape(-1) for c in coordinates))
    values = np.arange(np.prod(shape)).reshape(shape)
    check(points, case, values[points.coordinates])


@pytest.mark.parametrize("size", [100, 2**31 - 1, 2**40, 2**62])
def test_points_of_axes_of_any_length(size):
    lasts = (np.array([size - 1, 0, size - 1, 7]),) * 3
    projection = project(Points(lasts), axes_of((7, 5, 3), (size,) * 3))
    assert len(projection.indices) == 3
    chunk = np.arange(7 * 5 * 3).reshape(7, 5, 3)
    for inside, outside in zip(projection.insides, projection.outsides, strict=True):
        within = tuple(each[outside] % n for each, n in zip(lasts, chunk.shape, strict=True))
        np.testing.assert_array_equal(inside.coordinates, within)
        np.testing.assert_array_equal(inside.take(chunk), chunk[within])
        # Of an array in another order, the same elements.
        np.testing.assert_array_equal(inside.take(np.asfortranarray(chunk)), chunk[within])


@given(axes())
def test_whole_chunks_are_told_from_parts(case):
    shape, chunks, edges = case
    cuts = project(tuple(slice(0, n, 1) for n in shape), axes_of(chunks, shape))
    for index, inside in zip(cuts.indices, cuts.insides, strict=True):
        ends = [e[i + 1] for e, i in zip(edges, index, strict=True)]
        assert (inside is None) == all(end <= n for end, n in zip(ends, shape, strict=True))


def test_a_slice_with_a_long_step_passes_over_chunks():
    edges = np.array([0, 2, 3, 4, 9, 10])
    result = [(p.chunk, p.inside, p.outside) for p in axis_of(edges).parts(slice(1, 10, 4))]
    assert result == [
        (0, slice(1, 2, 4), slice(0, 1, 1)),
        (3, slice(1, 5, 4), slice(1, 2, 1)),
        (4, slice(0, 1, 4), slice(2, 3, 1)),
    ]


def test_ordered_entries_stay_together():
    cuts = project((slice(0, 7, 1),), (axis_of(np.array([0, 3, 4, 7])),))
    lengths = {0: 3, 1: 1, 2: 3}
    result = cuts.ordered(lambda index: lengths[index[0]])
    assert result.indices == [(1,), (0,), (2,)]
    assert result.outsides == [(slice(3, 4, 1),), (slice(0, 3, 1),), (slice(4, 7, 1),)]
    assert result.insides == [None, None, None]


@pytest.mark.parametrize("axis", [4, np.array([0, 1, 4, 8])])
def test_an_empty_slice_meets_nothing(axis):
    assert axis_of(axis, 8).parts(slice(3, 3, 1)) == []
