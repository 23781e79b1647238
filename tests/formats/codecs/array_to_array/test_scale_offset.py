"""``scale_offset``."""

import math
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.codec import check_array_array, check_json, check_value
from tests.covering import for_each
from tests.documents import same
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.array_to_array.scale_offset import ScaleOffsetCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ml_dtypes.int4, ml_dtypes.uint4]


@for_each(
    ("members", "chunk"),
    [
        ({"offset": 5, "scale": 0.5}, np.array([[5.0, 6.0], [7.5, -1.0]], "f4")),
        ({"offset": 1000}, np.array([1000, 1255], "u2")),
        ({"scale": 4}, np.array([-3, 0, 5], "i8")),
        ({"scale": -1, "offset": -3}, np.array([-3, 0, 5], "i2")),
        ({}, np.array([1, 2], "u8")),
        ({"offset": 1, "scale": 2}, np.array([1.0, -0.5], ml_dtypes.bfloat16)),
        ({"offset": 1}, np.array([1, 7], ml_dtypes.int4)),
        ({"offset": "0x3f800000"}, np.array([1.0, 3.0], "f4")),
    ],
)
def test_numbers_survive(members, chunk):
    codec = ScaleOffsetCodec(**members)
    check_array_array(codec, chunk, chunk.flat[0])
    check_json(codec, parse_codec)


def test_without_a_configuration_nothing_happens():
    codec = parse_codec("scale_offset")
    check_value(codec)
    assert codec.to_json() == {"name": "scale_offset"}
    same(codec.encode(np.array([1.5])), np.array([1.5]))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_floats_are_computed_in_their_own_type(dtype):
    chunk = np.array([0.1, 3.7, -12.3], dtype)
    codec = ScaleOffsetCodec(0.3, 0.7)
    offset, scale = np.array([0.3, 0.7], dtype)
    stored = (chunk - offset) * scale
    same(codec.encode(chunk), stored)
    spec = ChunkSpec((3,), np.dtype(dtype), np.dtype(dtype).type(0))
    same(codec.decode(stored, spec), stored / scale + offset)


@cache
def settings_and_values(low, high):
    """An offset, a scale, and some numbers, all of a range."""
    number = st.integers(low, high) | st.sampled_from([low, high, 0, 1, 2])
    return st.tuples(number, number.filter(bool), st.lists(number, min_size=1, max_size=4))


@for_each("dtype", INTEGERS)
@given(st.data())
def test_integers_are_exact_or_an_error(dtype, data):
    dtype = np.dtype(dtype)
    name = dtype.type.__name__
    bits = int(name.strip("uint"))
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    offset, scale, values = data.draw(settings_and_values(low, high))
    codec = ScaleOffsetCodec(offset, scale)
    chunk = (
        np.array(values, "i8" if low else "u8").astype("i1" if low else "u1")
        if (dtype.itemsize == 1 and bits < 8)
        else np.array(values, dtype)
    )
    chunk = chunk.astype(dtype)
    between = [value - offset for value in values]
    after = [value * scale for value in between]
    if all(low <= value <= high for value in between + after):
        stored = codec.encode(chunk)
        assert (stored.dtype, [int(v) for v in stored]) == (dtype, after)
        found = codec.decode(stored, ChunkSpec(chunk.shape, dtype, 0))
        assert [int(v) for v in found] == values
    else:
        with pytest.raises(CodecError):
            codec.encode(chunk)
    back = [Fraction(value, scale) for value in values]
    spec = ChunkSpec(chunk.shape, dtype, 0)
    if all(n.denominator == 1 and low <= n <= high and low <= n + offset <= high for n in back):
        assert [int(v) for v in codec.decode(chunk, spec)] == [n + offset for n in back]
    else:
        with pytest.raises(CodecError):
            codec.decode(chunk, spec)


@for_each(
    ("members", "dtype", "value"),
    [
        ({"offset": -3e38}, "f4", 3e38),
        ({"scale": 1e300}, "f8", 1e10),
        ({"scale": 2}, ml_dtypes.float4_e2m1fn, 6),
        ({"scale": 2}, ml_dtypes.float8_e4m3fn, 448),
    ],
)
def test_what_leaves_the_range_is_an_error(members, dtype, value):
    with pytest.raises(CodecError, match="range"):
        ScaleOffsetCodec(**members).encode(np.array([value], dtype))


def test_infinity_and_nan_stay_what_they_are():
    chunk = np.array([math.inf, -math.inf, math.nan])
    codec = ScaleOffsetCodec(5, 2)
    same(codec.encode(chunk), chunk)
    same(codec.decode(chunk, ChunkSpec((3,), np.dtype("f8"), 0.0)), chunk)


def test_the_fill_value_is_transformed():
    spec = ChunkSpec((2,), np.dtype("i4"), np.int32(10))
    assert ScaleOffsetCodec(4, 3).resolve(spec) == ChunkSpec((2,), np.dtype("i4"), np.int32(18))
    spec = ChunkSpec((2,), np.dtype("u1"), np.uint8(0))
    with pytest.raises(MetadataError, match="fill value"):
        ScaleOffsetCodec(1).resolve(spec)


@for_each(
    ("members", "dtype"),
    [
        ({"scale": 0}, "i4"),
        ({"scale": 0.0}, "f4"),
        ({"scale": "NaN"}, "f4"),
        ({"offset": "Infinity"}, "f4"),
        ({"scale": 0.1}, "i4"),
        ({"offset": -1}, "u1"),
        ({"offset": 256}, "u1"),
        ({"offset": "five"}, "f8"),
        ({}, "?"),
        ({}, "c8"),
        ({}, "M8[s]"),
        ({}, "O"),
    ],
)
def test_what_does_not_fit_the_data_type_is_an_error_at_open(members, dtype):
    fill = np.zeros((), dtype)[()]
    with pytest.raises(MetadataError):
        ScaleOffsetCodec(**members).resolve(ChunkSpec((2,), np.dtype(dtype), fill))


@for_each("members", [{"offset": True}, {"scale": [1, 2]}, {"scale": {}}, {"factor": 2}])
def test_a_wrong_configuration_is_an_error(members):
    with pytest.raises(MetadataError, match="scale_offset"):
        parse_codec({"name": "scale_offset", "configuration": members})
