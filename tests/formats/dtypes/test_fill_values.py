"""Fill values and their JSON, exact to the last bit."""

import base64
import math
import warnings

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import same
from tests.formats.dtypes.fills import NESTED
from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.fill_values import cast, only_fill, zero

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


@pytest.mark.parametrize(
    ("hours", "dtype", "days"), [(48, "m8[D]", 2), (30, "m8[D]", None), (36, "m8[12h]", 1.5)]
)
def test_a_duration_in_another_unit_is_cast_if_it_stays_the_same(hours, dtype, days):
    value, dtype = np.timedelta64(hours, "h"), np.dtype(dtype)
    if days is None:
        with pytest.raises(MetadataError, match="invalid fill value"):
            cast(value, dtype)
    else:
        assert cast(value, dtype) / np.timedelta64(1, "D") == days


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (123, "U2"),
        (1.25, "S3"),
        (np.timedelta64(30, "h"), "f4"),
        (np.timedelta64(30, "h"), "i4"),
        (np.datetime64("2020"), "m8[D]"),
    ],
)
def test_a_value_of_another_kind_that_would_change_is_refused(value, dtype):
    with pytest.raises(MetadataError, match="invalid fill value"):
        cast(value, np.dtype(dtype))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "field",
    ["<M8[25s]", "<m8[7D]", ">M8[ns]", "<U3", "S2", "V2", "?", "<f2", ("<M8[25s]", (2,))],
    ids=str,
)
def test_fill_values_of_structured_types_are_read_as_they_were_stored(zarr_format, field):
    dtype = np.dtype([("n", "<i2"), ("v", *(field if isinstance(field, tuple) else (field,)))])
    fill = np.zeros((), dtype)
    fill["n"] = -3
    for value in (fill, np.frombuffer(fill.tobytes().replace(b"\0", b"\1"), dtype)[0]):
        if np.dtype(dtype["v"]).base.kind == "U" and value["v"] != "":
            continue  # \1\1\1\1 is no character
        store = {}
        options = {"shape": 2, "dtype": dtype, "fill_value": value, "zarr_format": zarr_format}
        try:
            zarrdask.create_array(store, **options)
        except zarrdask.ZarrdaskError:
            assert zarr_format == 3  # which has no such field
            return
        found = zarrdask.open_array(store)[...]
        assert found.tobytes() == 2 * np.asarray(value).tobytes()
