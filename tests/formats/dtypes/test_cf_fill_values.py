"""The attribute ``_FillValue`` of CF, as v3 arrays have it."""

import json

import numpy as np
import pytest
from xarray.backends.zarr import FillValueCoder

from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.cf_fill_values import decode_fill_value, encode_fill_value


@for_each(
    ("value", "dtype"),
    [
        (1.5, "f4"),
        (-np.inf, "f8"),
        (-1, "i2"),
        (True, "?"),
        (1 + 2j, "c16"),
        (b"ab", "S2"),
        ("ab", "U2"),
    ],
)
def test_fill_values_are_encoded_as_xarray_does(value, dtype):
    dtype = np.dtype(dtype)
    encoded = encode_fill_value(value, dtype)
    if dtype.kind != "c":  # older releases of xarray do not encode complex numbers
        assert encoded == FillValueCoder.encode(value, dtype)
    assert decode_fill_value(json.loads(json.dumps(encoded)), dtype) == value


@pytest.mark.parametrize("written", ["NaN", float("nan")])
def test_a_fill_value_that_others_wrote_as_it_is(written):
    assert np.isnan(decode_fill_value(written, np.dtype("f4")))


@pytest.mark.parametrize(("value", "dtype"), [("x!", "f4"), ({}, "i4"), ([1], "c8")])
def test_what_is_no_fill_value_is_an_error_that_names_it(value, dtype):
    with pytest.raises(MetadataError, match="_FillValue"):
        decode_fill_value(value, np.dtype(dtype))
