"""The chunks along one axis: even and uneven ones, compared with lists of all their elements."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.formats.grids.axis import Even, Uneven, axis_of, edges_of


@st.composite
def uneven_axes(draw, min_size=0):
    """Draw lengths of chunks, of which the last ones may lie outside, and the axis."""
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=9))
    size = draw(st.integers(min_size, sum(lengths)))
    return lengths, Uneven(size, edges_of(lengths))


@st.composite
def even_axes(draw, min_size=0):
    """Draw an even axis and an uneven one with the same boundaries."""
    size, chunk = draw(st.integers(min_size, 40)), draw(st.integers(1, 12))
    count = max(-(-size // chunk), 1) + draw(st.integers(0, 2))
    return Even(size, chunk), Uneven(size, edges_of([chunk] * count))


@st.composite
def axes(draw, min_size=0):
    """Draw the lengths of chunks, and the axis that they make up: an even one or an uneven one."""
    if draw(st.booleans()):
        return draw(uneven_axes(min_size))
    even, uneven = draw(even_axes(min_size))
    return list(uneven.lengths), even


@st.composite
def slices(draw, size, longest_step=9):
    start = draw(st.integers(0, size))
    return slice(start, draw(st.integers(start, size)), draw(st.integers(1, longest_step)))


@st.composite
def picks(draw, size):
    if size and draw(st.booleans()):
        positions = draw(st.lists(st.integers(0, size - 1), max_size=20))
        return np.array(positions, np.intp)
    return draw(slices(size))


def owners(lengths):
    """Return the number of the chunk that holds each position."""
    return [number for number, length in enumerate(lengths) for _ in range(length)]


def as_lists(parts):
    """Return parts with lists instead of arrays, which compare as a whole."""
    return [[x.tolist() if isinstance(x, np.ndarray) else x for x in part] for part in parts]


class TestEvenAndUnevenAxesWithTheSameBoundaries:
    @given(even_axes())
    def test_have_the_same_properties(self, pair):
        even, uneven = pair
        assert even.count == uneven.count
        assert even.longest == uneven.longest
        assert set(even.lengths) == set(uneven.lengths)
        assert even.edges.tolist() == uneven.edges.tolist()
        assert even.edges.dtype == uneven.edges.dtype == np.int64
        for number in range(even.count):
            assert even.start(number) == uneven.start(number)
            assert even.span(number) == uneven.span(number)

    @given(even_axes(), st.data())
    def test_split_picks_into_the_same_parts(self, pair, data):
        even, uneven = pair
        pick = data.draw(picks(even.size))
        assert as_lists(even.parts(pick)) == as_lists(uneven.parts(pick))

    @given(even_axes(), st.data())
    def test_split_slices_into_the_same_blocks(self, pair, data):
        even, uneven = pair
        pick = data.draw(slices(even.size))
        assert even.blocks(pick) == uneven.blocks(pick)
        assert even.numbers(pick) == uneven.numbers(pick)

    @given(even_axes(), st.data(), st.integers(0, 50))
    def test_have_the_same_boundaries_in_a_slice(self, pair, data, origin):
        even, uneven = pair
        pick = data.draw(slices(even.size, 1))
        assert even.cut(pick) == uneven.cut(pick)
        origin = min(origin, pick.start)
        shifted = slice(pick.start - origin, pick.stop - origin, 1)
        found = [[n + origin for n in axis.cut(shifted, origin)] for axis in pair]
        assert found == [even.cut(pick)] * 2
        parts = [axis.part(pick) for axis in pair]
        assert parts[0].edges.tolist() == parts[1].edges.tolist()

    @given(even_axes(), st.integers(1, 60))
    def test_are_joined_alike(self, pair, length):
        even, uneven = pair
        assert even.join(length).edges.tolist() == uneven.join(length).edges.tolist()

    @given(even_axes(), st.integers(1, 12))
    def test_have_the_same_boundaries_in_common_with_another(self, pair, chunk):
        even, uneven = pair
        other = Even(even.size, chunk)
        found = [one.common(two) for one, two in ((even, other), (other, uneven), (uneven, other))]
        assert len({tuple(axis.edges.tolist()) for axis in found}) == 1


class TestAxes:
    @given(axes(min_size=1))
    def test_know_which_chunk_holds_each_position(self, case):
        lengths, axis = case
        held = owners(lengths)[: axis.size]
        assert [axis.number(i) for i in range(axis.size)] == held
        assert axis.number(np.arange(axis.size)).tolist() == held
        assert axis.count == held[-1] + 1
        starts = [held.index(number) for number in range(axis.count)]
        assert [axis.start(number) for number in range(axis.count)] == starts
        assert axis.start(np.arange(axis.count)).tolist() == starts
        assert axis.edges.tolist() == [*starts, axis.size]
        assert axis.longest == max(lengths[: axis.count])

    @given(axes(), st.data())
    def test_split_a_pick_at_the_boundaries(self, case, data):
        lengths, axis = case
        pick = data.draw(picks(axis.size))
        positions = np.arange(axis.size)[pick]
        held, starts = owners(lengths), edges_of(lengths)
        result = np.full(len(positions), -1)
        parts = axis.parts(pick)
        for part in parts:
            inside = np.arange(lengths[part.chunk])[part.inside]
            result[part.outside] = inside + starts[part.chunk]
            if isinstance(pick, slice):
                is_whole = pick.step == 1 and len(inside) == lengths[part.chunk]
                assert part.whole == is_whole
        assert result.tolist() == positions.tolist()
        assert [p.chunk for p in parts] == sorted({held[i] for i in positions.tolist()})

    @given(axes(), st.data())
    def test_count_the_selected_elements_of_each_chunk(self, case, data):
        lengths, axis = case
        pick = data.draw(slices(axis.size))
        selected = [owners(lengths)[i] for i in range(axis.size)[pick]]
        counts = tuple(map(selected.count, dict.fromkeys(selected)))
        assert axis.blocks(pick) == (counts or (0,))
        spanned = set(owners(lengths)[pick.start : pick.stop])
        assert set(axis.numbers(pick)) == spanned

    @given(axes(), st.data())
    def test_are_cut_at_the_boundaries_within_a_slice(self, case, data):
        lengths, axis = case
        pick = data.draw(slices(axis.size, 1))
        inner = [n for n in edges_of(lengths).tolist() if pick.start < n < pick.stop]
        ends = [pick.start, *inner, pick.stop] if pick.start < pick.stop else [pick.start]
        assert axis.cut(pick) == ends
        part = axis.part(pick)
        assert part.edges.tolist() == [n - pick.start for n in ends]

    @given(axes(min_size=1), st.integers(1, 60))
    def test_join_as_many_chunks_as_fit(self, case, length):
        lengths, axis = case
        ends = edges_of(lengths)[: axis.count + 1].tolist()
        joined = [0]
        while joined[-1] < axis.size:
            fitting = [n for n in ends if joined[-1] < n <= joined[-1] + length]
            joined.append(max(fitting, default=ends[ends.index(joined[-1]) + 1]))
        joined = [0, axis.size] if length >= axis.size else [*joined[:-1], axis.size]
        assert axis.join(length).edges.tolist() == joined

    @given(axes(), st.integers(1, 12))
    def test_common_boundaries_are_those_of_both(self, case, chunk):
        _, axis = case
        other = Even(axis.size, chunk)
        expected = sorted({*axis.edges.tolist()} & {*other.edges.tolist()})
        assert axis.common(other).edges.tolist() == expected
        assert other.common(axis).edges.tolist() == expected

    @given(axes())
    def test_are_equal_by_value_and_pickle(self, case):
        _, axis = case
        copy = pickle.loads(pickle.dumps(axis))
        assert copy == axis
        assert hash(copy) == hash(axis)


@pytest.mark.parametrize("chunk", [0, 3])
def test_an_axis_without_elements_has_no_chunks(chunk):
    axis = Even(0, chunk)
    assert (axis.count, axis.edges.tolist(), axis.cut(slice(0, 0, 1))) == (0, [0], [0])
    assert (axis.parts(slice(0, 0, 1)), axis.blocks(slice(0, 0, 1))) == ([], (0,))
    assert (axis.number(0), axis.start(0)) == (0, 0)
    assert axis.part(slice(0, 0, 1)) == axis


def test_axes_with_other_chunks_are_not_equal():
    assert Even(6, 3) != Even(6, 2) != Even(5, 2)
    assert axis_of(6, (1, 5)) != axis_of(6, (2, 4)) != axis_of(5, (2, 4))
    assert Even(6, 3) != axis_of(6, (3, 3))


def test_chunks_far_longer_than_the_axis_are_no_danger():
    axis = Even(5, 2**63 - 1)
    assert axis.edges.tolist() == [0, 5]
    assert axis.blocks(slice(1, 5, 1)) == (4,)
    assert axis.number(np.array([1, 4])).tolist() == [0, 0]


def test_chunks_that_differ_stay_as_they_are_above_the_limit():
    axis = axis_of(6, (1, 1, 2, 2))
    assert axis.join(2, limit=2) == axis
    assert axis.join(2, limit=3).edges.tolist() == [0, 2, 4, 6]
