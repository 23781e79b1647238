"""Values of the generic unit of time: made without what NumPy 2.5 deprecates."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.formats.dtypes.fill_values import as_array

NAT = -(2**63)


def counts(values):
    """Return the counts that an array holds, in either byte order."""
    return values.view(np.dtype("i8").newbyteorder(values.dtype.byteorder)).tolist()


@for_each("dtype", ["<m8", ">m8", "<M8", "m8[10generic]"])
@for_each(
    ("value", "expected"),
    [
        (5, 5),
        (np.int16(-5), -5),
        (True, 1),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (range(3), [0, 1, 2]),
        ("NaT", NAT),
        (["NaT", "nat"], [NAT, NAT]),
    ],
)
def test_counts_are_taken_as_they_are(dtype, value, expected):
    result = as_array(value, np.dtype(dtype))
    assert result.dtype == np.dtype(dtype)
    assert counts(result) == expected


def test_the_text_of_a_count_is_a_span():
    assert counts(as_array(["5", b"-6"], np.dtype("m8"))) == [5, -6]


@for_each("value", [2**63, -(2**63) - 1, 1.5, "soon"])
@for_each("dtype", ["m8", "M8"])
def test_what_is_no_count_is_refused_as_numpy_does(value, dtype):
    with pytest.raises((ValueError, OverflowError)):
        as_array(value, np.dtype(dtype))


@pytest.mark.parametrize(("dtype", "value"), [("f4", [1, 2]), ("M8[s]", ["NaT", 3]), ("U2", "ab")])
def test_other_arrays_are_numpys(dtype, value):
    result, expected = as_array(value, np.dtype(dtype)), np.array(value, dtype)
    assert (result.dtype, result.tobytes()) == (expected.dtype, expected.tobytes())


@pytest.mark.parametrize(("given", "stored"), [("NaT", NAT), (7, 7)])
def test_arrays_of_the_generic_unit_are_made_filled_and_written(given, stored):
    z = zarrdask.create_array({}, shape=4, chunks=2, dtype="m8", fill_value=given)
    z[0] = 5
    z[3:] = [6]
    assert counts(z[...]) == [5, stored, stored, 6]


@for_each("value", ["7", np.bool_(True), "NaT", "nat", ""])
def test_a_fill_value_of_another_unit_is_read_without_the_generic_one(value):
    z = zarrdask.create_array({}, shape=1, dtype="m8[s]", fill_value=value)
    assert counts(z[...]) == np.array([value], "m8[s]").view("i8").tolist()
