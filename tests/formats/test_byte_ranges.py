"""Ranges of bytes: how they are joined, and cut from values."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.formats.byte_ranges import coalesce, cut

ranges = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), max_size=15).map(sorted)


@given(ranges, st.integers(0, 20), st.integers(1, 100))
def test_ranges_are_joined_within_the_gap_and_the_limit(ranges, gap, limit):
    joined = coalesce(ranges, gap, limit)
    assert [(at + offset, n) for (at, _), each in joined for offset, n in each] == ranges
    for (_, length), members in joined:
        assert members[0][0] == 0
        assert max(offset + size for offset, size in members) == length
        assert length <= limit or len(members) == 1
        ends = accumulate((offset + size for offset, size in members), max)
        assert all(offset - end <= gap for end, (offset, _) in zip(ends, members[1:], strict=False))
    for ((start, length), _), ((following, _), members) in pairwise(joined):
        is_far = following - (start + length) > gap
        assert is_far or max(following + members[0][1] - start, length) > limit


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
