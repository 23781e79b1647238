"""The numbers of ml_dtypes."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.errors import UnsupportedError
from zarrdask.formats.dtypes.ml import BITS, dtype_named, kind_of, limits, name_of, nearest

FLOATS = [name for name in BITS if "float" in name]
INTEGERS = [name for name in BITS if "int" in name]


def patterns(name):
    """Return all elements there are of a type."""
    unsigned = "u2" if BITS[name] == 16 else "u1"
    return np.arange(2 ** BITS[name], dtype=unsigned).view(dtype_named(name))


def numbers(name):
    """Return all elements but infinities and NaN, and their values, rising."""
    result = patterns(name)
    with np.errstate(all="ignore"):
        values = result.astype("f8")
    finite = np.isfinite(values)
    order = np.argsort(values[finite], kind="stable")
    return result[finite][order], values[finite][order]


@for_each("name", BITS)
def test_a_dtype_tells_its_name_in_either_byte_order(name):
    dtype = dtype_named(name)
    assert name_of(dtype) == name_of(dtype.newbyteorder(">")) == name
    assert kind_of(dtype) == ("f" if name in FLOATS else name[0])


@for_each("dtype", ["V2", "f2", "i1", "O", "U1", "i4,f4"])
def test_other_dtypes_have_no_name_here(dtype):
    assert name_of(np.dtype(dtype)) is None
    assert kind_of(np.dtype(dtype)) == np.dtype(dtype).kind


@for_each(
    ("name", "expected"),
    [("int2", (-2, 1)), ("uint2", (0, 3)), ("int4", (-8, 7)), ("uint4", (0, 15))],
)
def test_limits_of_narrow_integers(name, expected):
    assert limits(dtype_named(name)) == expected
    values = patterns(name).astype("i8")
    assert (values.min(), values.max()) == expected


def test_limits_of_numpys_integers():
    assert limits(np.dtype("i8")) == (-(2**63), 2**63 - 1)
    assert limits(np.dtype("u8")) == (0, 2**64 - 1)


@for_each("name", FLOATS)
def test_each_number_of_a_type_is_nearest_to_itself(name):
    dtype = dtype_named(name)
    for element, value in zip(*numbers(name), strict=True):
        assert nearest(float(value), dtype).tobytes() == element.tobytes()


@for_each("name", FLOATS)
@given(data=st.data())
def test_numbers_are_rounded_once_to_the_nearest_and_half_to_even(name, data):
    elements, values = numbers(name)
    # Powers of two have no even and odd, and next to the least of them ml_dtypes rounds up.
    powers = name == "float8_e8m0fnu"
    at = data.draw(st.integers(1 if powers else 0, len(values) - 2))
    low, high = values[at], values[at + 1]
    parts = [0.25, 0.5 - 2**-40, 0.5 + 2**-40, *([] if powers else [0.5])]
    number = low + (high - low) * data.draw(st.sampled_from(parts))
    result = nearest(float(number), dtype_named(name))
    below, above = number - low, high - number
    if below != above:
        expected = [elements[at] if below < above else elements[at + 1]]
    else:
        expected = [e for e in elements[at : at + 2] if int(e.view(f"u{e.itemsize}")) % 2 == 0]
    assert float(result) in [float(e) for e in expected]


@for_each("name", FLOATS)
@for_each("value", [float("inf"), float("-inf")])
def test_infinity_is_only_where_the_type_has_it(name, value):
    dtype = dtype_named(name)
    if name in ("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e5m2"):
        assert float(nearest(value, dtype)) == value
    else:
        with pytest.raises(OverflowError):
            nearest(value, dtype)


@for_each("name", FLOATS)
def test_what_is_beyond_the_largest_number_is_an_error(name):
    dtype = dtype_named(name)
    largest = numbers(name)[1][-1]
    assert float(nearest(largest, dtype)) == largest
    for value in (largest * 1.01, largest * 4, 1e300, -largest * 1.01, -1e300):
        with pytest.raises(OverflowError, match=name):
            nearest(float(value), dtype)


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0])
def test_a_type_without_zero_and_sign_has_neither(value):
    with pytest.raises(OverflowError):
        nearest(value, dtype_named("float8_e8m0fnu"))


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"])
def test_a_type_without_nan_has_none(name):
    with pytest.raises(OverflowError):
        nearest(float("nan"), dtype_named(name))


def test_without_the_package_the_error_tells_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'zarrdask\[ml_dtypes\]'") as caught:
        dtype_named("bfloat16")
    assert (caught.value.key, caught.value.found) == ("data_type", "bfloat16")


def test_a_package_too_old_is_as_none(monkeypatch):
    monkeypatch.delattr("ml_dtypes.float4_e2m1fn")
    with pytest.raises(UnsupportedError, match="ml_dtypes"):
        dtype_named("float4_e2m1fn")
