"""The arithmetic of ranges."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.storage.base import Scratch
from zarrdask.storage.byte_ranges import coalesce, cut

ranges = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), max_size=15).map(sorted)


@given(ranges, st.integers(0, 20), st.integers(1, 100))
def test_coalesced_ranges_hold_every_range_in_order(ranges, gap, limit):
    found = [
        (start + offset, size)
        for (start, _), members in coalesce(ranges, gap, limit)
        for offset, size in members
    ]
    assert found == ranges


@given(ranges, st.integers(0, 20), st.integers(1, 100))
def test_each_range_lies_inside_the_one_it_was_joined_to(ranges, gap, limit):
    for (_, length), members in coalesce(ranges, gap, limit):
        assert all(offset >= 0 and offset + size <= length for offset, size in members)
        assert max(offset + size for offset, size in members) == length
        assert members[0][0] == 0


@given(ranges, st.integers(0, 20), st.integers(1, 100))
def test_joined_ranges_keep_the_limit_unless_there_is_one_only(ranges, gap, limit):
    for (_, length), members in coalesce(ranges, gap, limit):
        assert length <= limit or len(members) == 1


@given(ranges, st.integers(0, 20))
def test_ranges_further_apart_than_the_gap_are_not_joined(ranges, gap):
    for _, members in coalesce(ranges, gap, 10**6):
        end = 0
        for offset, size in members:
            assert offset - end <= gap
            end = max(end, offset + size)


@given(ranges, st.integers(0, 20))
def test_ranges_within_the_gap_are_joined(ranges, gap):
    joined = [start_length for start_length, _ in coalesce(ranges, gap, 10**6)]
    for (start, length), (following, _) in pairwise(joined):
        assert following - (start + length) > gap


@for_each(
    ("start", "length", "expected"),
    [(0, 3, b"012"), (7, None, b"789"), (-3, None, b"789"), (-3, 2, b"78"), (-99, 2, b"01")],
)
def test_cut_takes_a_part(start, length, expected):
    assert bytes(cut(b"0123456789", start, length)) == expected


def test_cutting_copies_nothing():
    value = bytearray(b"0123")
    part = cut(value, 1, 2)
    value[1] = ord("x")
    assert bytes(part) == b"x2"


def test_scratch_grows_and_stays():
    scratch = Scratch()
    big = scratch.reserve(10**6)
    assert len(big) >= 10**6
    assert scratch.reserve(10) is big
