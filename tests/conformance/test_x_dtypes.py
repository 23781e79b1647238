"""Conformance, readings of what is ambiguous in final v3: data types and fill values."""

import json
import struct

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import LITTLE, sharding, stored, v3
from zarrdask.errors import ComplianceWarning

BYTES = {"name": "bytes"}
SECONDS = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
STRUCTURED = {"name": "structured", "configuration": {"fields": [["a", "uint8"], ["b", "int16"]]}}


def opened(data_type, fill_value, data=None, codecs=(LITTLE,), **how):
    document = v3((2,), (2,), data_type, fill_value, codecs)
    return zarrdask.open_array(stored(document, {} if data is None else {"c/0": data}), **how)


@pytest.mark.parametrize(
    ("data_type", "fill", "data", "values"),
    [
        ("bool", False, b"\0\1", [False, True]),
        ("float16", 0, struct.pack("<2e", 1.5, -2), [1.5, -2.0]),
    ],
)
def test_xc2_bool_and_float16_are_there_as_in_core_31(data_type, fill, data, values):
    z = opened(data_type, fill, data)
    assert z[...].tolist() == values
    assert z.metadata.data_type.to_json() == data_type


def test_xc6_a_raw_fill_value_has_one_integer_a_byte():
    assert opened("r24", [0, 0, 0]).fill_value.tobytes() == bytes(3)
    for wrong in ([0] * 24, [0], [0] * 4):
        with pytest.raises(zarrdask.errors.MetadataError, match="3 integers"):
            opened("r24", wrong)


# --------------------------------------------------------------------------------------------
# The order of bytes that structured leaves out


@pytest.mark.parametrize("codecs", [[BYTES], [sharding((1,), [BYTES])]])
def test_xc7_structured_without_a_byte_order_is_little_endian(codecs):
    little = [LITTLE] if codecs == [BYTES] else [sharding((1,), [LITTLE])]
    store = stored(v3((2,), (2,), STRUCTURED, "AAAA", little))
    zarrdask.open_array(store, mode="r+")[...] = np.array([(1, 2), (3, -4)], "u1,i2")
    with pytest.warns(ComplianceWarning, match="X-C7"):
        z = opened(STRUCTURED, "AAAA", store["c/0"], codecs)
    assert z[...].tolist() == [(1, 2), (3, -4)]


def test_xc7_structured_without_a_byte_order_is_an_error_in_strict_mode():
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C7"):
        opened(STRUCTURED, "AAAA", codecs=[BYTES], strict=True)


def test_xc7_structured_with_a_byte_order_has_that_one():
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    assert opened(STRUCTURED, "AAAA", b"\1\0\2\3\xff\xfc", [big])[...].tolist() == [(1, 2), (3, -4)]


def test_xc7_structured_of_single_bytes_needs_none():
    data_type = {"name": "structured", "configuration": {"fields": [["a", "uint8"], ["b", "int8"]]}}
    z = opened(data_type, "AAA=", b"\1\2\3\xfc", [BYTES], strict=True)
    assert z[...].tolist() == [(1, 2), (3, -4)]


@for_each("data_type", ["uint16", "float32", "complex64", "bfloat16", SECONDS])
def test_xc7_any_other_type_of_several_bytes_needs_a_byte_order(data_type):
    fill = [0, 0] if data_type == "complex64" else 0
    with pytest.raises(zarrdask.errors.MetadataError, match="byte order"):
        opened(data_type, fill, codecs=[BYTES])


# --------------------------------------------------------------------------------------------
# Files of 2023


@pytest.mark.parametrize("value", [0, 1])
def test_xc11_a_boolean_fill_value_may_be_a_number(value):
    assert opened("bool", value)[...].tolist() == [bool(value)] * 2
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C11"):
        opened("bool", value, strict=True)


def test_xc11_the_fallback_of_a_known_data_type_is_ignored():
    z = opened({**SECONDS, "fallback": "int64"}, 0, struct.pack("<2q", 1, 2))
    assert z.dtype == np.dtype("M8[s]")
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C11"):
        opened({**SECONDS, "fallback": "int64"}, 0, strict=True)


def test_xc11_an_unknown_data_type_is_read_as_its_fallback_with_a_warning():
    unknown = {"name": "calendar", "configuration": {}, "fallback": ["moons", "int64"]}
    with pytest.warns(ComplianceWarning, match="X-C11"):
        z = opened(unknown, 0, struct.pack("<2q", 1, 2))
    assert z[...].tolist() == [1, 2]
    with pytest.raises(zarrdask.errors.UnsupportedError, match="calendar"):
        opened({**unknown, "fallback": "moons"}, 0)


# --------------------------------------------------------------------------------------------
# NaN


def test_xc13_nan_is_the_canonical_one_whatever_was_meant_and_compares_as_such():
    z = opened("float64", "NaN")
    assert np.isnan(z.fill_value)
    assert z.fill_value.tobytes().hex() == "000000000000f87f"
    assert z.metadata == opened("float64", "0x7ff8000000000000").metadata
    np.testing.assert_array_equal(opened("float64", "0x7ff8000000000123")[...], z[...])


@pytest.mark.parametrize("pattern", ["0x7ff8000000000123", "0xfff8000000000000"])
def test_xc13_a_payload_is_kept_from_hex(pattern):
    store = stored(v3((2,), (2,), "float64", pattern))
    z = zarrdask.open_array(store, mode="r+")
    assert f"0x{int(z[...].view('u8')[0]):016x}" == pattern
    z.attrs["changed"] = True
    assert json.loads(store["zarr.json"])["fill_value"] == pattern


def test_xc13_a_chunk_of_nans_with_another_payload_is_not_the_fill_value():
    store = stored(v3((2,), (2,), "float64", "NaN"))
    z = zarrdask.open_array(store, mode="r+")
    z[...] = np.array([0x7FF8000000000123] * 2, "u8").view("f8")
    assert store["c/0"].hex() == "230100000000f87f" * 2
    z[...] = np.nan
    assert "c/0" not in store
