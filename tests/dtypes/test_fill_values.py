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
from zarrdask.dtypes.fill_values import (
    cast,
    only_fill,
    parse_v2,
    parse_v3,
    render_v2,
    render_v3,
    zero,
)
from zarrdask.errors import MetadataError


def bits(value):
    """Return a scalar's bytes, most significant first, in hex."""
    return np.asarray(value).astype(np.asarray(value).dtype.newbyteorder(">")).tobytes().hex()


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


@for_each(("dtype", "json_value", "expected"), V3)
def test_v3_fill_values_have_the_bits_that_the_specification_says(dtype, json_value, expected):
    value = parse_v3(json.loads(json.dumps(json_value)), np.dtype(dtype))
    assert bits(value) == expected
    assert value.dtype == dtype


@for_each(
    ("dtype", "json_value", "expected"),
    [
        ("complex64", [1, -2.5], "3f800000c0200000"),
        ("complex64", ["NaN", "-Infinity"], "7fc00000ff800000"),
        ("complex64", ["0x7fc00001", -0.0], "7fc0000180000000"),
        ("complex128", [0.5, "Infinity"], "3fe00000000000007ff0000000000000"),
    ],
)
def test_v3_complex_fill_values_are_pairs(dtype, json_value, expected):
    value = parse_v3(json_value, np.dtype(dtype))
    part = f">f{np.dtype(dtype).itemsize // 2}"
    pair = np.asarray(value).reshape(1).view(part.replace(">", "=")).astype(part)
    assert pair.tobytes().hex() == expected
    assert render_v3(value, np.dtype(dtype)) == pytest.approx(json_value, nan_ok=True) or (
        json.dumps(render_v3(value, np.dtype(dtype))) == json.dumps(json_value)
    )


def test_v3_raw_fill_values_are_lists_of_bytes():
    value = parse_v3([1, 0, 255], np.dtype("V3"))
    assert value.tobytes() == b"\x01\x00\xff"
    assert render_v3(value, np.dtype("V3")) == [1, 0, 255]


@for_each(
    ("dtype", "value", "expected"),
    [
        ("float32", np.float32("nan"), "NaN"),
        ("float32", np.uint32(0x7FC00001).view("f4"), "0x7fc00001"),
        ("float32", np.uint32(0xFFC00000).view("f4"), "0xffc00000"),
        ("float64", np.uint64(0x7FF8000000000001).view("f8"), "0x7ff8000000000001"),
        ("float16", np.uint16(0xFE00).view("f2"), "0xfe00"),
        ("float32", np.float32("inf"), "Infinity"),
        ("float64", np.float64("-inf"), "-Infinity"),
        ("uint64", np.uint64(2**64 - 1), 2**64 - 1),
        ("int64", np.int64(-(2**63)), -(2**63)),
        ("bool", np.True_, True),
    ],
)
def test_v3_fill_values_are_written_in_the_specifications_spelling(dtype, value, expected):
    result = render_v3(value, np.dtype(dtype))
    assert result == expected
    assert type(result) is type(expected)


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
        ("bool", 2),
        ("bool", 0.0),
        ("bool", "true"),
        ("bool", None),
        ("uint8", 256),
        ("uint8", -1),
        ("int8", 128),
        ("int64", 2**63),
        ("uint64", 2**64),
        ("uint64", -1),
        ("int32", 1.0),
        ("int32", 1.5),
        ("int32", True),
        ("int32", "1"),
        ("int32", None),
        ("int32", [1]),
        ("float32", None),
        ("float32", True),
        ("float32", "nan"),
        ("float32", "1.5"),
        ("float32", "0x7fc0"),
        ("float32", "0x7fc000000"),
        ("float32", "0xzzzzzzzz"),
        ("float32", "7fc00000"),
        ("float64", "0x7fc00000"),
        ("float64", [1.0]),
        ("float64", 10**400),
        ("complex64", 1.0),
        ("complex64", [1.0]),
        ("complex64", [1.0, 2.0, 3.0]),
        ("complex64", "NaN"),
        ("V3", [1, 2]),
        ("V3", [1, 2, 3, 4]),
        ("V3", [1, 2, 256]),
        ("V3", [1, 2, -1]),
        ("V3", [1, 2, True]),
        ("V3", "AAAA"),
        ("V3", None),
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


@for_each(("dtype", "json_value", "expected"), V2)
def test_v2_fill_values_mean_what_the_conventions_say(dtype, json_value, expected):
    value = parse_v2(json_value, np.dtype(dtype))
    same(np.array(value, dtype), np.array(expected, dtype))


def test_a_structured_v2_fill_value_is_base64_of_one_packed_element():
    # The example of conformance A-31.
    value = parse_v2("AADAPwAAIEAHAAAA", NESTED)
    assert value.tolist() == (1.5, (2.5, 7))
    assert render_v2(value, NESTED) == "AADAPwAAIEAHAAAA"


def test_old_files_have_zero_as_a_structured_fill_value():
    assert parse_v2(0, NESTED).tolist() == (0.0, (0.0, 0))
    assert parse_v2("", NESTED).tolist() == (0.0, (0.0, 0))


@for_each("dtype", ["<i4", "<f8", "|S3", "<U2", "<M8[s]", NESTED, object])
def test_a_null_v2_fill_value_is_none(dtype):
    assert parse_v2(None, np.dtype(dtype)) is None
    assert render_v2(None, np.dtype(dtype)) is None


def test_the_fill_value_of_objects_is_json_as_it_stands():
    assert parse_v2("text", np.dtype(object)) == "text"
    assert render_v2("text", np.dtype(object)) == "text"


@for_each(
    ("dtype", "value", "expected"),
    [
        ("<f8", np.float64("nan"), "NaN"),
        ("<f4", np.uint32(0x7FC00001).view("f4"), "NaN"),
        ("<f8", np.float64("inf"), "Infinity"),
        (">f8", np.float64("-inf"), "-Infinity"),
        ("<u8", np.uint64(2**64 - 1), 2**64 - 1),
        ("|b1", np.True_, True),
        ("<c8", np.complex64(complex(1, math.inf)), [1.0, "Infinity"]),
        ("|S3", np.bytes_(b"hey"), "aGV5"),
        ("<U3", np.str_("hé"), "hé"),
        ("<M8[s]", np.datetime64("NaT", "s"), -9223372036854775808),
        ("<m8[D]", np.timedelta64(4, "D"), 4),
        ("|V2", np.void(b"\x01\x02"), "AQI="),
    ],
)
def test_v2_fill_values_are_written_in_the_specifications_spelling(dtype, value, expected):
    result = render_v2(value, np.dtype(dtype))
    assert result == expected
    assert json.loads(json.dumps(result, allow_nan=False)) == expected


def test_a_short_text_is_base64_with_or_without_its_zeros():
    # A-30 permits both.
    text = render_v2(np.bytes_(b"hi"), np.dtype("S3"))
    assert base64.b64decode(text).rstrip(b"\0") == b"hi"


def test_a_structured_fill_value_is_written_with_exactly_its_size():
    dtype = np.dtype([("n", "<i2"), ("s", "S5")])
    text = render_v2(zero(dtype), dtype)
    assert base64.b64decode(text) == bytes(7)


@for_each(
    ("dtype", "value"),
    [
        ("|b1", 2),
        ("|b1", "true"),
        ("<i4", 1.5),
        ("<i4", "1"),
        ("<i4", True),
        ("|u1", 256),
        ("<u8", 2**64),
        ("<f8", "nan"),
        ("<f8", []),
        ("<f8", 10**400),
        ("<c8", 5),
        ("|S2", "aGkhIQ=="),
        ("|S2", "not base64!"),
        ("|S2", "é"),
        ("|S2", 7),
        ("|S2", False),
        ("<U2", 7),
        ("|V2", "AQ=="),
        ("|V2", "AQID"),
        ("<M8[s]", "2020"),
        ("<M8[s]", 1.5),
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


def test_a_wrong_part_of_a_complex_fill_value_is_an_error():
    with pytest.raises(MetadataError):
        parse_v3([1.0, None], np.dtype("c8"))


def test_a_structured_fill_of_v2_whose_text_holds_no_characters_is_an_error():
    with pytest.raises(MetadataError, match="not a fill value"):
        parse_v2("/////w==", np.dtype([("a", "<U1")]))
