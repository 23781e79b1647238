"""Numbers as another data type, against exact arithmetic."""

import math
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covering import for_each
from tests.formats.codecs.exact import FLOATS, INTEGERS, OutOfRange, cast_one
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.array_to_array.cast import ROUNDINGS, bit_length, cast
from zarrdask.formats.dtypes.ml import kind_of, limits, name_of

EDGES = [
    *(0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 4503599627370497.5),
    *(127.5, 128.0, 255.5, -128.5, 65504.0, 65519.9, 65520.0, 2.0**31, 2.0**32, 2.0**53 + 2),
    *(2.0**63, -(2.0**63), 2.0**64, 3.4028235e38, 3.4028236e38, 1e300, 5e-324, 2.0**-150),
    *(448.0, 464.0, 480.0, 6.0, 7.0, 240.0, 57344.0, math.inf, -math.inf, math.nan),
]


@cache
def numbers(dtype):
    """A strategy for scalars of a type: any, and those where roundings and ranges differ."""
    if kind_of(dtype) != "f":
        low, high = limits(dtype)
        near = [n + d for n in (0, *(2**k for k in range(64))) for d in (-1, 0, 1)]
        near += [-n for n in near]
        edges = [n for n in {low, high, *near} if low <= n <= high]
        wide = np.dtype(("i" if low else "u") + str(max(dtype.itemsize, 1)))
        return (st.integers(low, high) | st.sampled_from(sorted(edges))).map(
            lambda n: np.array(n, wide).astype(dtype)[()]
        )
    bits = st.integers(0, 2 ** (dtype.itemsize * 8) - 1)
    with np.errstate(all="ignore"):
        edges = [np.array(n).astype(dtype)[()] for n in EDGES]
    raw = bits.map(lambda n: np.array(n, f"u{dtype.itemsize}").reshape(1).view(dtype)[0])
    return raw | st.sampled_from(edges)


def check_one(value, dtype, rounding, out_of_range):
    given_ = np.array([value, value], value.dtype)
    try:
        expected = cast_one(value, dtype, rounding, out_of_range)
    except OutOfRange:
        with pytest.raises(CodecError):
            cast(given_, dtype, rounding, out_of_range)
        return
    found = cast(given_, dtype, rounding, out_of_range)
    assert (found.dtype, found.shape) == (dtype, (2,))
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(float(found[0]))
    elif kind_of(dtype) == "f":
        assert float(found[0]) == expected
        if kind_of(value.dtype) == "f" and "fnu" not in (name_of(dtype) or ""):
            assert math.copysign(1, float(found[0])) == math.copysign(1, float(value))
    else:
        assert int(found[0]) == expected


@settings(max_examples=300)
@given(st.data(), st.sampled_from(INTEGERS + FLOATS), st.sampled_from(INTEGERS + FLOATS))
def test_each_number_becomes_what_exact_arithmetic_says(data, source, target):
    out_of_range = data.draw(st.sampled_from([None, "clamp", "wrap"]))
    if out_of_range == "wrap" and kind_of(target) == "f":
        out_of_range = None
    rounding = data.draw(st.sampled_from(ROUNDINGS))
    check_one(data.draw(numbers(source)), target, rounding, out_of_range)


@for_each("rounding", ROUNDINGS)
def test_halves_and_what_is_near_them(rounding):
    for value in (0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 0.51, -2.49, -2.51):
        check_one(np.float64(value), np.dtype("i1"), rounding, None)


@for_each("dtype", ["f4", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@for_each("rounding", ROUNDINGS)
def test_integers_of_64_bits_do_not_go_through_a_narrower_type(rounding, dtype):
    for value in (2**63 - 1, 2**53 + 1, 2**24 + 1, 2**62 + 2**38 + 1, 2**62 + 2**55 + 1):
        check_one(np.int64(value), np.dtype(dtype), rounding, "clamp")
        check_one(np.int64(-value), np.dtype(dtype), rounding, "clamp")
        check_one(np.uint64(2**63 + value), np.dtype(dtype), rounding, "clamp")


@pytest.mark.parametrize("order", [">", "<"])
def test_the_byte_order_does_not_matter(order):
    values = np.array([1.5, -2.5], f"{order}f8")
    assert cast(values, np.dtype("i2"), "nearest-even", None).tolist() == [2, -2]
    assert cast(values, np.dtype(f"{order}i2"), "towards-zero", None).tolist() == [1, -2]


def test_many_numbers_of_any_shape():
    values = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)[::-1]
    found = cast(values, np.dtype("f2"), "towards-positive", None)
    assert np.array_equal(found, values)
    assert cast(np.array(2.5), np.dtype("i4"), "nearest-even", None) == 2
    assert cast(np.empty((0, 3)), np.dtype("i4"), "nearest-even", None).shape == (0, 3)


def test_the_error_tells_which_number_is_out_of_range():
    with pytest.raises(CodecError, match="uint8") as caught:
        cast(np.array([1, 300, 400]), np.dtype("u1"), "nearest-even", None)
    assert caught.value.found == 300
    with pytest.raises(CodecError, match="NaN"):
        cast(np.array([1, math.nan]), np.dtype("u1"), "nearest-even", "clamp")


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_bit_length(values):
    assert bit_length(np.array(values, "u8")).tolist() == [n.bit_length() for n in values]
