"""Fill values in JSON."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.covering import for_each
from tests.formats.dtypes.fills import NESTED
from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.fill_json import parse_v2, parse_v3, render_v2, render_v3


def test_negative_zero_keeps_its_sign_in_json():
    assert math.copysign(1, render_v3(np.float64(-0.0), np.dtype("f8"))) == -1
    assert math.copysign(1, render_v2(np.float32(-0.0), np.dtype("f4"))) == -1


numbers = st.sampled_from(["i1", "u2", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "b1"])


@given(numbers.map(np.dtype).flatmap(lambda d: hnp.arrays(d, ())))
def test_any_number_survives_v3_json_to_the_bit(value):
    scalar = value[()]
    result = parse_v3(json.loads(json.dumps(render_v3(scalar, value.dtype))), value.dtype)
    assert np.asarray(result).tobytes() == value.tobytes()


@given(st.integers(0, 2**32 - 1))
def test_any_float_bits_survive_v3_json(pattern):
    # NaN payloads among them. The quiet bit may be set by the processor, nothing else.
    value = np.array(pattern, "u4").view("f4")
    result = parse_v3(json.loads(json.dumps(render_v3(value[()], value.dtype))), value.dtype)
    again = int(np.asarray(result).view("u4"))
    assert again in (pattern, pattern | 0x00400000 if np.isnan(value) else pattern)


@given(numbers.map(np.dtype).flatmap(lambda d: hnp.arrays(d, ())))
def test_any_number_survives_v2_json_but_for_nan_payloads(value):
    result = parse_v2(json.loads(json.dumps(render_v2(value[()], value.dtype))), value.dtype)
    assert np.array_equal(result, value, equal_nan=value.dtype.kind in "fc")


@for_each(
    ("dtype", "value"),
    [
        ("bool", 0.0),
        ("uint8", 256),
        ("int32", 1.5),
        ("int32", [1]),
        ("float32", "0xzzzzzzzz"),
        ("float32", "7fc00000"),
        ("float64", [1.0]),
        ("float64", 10**400),
        ("complex64", [1.0]),
        ("V3", [1, 2]),
        ("V3", [1, 2, True]),
    ],
)
def test_what_is_no_v3_fill_value_is_an_error_that_shows_it(dtype, value):
    with pytest.raises(MetadataError) as caught:
        parse_v3(value, np.dtype(dtype))
    assert caught.value.key == "fill_value"
    assert caught.value.found == value
    assert caught.value.expected


def test_the_fill_value_of_objects_is_json_as_it_stands():
    assert parse_v2("text", np.dtype(object)) == "text"
    assert render_v2("text", np.dtype(object)) == "text"


@for_each(
    ("dtype", "value"),
    [
        ("|b1", 2),
        ("<i4", 1.5),
        ("<f8", "nan"),
        ("<f8", []),
        ("<f8", 10**400),
        ("|S2", "é"),
        ("|S2", False),
        ("<U2", 7),
        ("|V2", "AQID"),
        ("<M8[s]", "2020"),
        (NESTED, "AAAA"),
        (NESTED, [1.5, [2.5, 7]]),
    ],
)
def test_what_is_no_v2_fill_value_is_an_error_that_shows_it(dtype, value):
    with pytest.raises(MetadataError) as caught:
        parse_v2(value, np.dtype(dtype))
    assert caught.value.key == "fill_value"
    assert caught.value.found == value


def test_a_structured_fill_of_v2_whose_text_holds_no_characters_is_an_error():
    with pytest.raises(MetadataError, match="invalid fill value"):
        parse_v2("/////w==", np.dtype([("a", "<U1")]))
