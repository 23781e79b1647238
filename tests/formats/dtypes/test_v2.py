"""v2's typestrs and field lists."""

import json

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.dtypes.v2 import parse_dtype, render_dtype

# Conformance.
TYPESTRS = [
    "|b1",
    "|i1",
    "|u1",
    "<i2",
    ">i2",
    "<i4",
    ">i4",
    "<i8",
    ">i8",
    "<u2",
    ">u2",
    "<u4",
    ">u4",
    "<u8",
    ">u8",
    "<f2",
    ">f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "<c8",
    ">c8",
    "<c16",
    ">c16",
    "|S12",
    "<U4",
    ">U4",
    "|V5",
    "<M8[ns]",
    ">m8[D]",
    "<M8[25s]",
    "<M8[Y]",
    "<m8[us]",
    "<M8[W]",
    "<m8[as]",
    "|O",
]


@for_each("text", TYPESTRS)
def test_typestrs_survive(text):
    dtype = parse_dtype(text)
    assert dtype.str == text
    assert render_dtype(dtype) == text


@for_each(
    ("text", "expected"), [("<u1", "|u1"), (">b1", "|b1"), ("<S3", "|S3"), ("<M8[μs]", "<M8[us]")]
)
def test_other_spellings_are_read(text, expected):
    assert render_dtype(parse_dtype(text)) == expected


STRUCTURED = [
    ([["r", "|u1"], ["g", "|u1"], ["b", "|u1"]], 3),
    ([["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]], 24),
    ([["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]], 12),
    ([["a", ">i2"], ["b", "|S3"], ["c", "<M8[s]"], ["d", [["e", "<U2", [3]]], [2]]], 61),
]


@for_each(("fields", "size"), STRUCTURED)
def test_structured_types_are_packed_and_survive(fields, size):
    dtype = parse_dtype(json.loads(json.dumps(fields)))
    assert dtype.itemsize == size
    assert json.loads(json.dumps(render_dtype(dtype))) == fields


def test_the_shape_of_a_field_may_be_one_integer():
    assert parse_dtype([["a", "<i2", 3]]) == np.dtype([("a", "<i2", (3,))])


@for_each(
    "value",
    [
        "f8",
        "<|f8",
        "|f8",
        "|i4",
        "|U4",
        "<M8[]",
        "<M8[fortnight]",
        "<f8[s]",
        "<f",
        "",
        "float64",
        "<f8 ",
        "(2,3)<i2",
        "<x4",
        None,
        5,
        {},
        [],
        [["a"]],
        [["a", "<i4", 2, 3]],
        [["", "<i4"]],
        [[1, "<i4"]],
        ["a", "<i4"],
        [["a", "f8"]],
        [["a", "<i4", -1]],
        [["a", "<i4", [1.5]]],
        [["a", "<i4", "2"]],
        [["a", "<i4"], ["a", "<f4"]],
    ],
)
def test_what_is_no_data_type_is_an_error_that_shows_it(value):
    with pytest.raises(MetadataError) as caught:
        parse_dtype(value)
    assert caught.value.key.startswith("dtype")


@for_each("text", ["<f7", "<i3", "<c4", "<f128", "|b2", "<M4[s]", "<u99999999999999"])
def test_types_that_numpy_lacks_are_named(text):
    with pytest.raises(ZarrdaskError) as caught:
        parse_dtype(text)
    assert caught.value.found == text


def test_a_wrong_field_is_named():
    with pytest.raises(MetadataError, match=r"dtype\.bar\.qux"):
        parse_dtype([["foo", "<f4"], ["bar", [["qux", "i4"]]]])


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("a", "i1"), ("b", "i4")], align=True),
        np.dtype({"names": ["a"], "formats": ["i1"], "offsets": [3]}),
        np.dtype(("i4", (2,))),
    ],
)
def test_types_that_v2_cannot_name_are_refused(dtype):
    with pytest.raises(UnsupportedError):
        render_dtype(dtype)


@pytest.mark.parametrize("dtype", ["M8", "m8"])
def test_a_field_without_unit_is_refused(dtype):
    with pytest.raises(MetadataError, match="unit"):
        render_dtype(np.dtype([("t", dtype)]))
    with pytest.raises(MetadataError, match="unit"):
        parse_dtype([["t", f"<{dtype}"]])


@for_each(
    "value",
    [
        "<M8[0s]",
        "<M8[s/3]",
        "<M8[s/0]",
        "<M8[s/4294967296]",
        [["a", "|V2147483647"], ["b", "|V2147483647"]],
    ],
)
def test_what_numpy_has_not_or_can_not_compute_with_is_an_error(value):
    with pytest.raises((MetadataError, UnsupportedError)):
        parse_dtype(value)
