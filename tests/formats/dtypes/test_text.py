"""Text and bytes, of a fixed length and of any."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from tests.formats.dtypes.contract import check_fills, check_metadata
from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.registry import find_data_type, of_dtype, parse_data_type

FIXED = {"fixed_length_utf32": "U", "null_terminated_bytes": "S", "raw_bytes": "V"}
#: Without zeros at the end, which NumPy can't tell from the padding.
texts = st.text(st.characters(codec="utf-8")).filter(lambda text: not text.endswith("\0"))


def of(name, length):
    return {"name": name, "configuration": {"length_bytes": length}}


@for_each(
    ("name", "length", "dtype"),
    [
        ("fixed_length_utf32", 4, "U1"),
        ("fixed_length_utf32", 40, "U10"),
        ("null_terminated_bytes", 1, "S1"),
        ("null_terminated_bytes", 7, "S7"),
        ("raw_bytes", 3, "V3"),
    ],
)
def test_types_of_a_fixed_length(name, length, dtype):
    data_type = parse_data_type(of(name, length))
    assert data_type.dtype == np.dtype(dtype)
    assert data_type.to_json() == of(name, length)
    assert data_type.serializer == "bytes"
    check_metadata(data_type)
    check_fills(data_type)


def test_numpys_text_and_bytes_have_these_names():
    assert of_dtype(np.dtype("U3")).to_json() == of("fixed_length_utf32", 12)
    assert of_dtype(np.dtype(">U3")).to_json() == of("fixed_length_utf32", 12)
    assert of_dtype(np.dtype("S3")).to_json() == of("null_terminated_bytes", 3)
    assert of_dtype(np.dtype("V3")).to_json() == "r24"


@for_each("name", FIXED)
@for_each("length", [0, -4, 4.0, "4", True, None, 2**31])
def test_a_length_is_positive_and_not_too_large(name, length):
    with pytest.raises(MetadataError, match="length_bytes"):
        parse_data_type(of(name, length))


@for_each("length", [1, 2, 3, 6])
def test_a_code_point_has_four_bytes(length):
    with pytest.raises(MetadataError, match="multiple of 4"):
        parse_data_type(of("fixed_length_utf32", length))


@for_each("name", FIXED)
@for_each("configuration", [{}, {"length": 4}, {"length_bytes": 4, "endian": "big"}])
def test_the_configuration_is_the_length(name, configuration):
    with pytest.raises(MetadataError, match=name):
        parse_data_type({"name": name, "configuration": configuration})


@given(texts)
def test_a_fixed_text_is_its_own_spelling(text):
    data_type = of_dtype(np.dtype(f"U{len(text) or 1}"))
    value = data_type.parse_fill(text)
    assert value == text
    assert data_type.render_fill(value) == text
    check_fills(data_type, value)


@for_each("value", ["abc", 0, None, ["a"], b"a"])
def test_what_is_no_text_that_fits_is_an_error(value):
    with pytest.raises(MetadataError) as caught:
        parse_data_type(of("fixed_length_utf32", 8)).parse_fill(value)
    assert (caught.value.key, caught.value.found) == ("fill_value", value)


@pytest.mark.parametrize("name", ["null_terminated_bytes", "raw_bytes"])
@given(st.binary(min_size=5, max_size=5))
def test_fixed_bytes_are_base64(name, data):
    data_type = parse_data_type(of(name, 5))
    value = data_type.parse_fill(base64.b64encode(data).decode())
    assert np.asarray(value, data_type.dtype).tobytes() == data
    check_fills(data_type, value)


def test_zeros_at_the_end_may_be_left_out():
    data_type = parse_data_type(of("null_terminated_bytes", 4))
    assert data_type.parse_fill("eA==") == data_type.parse_fill("eAAAAA==") == b"x"


@for_each(
    ("name", "value"),
    [
        ("null_terminated_bytes", "AAAAAAAA"),
        ("null_terminated_bytes", "?"),
        ("null_terminated_bytes", 0),
        ("null_terminated_bytes", None),
        ("raw_bytes", "AAA="),
        ("raw_bytes", "AAAAAAAA"),
        ("raw_bytes", [0, 0, 0, 0]),
    ],
)
def test_what_is_no_base64_of_the_length_is_an_error(name, value):
    with pytest.raises(MetadataError) as caught:
        parse_data_type(of(name, 4)).parse_fill(value)
    assert (caught.value.key, caught.value.found) == ("fill_value", value)


# --------------------------------------------------------------------------------------------
# Of any length


@pytest.mark.parametrize(
    ("name", "serializer"),
    [("string", "vlen-utf8"), ("bytes", "vlen-bytes"), ("variable_length_bytes", "vlen-bytes")],
)
def test_types_of_any_length_are_objects_and_keep_their_names(name, serializer):
    data_type = parse_data_type(name)
    assert data_type.dtype == np.dtype(object)
    assert data_type.to_json() == name
    assert data_type.serializer == serializer
    check_metadata(data_type)
    check_fills(data_type)
    with pytest.raises(MetadataError, match=name):
        parse_data_type({"name": name, "configuration": {"length_bytes": 4}})


@given(st.text(st.characters(codec="utf-8")))
def test_a_text_is_its_own_spelling(text):
    assert parse_data_type("string").parse_fill(text) == text
    check_fills(parse_data_type("string"), text)


@given(st.binary())
def test_bytes_are_base64_or_a_list(data):
    data_type = parse_data_type("bytes")
    spelled = base64.b64encode(data).decode()
    assert data_type.parse_fill(spelled) == data_type.parse_fill(list(data)) == data
    assert data_type.render_fill(data) == spelled
    check_fills(data_type, data)


@for_each(
    ("name", "value"),
    [
        ("string", 0),
        ("string", None),
        ("string", ["a"]),
        ("bytes", 0),
        ("bytes", None),
        ("bytes", "?"),
        ("bytes", [256]),
        ("bytes", [-1]),
        ("bytes", [True]),
        ("bytes", [1.0]),
    ],
)
def test_what_is_neither_text_nor_bytes_is_an_error(name, value):
    with pytest.raises(MetadataError) as caught:
        parse_data_type(name).parse_fill(value)
    assert (caught.value.key, caught.value.found) == ("fill_value", value)


def test_a_users_fill_value_has_the_right_type():
    assert find_data_type("string").cast(np.str_("a")) == "a"
    assert type(find_data_type("string").cast(np.str_("a"))) is str
    assert find_data_type("bytes").cast(bytearray(b"a")) == b"a"
    assert type(find_data_type("bytes").cast(np.bytes_(b"a"))) is bytes
    for name, value in (("string", b"a"), ("string", 0), ("bytes", "a"), ("bytes", 0)):
        with pytest.raises(MetadataError):
            find_data_type(name).cast(value)
