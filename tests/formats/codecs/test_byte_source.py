"""Values that are read in parts: those in memory, and parts of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.errors import TruncatedError
from zarrdask.formats.codecs.byte_source import HeldValue, PartOfValue, exact

DATA = bytes(range(40))
lengths = st.integers(0, 30)


@given(st.integers(-30, 30), lengths, lengths, lengths)
def test_a_part_of_a_value_is_read_as_if_it_were_a_value(start, length, offset, size):
    size = min(size, len(DATA) - offset)
    part, whole = PartOfValue(HeldValue(DATA), offset, size), HeldValue(DATA[offset:][:size])
    assert bytes(part.part(start, length)) == bytes(whole.part(start, length))
    if start >= 0:
        expected = DATA[offset : offset + size][start : start + length]
        ranges = [(start, length)]
        assert [bytes(each) for each in part.parts(ranges)] == [expected]
        assert [bytes(each) for each in whole.parts(ranges)] == [expected]


def test_a_negative_start_is_from_the_end():
    assert bytes(HeldValue(DATA).part(-4, 2)) == DATA[-4:-2]
    assert bytes(HeldValue(DATA).part(-50, 2)) == DATA[:2]


@pytest.mark.parametrize("data", [None, b"12"])
def test_a_part_of_another_length_is_an_error_that_names_the_chunk(data):
    assert list(exact(iter([b"123"]), [(5, 3)], [(0, 1)])) == [b"123"]
    with pytest.raises(TruncatedError, match=r"inner chunk \(0, 1\): bytes 5 to 8"):
        list(exact(iter([data]), [(5, 3)], [(0, 1)]))
