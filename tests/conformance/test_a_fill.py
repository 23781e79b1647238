"""A.4: fill values of v2."""

import base64
import json
import math
import struct

import dask
import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import dump, same, stored, v2

NESTED = [["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]]
NESTED_DTYPE = np.dtype([("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])])


def read(dtype, fill, *, strict=None):
    """Return what an absent chunk of an array reads as."""
    return zarrdask.open_array(stored(v2((2,), (2,), dtype, fill)), strict=strict)[...]


def written(dtype, fill):
    """Return the fill value of the document that we write, which has no token that is not JSON."""
    store = {}
    zarrdask.create_array(store, shape=2, dtype=dtype, fill_value=fill, zarr_format=2)
    return json.loads(store[".zarray"], parse_constant=pytest.fail)["fill_value"]


def filled(dtype, value):
    """Return an array that holds a value twice."""
    values = np.zeros(2, dtype)
    values[:] = value
    return values


SPECIAL = [("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)]


@for_each(("text", "value"), SPECIAL)
@for_each("dtype", ["<f2", "<f4", ">f8"])
def test_a29_nan_and_infinities_are_texts(dtype, text, value):
    same(read(dtype, text, strict=True), filled(dtype, value))
    assert written(dtype, value) == text


@pytest.mark.parametrize(("token", "value"), SPECIAL)
def test_a29_bare_tokens_are_read_unless_strict(token, value):
    store = {".zarray": dump(v2(dtype="<f8", fill_value=value))}
    assert f'"fill_value": {token},'.encode() in store[".zarray"]
    same(zarrdask.open_array(store)[:2], filled("<f8", value))
    with refused("A-29"):
        zarrdask.open_array(store, strict=True)


def test_a29_bare_tokens_are_written_into_attributes_only_and_never_in_strict_mode():
    store = stored(v2(), attributes={"missing": math.nan, "a": 1})
    z = zarrdask.open_array(store, mode="r+")
    assert math.isnan(z.attrs["missing"])
    with refused("A-29"):
        zarrdask.open_array(store, strict=True)
    before = dict(store)
    with dask.config.set({"zarrdask.strict": True}), refused("A-29"):
        z.attrs["a"] = math.inf
    assert store == before
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        zarrdask.create_array(
            store, shape=3, dtype=object, zarr_format=2, fill_value=math.nan, overwrite=True
        )
    assert store == before


@for_each("text", ["nan", "inf", "Inf", "1.5", "", "0x7fc00000", "0x7ff8000000000000"])
def test_a29_other_texts_are_errors(text):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        read("<f8", text, strict=True)


@for_each(
    ("text", "value"),
    [
        ("aGk=", b"hi"),
        (base64.b64encode(b"hi".ljust(12, b"\0")).decode(), b"hi"),
        (base64.b64encode(b"twelve bytes").decode(), b"twelve bytes"),
        ("AGE=", b"\0a"),
        ("", b""),
    ],
)
def test_a30_a_byte_string_is_base64_with_or_without_its_last_zeros(text, value):
    same(read("|S12", text, strict=True), filled("|S12", value))
    assert base64.b64decode(written("|S12", value), validate=True).rstrip(b"\0") == value


def test_a30_null_is_permitted():
    same(read("|S12", None, strict=True), filled("|S12", b""))


@for_each(
    "fill", ["hi", "aGk", "aGk=\n", "a Gk=", "_-==", base64.b64encode(bytes(13)).decode(), 1, True]
)
def test_a30_what_is_not_base64_or_too_long_is_an_error(fill):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        read("|S12", fill)


def test_a31_a_structured_fill_value_is_base64_of_one_packed_element():
    # The text's nested type; by hand: 1.5 and 2.5 as <f4, 7 as <i4.
    text = "AADAPwAAIEAHAAAA"
    assert base64.b64decode(text) == struct.pack("<ffi", 1.5, 2.5, 7)
    assert read(NESTED, text, strict=True).tolist() == [(1.5, (2.5, 7))] * 2
    assert written(NESTED_DTYPE, (1.5, (2.5, 7))) == text


def test_a31_it_is_written_with_exactly_its_size():
    assert base64.b64decode(written([("n", "<i2"), ("s", "S5")], (0, b""))) == bytes(7)


@for_each("size", [1, 11, 13, 24])
def test_a31_another_length_is_an_error(size):
    with pytest.raises(zarrdask.errors.MetadataError, match="12 bytes"):
        read(NESTED, base64.b64encode(bytes(size)).decode())


@for_each("dtype", ["|S1", "|S12", "<U4", "|V5", NESTED])
def test_a32_zero_is_read_as_zeros_unless_strict(dtype):
    expected = read(dtype, None)
    same(read(dtype, 0), expected)
    with refused("A-32"):
        read(dtype, 0, strict=True)


@pytest.mark.parametrize("dtype", ["|V5", NESTED], ids=str)
def test_a32_an_empty_text_is_read_as_zeros_unless_strict(dtype):
    same(read(dtype, ""), read(dtype, None))
    with refused("A-32"):
        read(dtype, "", strict=True)


@pytest.mark.parametrize("dtype", ["|S12", "<U4"])
def test_a32_an_empty_text_is_right_for_texts(dtype):
    same(read(dtype, "", strict=True), read(dtype, None))


@for_each("dtype", ["|S4", "<U4", "|V5", NESTED])
@for_each("fill", [1, False, 0.5, [], {}])
def test_a32_nothing_else_is_taken_for_zeros(dtype, fill):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        read(dtype, fill)


RIGHT = [
    ("<U4", "hé", "hé"),
    (">U4", "abcd", "abcd"),
    ("|V2", "AQI=", b"\1\2"),
    ("|b1", True, True),
    ("|b1", False, False),
    ("|u1", 255, 255),
    ("<i8", -(2**63), -(2**63)),
    (">u8", 18446744073709551615, 18446744073709551615),
    ("<c8", [1.5, -2.0], 1.5 - 2j),
    ("<c16", ["NaN", "-Infinity"], complex(math.nan, -math.inf)),
    ("<M8[ns]", 1, np.datetime64(1, "ns")),
    (">m8[D]", -5, np.timedelta64(-5, "D")),
    ("<M8[s]", -9223372036854775808, np.datetime64("NaT", "s")),
    ("<m8[s]", -9223372036854775808, np.timedelta64("NaT", "s")),
]


@for_each(("dtype", "fill", "value"), RIGHT)
def test_a33_other_types_have_their_spelling(dtype, fill, value):
    same(read(dtype, fill, strict=True), filled(dtype, value))
    assert written(dtype, filled(dtype, value)[0]) == fill


ALTERNATIVES = [
    ("|b1", 1, True),
    ("|b1", 0, False),
    ("<i4", 3.0, 3),
    ("<u8", 1e2, 100),
    ("<M8[s]", "NaT", np.datetime64("NaT", "s")),
    (">m8[D]", "NaT", np.timedelta64("NaT", "D")),
]


@for_each(("dtype", "fill", "value"), ALTERNATIVES)
def test_a33_other_spellings_are_read_unless_strict(dtype, fill, value):
    same(read(dtype, fill), filled(dtype, value))
    with refused("A-33"):
        read(dtype, fill, strict=True)


@for_each(
    ("dtype", "fill"),
    [
        ("|b1", 2),
        ("|b1", "true"),
        ("|b1", 1.0),
        ("<i4", 1.5),
        ("<i4", True),
        ("<i4", "1.5"),
        ("|u1", 256),
        ("|u1", -1),
        ("<u8", 2**64),
        ("<U2", "abc"),
        ("<U2", 5),
        ("|V2", "AQ=="),
        ("|V2", "\1\2"),
        ("<c8", 1.5),
        ("<c8", [1.5]),
        ("<c8", ["one", 0]),
        ("<M8[s]", "2020-01-01"),
        ("<M8[s]", 1.5),
        ("<M8[s]", 2**63),
    ],
)
def test_a33_what_does_not_fit_is_an_error(dtype, fill):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        read(dtype, fill)


@for_each("dtype", ["|b1", "<i4", ">f8", "<c8", "|S3", "<U2", "<M8[s]", "|V3", NESTED])
def test_a34_null_reads_as_zeros_and_stays_null(dtype):
    store = stored(v2((2,), (2,), dtype, None))
    z = zarrdask.open_array(store, mode="r+", strict=True)
    assert z.fill_value is None
    if z.dtype.kind == "M":
        assert np.isnat(z[...]).all()
    else:
        assert z[...].tobytes() == bytes(2 * z.dtype.itemsize)
    z.resize((3,))
    assert json.loads(store[".zarray"])["fill_value"] is None


@for_each(
    ("codec", "empty", "element"),
    [
        ({"id": "vlen-utf8"}, "", "a"),
        ({"id": "vlen-bytes"}, b"", b"a"),
        ({"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": "|u1"}, "", "a"),
        ({"id": "json2"}, None, [1]),
        ({"id": "msgpack2"}, None, [1]),
    ],
)
def test_a34_null_reads_as_no_object_and_stays_null(codec, empty, element):
    # As zarr-python reads the others of a chunk that has one element.
    store = stored(v2((3,), (3,), "|O", None, filters=[codec]))
    z = zarrdask.open_array(store, mode="r+", strict=True)
    assert z.fill_value is None
    assert z[...].tolist() == [empty] * 3
    assert zarrdask.from_zarr(store).compute(scheduler="sync").tolist() == [empty] * 3
    z[1] = element
    assert z[...].tolist() == [empty, element, empty]
    z.resize((4,))
    assert json.loads(store[".zarray"])["fill_value"] is None


@for_each("fill", [b"\0\xff", b"AP8=", b""])
def test_a32_the_fill_value_of_variable_length_bytes_is_base64(fill):
    # zarr-python 3 writes it so.
    text = base64.b64encode(fill).decode()
    store = stored(v2((3,), (3,), "|O", text, filters=[{"id": "vlen-bytes"}]))
    z = zarrdask.open_array(store, mode="r+", strict=True)
    assert z.fill_value == fill
    assert z[...].tolist() == [fill] * 3
    z[1] = b"a"
    assert z[...].tolist() == [fill, b"a", fill]
    z.resize((4,))
    assert json.loads(store[".zarray"])["fill_value"] == text


def test_a32_bytes_that_are_not_base64_are_an_error():
    with pytest.raises(zarrdask.errors.MetadataError, match="base64"):
        zarrdask.open_array(stored(v2((3,), (3,), "|O", "a", filters=[{"id": "vlen-bytes"}])))


def test_a34_null_reads_as_arrays_without_elements():
    codec = {"id": "vlen-array", "dtype": "<i4"}
    store = stored(v2((2,), (2,), "|O", None, filters=[codec]))
    z = zarrdask.open_array(store, mode="r+")
    assert [element.tolist() for element in z[...]] == [[], []]
    z[1] = np.arange(2, dtype="i4")
    assert [element.tolist() for element in z[...]] == [[], [0, 1]]
    z.resize((3,))
    assert json.loads(store[".zarray"])["fill_value"] is None
