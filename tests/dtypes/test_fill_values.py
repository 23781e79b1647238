"""Fill values and their JSON, exact to the last bit."""

import base64
import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.covering import for_each
from tests.documents import same
from zarrdask.dtypes.fill_json import parse_v2, parse_v3, render_v2, render_v3
from zarrdask.dtypes.fill_values import cast, only_fill, zero
from zarrdask.errors import MetadataError

V3 = [
    ("bool", True, "01"),
    ("bool", False, "00"),
    ("int8", -128, "80"),
    ("int64", -(2**63), "8000000000000000"),
    ("int64", 2**63 - 1, "7fffffffffffffff"),
    ("uint64", 2**64 - 1, "ffffffffffffffff"),
    ("uint64", 2**53 + 1, "0020000000000001"),
    ("float16", 0.1, "2e66"),
    ("float16", 0.0999755859375, "2e66"),
    ("float32", 0.1, "3dcccccd"),
    ("float32", 7, "40e00000"),
    ("float32", "NaN", "7fc00000"),
    ("float32", "Infinity", "7f800000"),
    ("float32", "-Infinity", "ff800000"),
    ("float32", "+Infinity", "7f800000"),
    ("float32", "0x7fc00001", "7fc00001"),
    ("float32", "0xFFC0ABCD", "ffc0abcd"),
    ("float32", "0x3f800000", "3f800000"),
    ("float32", -0.0, "80000000"),
    ("float64", "NaN", "7ff8000000000000"),
    ("float64", "0x7ff8000000000abc", "7ff8000000000abc"),
    ("float64", -0.0, "8000000000000000"),
    ("float64", 5e-324, "0000000000000001"),
    ("float16", "0x7e01", "7e01"),
]


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


NESTED = np.dtype([("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])])

V2 = [
    ("|b1", True, np.True_),
    ("|b1", 0, np.False_),
    ("<i4", -1, np.int32(-1)),
    ("<i4", 3.0, np.int32(3)),
    ("<u8", 18446744073709551615, np.uint64(2**64 - 1)),
    ("<f4", "NaN", np.float32("nan")),
    ("<f8", "Infinity", np.float64("inf")),
    ("<f8", "-Infinity", np.float64("-inf")),
    ("<f8", 1, np.float64(1)),
    ("<c16", [1.5, "NaN"], np.complex128(complex(1.5, math.nan))),
    ("|S12", "aGk=", np.bytes_(b"hi")),
    ("|S12", base64.b64encode(b"hi".ljust(12, b"\0")).decode(), np.bytes_(b"hi")),
    ("|S1", 0, np.bytes_(b"")),
    ("|S4", "", np.bytes_(b"")),
    ("<U4", 0, np.str_("")),
    ("<U4", "täst", np.str_("täst")),
    ("<U4", "", np.str_("")),
    ("|V2", "AQI=", np.void(b"\x01\x02")),
    ("|V2", 0, np.void(b"\0\0")),
    ("<M8[ns]", 5, np.datetime64(5, "ns")),
    ("<M8[D]", "NaT", np.datetime64("NaT", "D")),
    ("<m8[s]", -9223372036854775808, np.timedelta64("NaT", "s")),
    ("<M8[25s]", 2, np.datetime64(2, "25s")),
]


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


@for_each(
    ("value", "dtype", "expected"),
    [
        (2**64 - 1, "u8", np.uint64(2**64 - 1)),
        (3.0, "i4", np.int32(3)),
        (1, "f4", np.float32(1)),
        (math.nan, "f4", np.float32("nan")),
        (1, "c8", np.complex64(1)),
        (True, "b1", np.True_),
        (b"ab", "S4", np.bytes_(b"ab")),
        ("ab", "U4", np.str_("ab")),
        (b"\1\2", "V2", np.void(b"\1\2")),
        (np.datetime64("2020-01-01"), "M8[s]", np.datetime64("2020-01-01", "s")),
        ("NaT", "M8[s]", np.datetime64("NaT", "s")),
        ((1, 2.5), [("a", "i4"), ("b", "f4")], np.array((1, 2.5), "i4,f4")[()]),
        ((1.5, (2.5, 7)), NESTED, np.array((1.5, (2.5, 7)), NESTED)[()]),
    ],
)
def test_a_users_fill_value_becomes_a_scalar_of_the_dtype(value, dtype, expected):
    same(np.array(cast(value, np.dtype(dtype)), dtype), np.array(expected, dtype))


@for_each(
    ("value", "dtype"),
    [
        (256, "u1"),
        (-1, "u8"),
        (2**64, "u8"),
        (1.5, "i4"),
        (math.nan, "i4"),
        (math.inf, "i4"),
        ("x", "f8"),
        (None.__class__, "f8"),
        ([1, 2], "f8"),
        (10**400, "f8"),
        (1e300, "f4"),
        (1 + 2j, "f8"),
        (1 + 2j, "i4"),
        (b"too long", "S3"),
        ("too long", "U3"),
        ((1,), [("a", "i4"), ("b", "f4")]),
    ],
)
def test_a_users_fill_value_that_does_not_fit_is_an_error(value, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(MetadataError) as caught:
            cast(value, np.dtype(dtype))
    assert caught.value.key == "fill_value"


@for_each("dtype", ["b1", "i4", "f8", "c8", "S3", "U2", "M8[s]", "V3", NESTED])
def test_the_default_fill_value_is_all_bytes_zero(dtype):
    dtype = np.dtype(dtype)
    assert np.array(zero(dtype), dtype).tobytes() == bytes(dtype.itemsize)
    assert zero(np.dtype(object)) == 0


FILLS = [
    ("f4", 0.0, -0.0),
    ("f8", math.nan, 0.0),
    ("f8", -0.0, 0.0),
    ("u1", 255, 254),
    ("i2", -1, 0),
    ("c16", 1j, 0),
    ("S3", b"ab", b"abc"),
    ("U2", "a", "b"),
    ("M8[s]", "NaT", 0),
    ("V3", b"\1\2\3", b"\1\2\4"),
    ("b1", True, False),
    ("i4,f4", (1, 2), (1, 3)),
]


@for_each(("dtype", "fill", "other"), FILLS)
@for_each("place", [0, 7, -1])
def test_only_fill_sees_any_element_that_differs_by_a_bit(dtype, fill, other, place):
    chunk = np.array([fill] * 12, dtype).reshape(3, 4)
    assert only_fill(chunk, np.array(fill, dtype)[()])
    assert only_fill(chunk.T, np.array(fill, dtype)[()])
    chunk.flat[place] = np.array(other, dtype)
    assert not only_fill(chunk, np.array(fill, dtype)[()])
    assert not only_fill(chunk.T[::-1], np.array(fill, dtype)[()])


def test_only_fill_minds_byte_order():
    assert only_fill(np.full(3, 1, ">i4"), np.int32(1))
    assert not only_fill(np.full(3, 2**24, ">i4"), np.int32(1))


def test_only_fill_of_nothing_and_of_objects():
    assert only_fill(np.empty((0, 3)), np.float64(1))
    assert only_fill(np.array(["", ""], object), "")
    assert not only_fill(np.array(["", 0], object), "")
    assert not only_fill(np.array([0, False], object), 0)


def test_a_structured_fill_of_v2_whose_text_holds_no_characters_is_an_error():
    with pytest.raises(MetadataError, match="not a fill value"):
        parse_v2("/////w==", np.dtype([("a", "<U1")]))
