"""Regions: how units are joined, and what regions meet of another grid, found by counting."""

import pickle
from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.axes import axis_of
from tests.covering import for_each
from zarrdask.parallel.plan.owned_regions import (
    Cutting,
    ReadEdges,
    choice,
    choices,
    pieces_between,
)


@st.composite
def axes(draw, size):
    """Chunks along an axis of some length: regular or not, the last one may hang over."""
    if draw(st.booleans()):
        return draw(st.integers(1, size + 3))
    inner = draw(st.sets(st.integers(1, size - 1), max_size=6)) if size > 1 else set()
    return np.array([0, *sorted(inner), size + draw(st.integers(0, 2))])


@st.composite
def edges(draw, size):
    """Boundaries along an axis."""
    return axis_of(draw(axes(size)), size).edges


SIZES = st.integers(0, 30)
CUTTINGS = st.lists(SIZES, max_size=3).flatmap(lambda sizes: st.tuples(*map(edges, sizes)))
NOT_EMPTY = st.lists(st.integers(1, 30), max_size=3).flatmap(
    lambda sizes: st.tuples(*map(edges, sizes))
)
PAIRS = SIZES.flatmap(lambda size: st.tuples(edges(size), edges(size)))


def spans(found):
    """Return where regions begin and end."""
    return list(pairwise(found.tolist()))


def overlap(one, other):
    """Whether two spans have an element in common."""
    return max(one[0], other[0]) < min(one[1], other[1])


class TestCutting:
    @given(CUTTINGS)
    def test_each_element_lies_in_one_region(self, edges):
        cutting = Cutting(edges)
        met = np.zeros([found[-1] for found in edges], int)
        for number in range(cutting.size):
            met[cutting.region(number)] += 1
        assert (met == 1).all()

    @given(CUTTINGS)
    def test_regions_are_numbered_in_c_order(self, edges):
        cutting = Cutting(edges)
        indices = [cutting.index(number) for number in range(cutting.size)]
        assert indices == list(np.ndindex(cutting.counts))
        assert [cutting.at(i) for i in indices] == [
            cutting.region(number) for number in range(cutting.size)
        ]

    @given(CUTTINGS)
    def test_the_longest_is_that_of_all_regions(self, edges):
        lengths = [[b - a for a, b in spans(found)] for found in edges]
        assert Cutting(edges).longest == tuple(max(found, default=0) for found in lengths)

    @given(st.data())
    def test_meeting_finds_each_region_with_the_part_that_it_has(self, data):
        cutting = Cutting(data.draw(NOT_EMPTY))
        region = []
        for found in cutting.edges:
            start = data.draw(st.integers(0, int(found[-1]) - 1))
            region.append(slice(start, data.draw(st.integers(start + 1, int(found[-1]))), 1))
        expected = {}
        for number in range(cutting.size):
            both = [
                slice(max(a.start, b.start), min(a.stop, b.stop), 1)
                for a, b in zip(cutting.region(number), region, strict=True)
            ]
            if all(pick.start < pick.stop for pick in both):
                expected[cutting.index(number)] = tuple(both)
        found = list(cutting.overlapping(tuple(region)))
        assert len(found) == len(expected)
        assert {index: tuple(part) for index, part in found} == expected

    @given(CUTTINGS)
    def test_it_pickles(self, edges):
        cutting = pickle.loads(pickle.dumps(Cutting(edges)))
        assert all(np.array_equal(a, b) for a, b in zip(cutting.edges, edges, strict=True))
        assert len(cutting.edges) == len(edges)

    def test_its_pickle_is_small_however_many_regions_there_are(self):
        found = Cutting.of((axis_of(3, 3_000_001), axis_of(7, 7)))
        assert len(pickle.dumps(found)) < 1000

    def test_all_of_a_huge_array_can_be_numbered(self):
        cutting = Cutting.of((axis_of(1, 10**6),) * 3)
        assert cutting.size == 10**18
        assert cutting.index(10**18 - 1) == (10**6 - 1,) * 3


class TestChoice:
    @given(PAIRS)
    def test_it_counts_what_regions_meet(self, pair):
        regions, pieces = pair
        found = choice(regions, ReadEdges.whole(pieces))
        met = [p for r, p in product(spans(regions), spans(pieces)) if overlap(r, p)]
        assert found.overlapped == len(met)
        assert found.covered == sum(end - start for start, end in met)
        assert found.longest == max((b - a for a, b in spans(regions)), default=0)
        assert found.count == len(regions) - 1

    @given(PAIRS)
    def test_pieces_between_two_grids_are_those_of_all_boundaries(self, pair):
        one, other = pair
        assert pieces_between(one, other) == len({*one.tolist(), *other.tolist()}) - 1


class TestChoices:
    @given(
        SIZES.flatmap(lambda size: st.tuples(st.just(size), axes(size), edges(size))),
        st.integers(4, 60),
    )
    def test_regions_are_whole_units_from_one_each_to_all_in_one(self, drawn, limit):
        size, axis, pieces = drawn
        units = axis_of(axis, size).edges.tolist()
        found = choices(axis_of(axis, size), ReadEdges.whole(pieces), limit)
        for each in found:
            assert [each.edges[0], each.edges[-1]] == [0, size]
            assert set(each.edges.tolist()) <= set(units)
        counts = [each.count for each in found]
        assert len(set(counts)) == len(counts) <= limit
        assert counts[-1] == min(len(units) - 1, 1)
        assert found[0].longest == max(np.diff(units), default=0)

    @for_each("limit", [4, 10, 60])
    @for_each(("axis", "size"), [(1, 10**5), (70, 10**7), (np.arange(0, 10**5 + 1, 10), 10**5)])
    def test_long_axes_have_no_more_choices_than_may_be(self, axis, size, limit):
        found = choices(axis_of(axis, size), ReadEdges.whole(axis_of(1000, size).edges), limit)
        assert 3 <= len(found) <= limit

    def test_lengths_that_fit_the_pieces_are_among_them(self):
        # 12 is the least common multiple: regions of so many elements share no piece.
        found = choices(axis_of(4, 1200), ReadEdges.whole(axis_of(6, 1200).edges), 60)
        lengths = {each.longest for each in found}
        assert {4, 12, 24, 1200} <= lengths
        for each in found:
            if each.longest % 12 == 0:
                assert each.covered == 1200

    def test_irregular_units_are_joined_up_to_a_length(self):
        units = np.array([0, 1, 5, 6, 10, 11, 12, 20, 21, 32])
        for each in choices(axis_of(units), ReadEdges.whole(axis_of(8, 32).edges), 60):
            lengths = np.diff(each.edges)
            # No neighbours could be joined and be no longer than the longest.
            limit = max(each.longest, 11)
            assert (lengths <= limit).all()
