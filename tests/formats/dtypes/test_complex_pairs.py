"""Complex numbers of narrow parts."""

import numpy as np
import pytest

from tests.covering import for_each
from tests.formats.dtypes.contract import check_fills, check_metadata
from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.complex_pairs import NAMES
from zarrdask.formats.dtypes.ml import dtype_named
from zarrdask.formats.dtypes.registry import of_dtype, parse_data_type

names = for_each("name", NAMES)


@names
def test_the_parts_are_fields(name):
    data_type = parse_data_type(name)
    part = name.removeprefix("complex_")
    expected = np.dtype("f2") if part == "float16" else dtype_named(part)
    assert data_type.dtype == np.dtype([("re", expected), ("im", expected)])
    assert of_dtype(data_type.dtype).to_json() == name
    check_metadata(data_type)


@names
def test_fill_values_are_pairs(name):
    data_type = parse_data_type(name)
    value = data_type.parse_fill([2, f"0x{1:0{data_type.dtype.itemsize}x}"])
    assert float(value["re"]) == 2.0
    assert value["im"].tobytes()[:1] == b"\x01"
    check_fills(data_type, value)


@for_each("value", [1.0, [1.0], [1, 2, 3], ["Infinity", 0], [None, 0], {"re": 1}])
def test_what_is_no_pair_of_parts_is_an_error(value):
    with pytest.raises(MetadataError):
        parse_data_type("complex_float8_e4m3fn").parse_fill(value)


def test_a_users_complex_number_is_taken_apart():
    data_type = parse_data_type("complex_bfloat16")
    for value in (1 - 2j, np.complex64(1 - 2j), (1, -2), {"re": 1, "im": -2}):
        assert data_type.render_fill(data_type.cast(value)) == [1.0, -2.0]
    assert data_type.render_fill(data_type.cast(3)) == [3.0, 0.0]
    with pytest.raises(MetadataError):
        data_type.cast(1e300j)


@for_each(
    "fields",
    [
        [("re", "f4"), ("im", "f4")],
        [("re", "f2"), ("im", "f4")],
        [("im", "f2"), ("re", "f2")],
        [("re", "i2"), ("im", "i2")],
        [("re", "f2"), ("im", "f2"), ("abs", "f2")],
    ],
)
def test_other_fields_are_a_struct(fields):
    assert of_dtype(np.dtype(fields)).to_json()["name"] == "struct"
