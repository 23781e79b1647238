"""The base class of data types: what a class has that overrides nothing."""

import numpy as np
import pytest

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.dtypes.data_type import DataType, check_configuration, positive_integer


def test_a_type_that_v3_lacks_says_which_format_has_it():
    with pytest.raises(UnsupportedError) as caught:
        DataType(np.dtype([("a", "i4")])).to_json()
    assert "zarr_format=2" in str(caught.value)


def test_no_type_is_chosen_for_a_dtype():
    assert DataType.from_dtype(np.dtype("i4")) is None


def test_fill_values_are_the_same_after_they_were_rendered():
    data_type = DataType(np.dtype("f4"))
    for value in (np.float32(1.5), np.float32("inf"), data_type.default):
        assert data_type.parse_fill(data_type.render_fill(value)) == value
    assert np.isnan(data_type.parse_fill(data_type.render_fill(np.float32("nan"))))


def test_a_fill_value_that_the_type_can_not_hold_is_an_error():
    with pytest.raises(MetadataError):
        DataType(np.dtype("u1")).cast(256)


def test_a_configuration_has_exactly_the_expected_members():
    check_configuration("mine", {"length": 4}, ("length",))
    with pytest.raises(MetadataError, match="unknown member"):
        check_configuration("mine", {"length": 4, "unit": "s"}, ("length",))
    with pytest.raises(MetadataError, match="missing"):
        check_configuration("mine", {}, ("length",))


@pytest.mark.parametrize("value", [0, -1, 9, 1.0, True, "1", None])
def test_a_member_is_a_positive_integer_up_to_a_maximum(value):
    assert positive_integer("mine", {"length": 8}, "length", 8) == 8
    with pytest.raises(MetadataError, match="invalid length") as caught:
        positive_integer("mine", {"length": value}, "length", 8)
    assert caught.value.expected == "an integer from 1 to 8"
