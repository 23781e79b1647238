"""Elements are gathered from the members that a request overlaps."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each

SELECTIONS = [
    np.s_[...],
    np.s_[1:5, 2],
    np.s_[::-2],
    np.s_[4:5, 1:3],
    np.s_[:0],
    np.s_[5, 3],
]


def arrays(axis, dtypes=("i4", "i4", "i4")):
    """Return stored arrays along an axis, and the same in memory."""
    stored, values = [], []
    for number, dtype in enumerate(dtypes):
        shape = tuple(2 + number if each == axis else 4 for each in range(2))
        value = (np.arange(np.prod(shape)).reshape(shape) + 100 * number).astype(dtype)
        array = zarrdask.create_array({}, shape=shape, dtype=dtype, chunks=3)
        array[...] = value
        stored.append(array)
        values.append(value)
    return stored, values


@for_each("axis", [0, 1])
def test_selections_are_those_of_joined_arrays(axis):
    stored, values = arrays(axis)
    expected, joined = np.concatenate(values, axis), zarrdask.concat(stored, axis)
    for selection in SELECTIONS[:4]:
        np.testing.assert_array_equal(joined[selection], expected[selection])
    rows, columns = np.array([0, 3, 3, 1]), np.array([3, 0, 0, 2])
    np.testing.assert_array_equal(joined.vindex[rows, columns], expected[rows, columns])
    np.testing.assert_array_equal(joined.oindex[[3, 0], [2, 1]], expected[np.ix_([3, 0], [2, 1])])


def test_members_of_other_types_are_cast_when_they_are_read():
    stored, values = arrays(0, ("i2", "f4", "u1"))
    joined = zarrdask.concat(stored)
    expected = np.concatenate(values)
    assert joined.dtype == expected.dtype
    for selection in SELECTIONS:
        np.testing.assert_array_equal(joined[selection], expected[selection])


def test_members_that_are_stacked_have_no_such_axis():
    stored, values = zip(*(arrays(0, ("i4",)) for _ in range(2)), strict=True)
    joined = zarrdask.stack([each[0] for each in stored], axis=1)
    expected = np.stack([each[0] for each in values], axis=1)
    for selection in (np.s_[...], np.s_[1], np.s_[:, 1, 2:], np.s_[0, ::-1]):
        np.testing.assert_array_equal(joined[selection], expected[selection])


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_missing_member_reads_as_the_fill_value(selection):
    array = zarrdask.create_array({}, shape=(3, 4), dtype="i4", fill_value=7)
    array[...] = 1
    joined = zarrdask.concat([array, None])
    expected = np.concatenate([np.ones((3, 4), "i4"), np.full((3, 4), 7, "i4")])
    np.testing.assert_array_equal(joined[selection], expected[selection])
