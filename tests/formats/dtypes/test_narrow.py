"""Data types of numbers narrower than NumPy's."""

import math

import numpy as np
import pytest

from tests.covering import for_each
from tests.formats.dtypes.contract import check_fills, check_metadata
from tests.formats.dtypes.test_ml import FLOATS, INTEGERS, patterns
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.dtypes.ml import BITS, dtype_named
from zarrdask.formats.dtypes.registry import find_data_type, of_dtype, parse_data_type

names = for_each("name", BITS)


@names
def test_names_are_those_of_ml_dtypes(name):
    data_type = parse_data_type(name)
    assert data_type.dtype == dtype_named(name)
    assert data_type.to_json() == name
    assert of_dtype(data_type.dtype.newbyteorder(">")).to_json() == name
    check_metadata(data_type)


@names
def test_every_element_there_is_survives_as_a_fill_value(name):
    every = patterns(name)
    check_fills(parse_data_type(name), *every[:: max(len(every) // 512, 1)])


@for_each(
    ("name", "json_value", "pattern"),
    [
        ("bfloat16", 1.5, 0x3FC0),
        ("bfloat16", "0x3fc0", 0x3FC0),
        ("bfloat16", "NaN", 0x7FC0),
        ("bfloat16", "0x7fc1", 0x7FC1),
        ("bfloat16", "-Infinity", 0xFF80),
        ("bfloat16", -0.0, 0x8000),
        ("bfloat16", 1.00390625000001, 0x3F81),
        ("float8_e5m2", "Infinity", 0x7C),
        ("float8_e5m2", "0xff", 0xFF),
        ("float8_e4m3fn", 448, 0x7E),
        ("float8_e4m3fnuz", "NaN", 0x80),
        ("float8_e8m0fnu", 1, 127),
        ("float8_e8m0fnu", "0xFF", 0xFF),
        ("float6_e2m3fn", -7.5, 0x3F),
        ("float6_e3m2fn", "0x20", 0x20),
        ("float4_e2m1fn", -0.0, 0x08),
        ("float4_e2m1fn", "0x0f", 0x0F),
        ("int2", -2, 0x02),
        ("uint2", 3, 0x03),
        ("int4", -1, 0x0F),
        ("uint4", 15, 0x0F),
    ],
)
def test_fill_values_have_the_bits_that_the_registry_says(name, json_value, pattern):
    value = parse_data_type(name).parse_fill(json_value)
    assert value.dtype == dtype_named(name)
    assert int(np.asarray(value).view(f"u{value.itemsize}")) == pattern


@for_each(
    ("name", "value"),
    [
        ("int2", 2),
        ("int2", -3),
        ("uint2", 4),
        ("uint2", -1),
        ("int4", 8),
        ("int4", -9),
        ("uint4", 16),
        ("int4", 1.0),
        ("int4", True),
        ("int4", "1"),
        ("uint4", None),
        ("bfloat16", 3.5e38),
        ("bfloat16", "0x3f8"),
        ("bfloat16", "0x3f800"),
        ("bfloat16", "nan"),
        ("bfloat16", None),
        ("bfloat16", [1]),
        ("float8_e4m3", 250),
        ("float8_e4m3fn", "Infinity"),
        ("float8_e4m3fnuz", "-Infinity"),
        ("float8_e8m0fnu", 0.0),
        ("float8_e8m0fnu", -1.0),
        ("float8_e8m0fnu", "Infinity"),
        ("float6_e2m3fn", "NaN"),
        ("float6_e2m3fn", 8.0),
        ("float6_e3m2fn", "0x40"),
        ("float4_e2m1fn", 6.5),
        ("float4_e2m1fn", "Infinity"),
        ("float4_e2m1fn", "0x10"),
        ("float4_e2m1fn", "0x1"),
    ],
)
def test_what_a_type_does_not_have_is_no_fill_value(name, value):
    with pytest.raises(MetadataError) as caught:
        parse_data_type(name).parse_fill(value)
    assert (caught.value.key, caught.value.found) == ("fill_value", value)


@for_each("name", FLOATS)
def test_a_users_number_becomes_the_nearest(name):
    data_type = find_data_type(name)
    assert float(data_type.cast(1)) == 1.0
    assert float(data_type.cast(np.float32(2))) == 2.0
    with pytest.raises(MetadataError):
        data_type.cast(1e300)
    with pytest.raises(MetadataError):
        data_type.cast("many")


@for_each("name", INTEGERS)
def test_a_users_integer_has_to_fit(name):
    data_type = find_data_type(name)
    assert int(data_type.cast(1.0)) == 1
    for value in (16, -16, 0.5, math.nan, dtype_named("bfloat16").type(0.5)):
        with pytest.raises(MetadataError):
            data_type.cast(value)


@names
def test_there_is_no_configuration(name):
    with pytest.raises(MetadataError, match=name):
        parse_data_type({"name": name, "configuration": {"bits": 4}})


def test_a_type_that_the_registry_does_not_list_has_no_name(monkeypatch):
    dtype = dtype_named("int4")
    monkeypatch.delitem(BITS, "int4")
    with pytest.raises(UnsupportedError, match="int4"):
        of_dtype(dtype).to_json()
