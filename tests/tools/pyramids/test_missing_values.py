"""Which values count as missing, by the attributes of an array."""

from dataclasses import replace

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.new_metadata import plan_array
from zarrdask.tools.pyramids.missing_values import default_method, find_missing


def metadata(dtype="i2", fill_value=None, **attributes):
    options = ArrayOptions(shape=(4,), dtype=dtype, chunks=(2,), fill_value=fill_value)
    return replace(plan_array(options), attributes=attributes)


@for_each(
    "dtype, attributes, values",
    [
        ("i2", {"_FillValue": -9, "missing_value": -9}, (-9,)),
        ("i2", {"missing_value": [-9, -8]}, (-9, -8)),
        ("f4", {"_FillValue": 1e20}, (float(np.float32(1e20)),)),
        ("i2", {"_FillValue": 70000}, None),
        ("i2", {"_FillValue": 1.5}, None),
        ("i2", {"missing_value": "none"}, None),
        ("i2", {"missing_value": {"a": 1}}, None),
        ("i2", {}, None),
    ],
)
def test_the_attributes_name_them_as_the_type_holds_them(dtype, attributes, values):
    missing = find_missing(metadata(dtype, **attributes), "mean", skipna=True)
    assert (None if missing is None else missing.values) == values


def test_nan_is_missing_in_arrays_of_floats():
    missing = find_missing(metadata("f4"), "mean", skipna=True)
    assert (missing.values, missing.has_nan) == ((), True)
    assert np.isnan(missing.result)


def test_the_fill_value_is_missing_if_that_is_asked_for():
    array = metadata(fill_value=7, _FillValue=-9)
    assert find_missing(array, "mean", skipna="fill").values == (-9, 7)
    assert find_missing(array, "mean", skipna="fill").result == -9


@for_each(
    "dtype, method, skipna", [("i2", "mean", False), ("i2", "nearest", True), ("?", "mode", True)]
)
def test_all_values_count_where_none_is_asked_for(dtype, method, skipna):
    assert find_missing(metadata(dtype, _FillValue=-9), method, skipna=skipna) is None


def test_another_value_of_the_option_is_an_error():
    with pytest.raises(ZarrdaskError):
        find_missing(metadata(), "mean", skipna="all")


def test_labels_have_the_most_frequent_value():
    assert default_method(metadata()) == "mean"
    assert default_method(metadata(flag_values=[1, 2])) == "mode"
    assert default_method(metadata(), "image/labels/nuclei") == "mode"
    assert default_method(metadata("?")) == "mode"
