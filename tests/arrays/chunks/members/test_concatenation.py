"""Members as the cells of a grid."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.chunks.members.concatenation import boundaries_of, location_of_member

LENGTHS = (2, 3, 1)


@pytest.fixture(scope="module")
def concatenation():
    """Return arrays of the lengths above along the first axis, as one."""
    arrays = []
    for number, length in enumerate(LENGTHS):
        array = zarrdask.create_array({}, f"a{number}", shape=(length, 4), dtype="i4")
        array[...] = 10 * number
        arrays.append(array)
    return zarrdask.concat(arrays).concatenation


def test_members_have_numbers_in_c_order(concatenation):
    assert concatenation.counts == (3, 1)
    assert concatenation.size == 3
    assert concatenation.member((2, 0)) is concatenation.members[2]
    assert location_of_member(concatenation.members[2]).endswith("/a2")


@for_each("start, stop, expected", [(0, 6, 3), (0, 2, 1), (1, 3, 2), (4, 5, 1), (5, 6, 1)])
def test_a_region_has_the_members_that_it_overlaps(start, stop, expected, concatenation):
    part, region = concatenation.part((slice(start, stop, 1), slice(0, 4, 1)))
    assert part.size == expected
    rows, columns = region
    assert (rows.stop - rows.start, columns) == (stop - start, slice(0, 4, 1))
    assert part.metadata.shape == tuple(axis.size for axis in part.axes)


def test_an_empty_region_has_no_members(concatenation):
    part, region = concatenation.part((slice(3, 3, 1), slice(0, 4, 1)))
    assert part.size == 0
    assert region[0] == slice(0, 0, 1)


def test_boundaries_are_sums_of_lengths():
    axis = boundaries_of(LENGTHS)
    np.testing.assert_array_equal(axis.boundaries, [0, 2, 5, 6])
    assert axis.size == 6
