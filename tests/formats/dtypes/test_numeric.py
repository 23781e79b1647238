"""v3's core data types by name."""

import numpy as np
import pytest

from tests.covering import for_each
from tests.formats.dtypes.contract import check_fills
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.dtypes.registry import DATA_TYPES, of_dtype, parse_data_type
from zarrdask.formats.dtypes.v2 import parse_dtype

NAMES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@for_each("name", NAMES)
def test_core_names_are_numpys(name):
    data_type = parse_data_type(name)
    dtype = data_type.dtype
    assert dtype == np.dtype(name)
    assert dtype.isnative
    assert of_dtype(dtype).to_json() == name
    assert of_dtype(dtype.newbyteorder(">")).to_json() == name
    check_fills(data_type)


@for_each(("name", "size"), [("r8", 1), ("r16", 2), ("r24", 3), ("r4096", 512)])
def test_raw_types_count_bits(name, size):
    data_type = parse_data_type(name)
    assert data_type.dtype == np.dtype(f"V{size}")
    assert of_dtype(np.dtype(f"V{size}")).to_json() == name
    check_fills(data_type)


@for_each("name", ["float128", "f8", "int", "r", "void", "object", "int3", "uint3"])
def test_an_unknown_type_is_named(name):
    with pytest.raises(UnsupportedError) as caught:
        parse_data_type(name)
    assert (caught.value.key, caught.value.found) == ("data_type", name)
    assert set(caught.value.expected.split(", ")) <= set(DATA_TYPES.names())


@for_each(
    ("name", "package"), [("uint1", "ml_dtypes"), ("zarrs.x", "zarrs"), ("narwhals.x", "zarrwhals")]
)
def test_an_unknown_type_names_the_package_that_has_it(name, package):
    for parse in (parse_data_type, parse_dtype):
        with pytest.raises(UnsupportedError, match=f"; {package} has it"):
            parse(name)


@for_each("name", ["<f8", "", "Bool", "r*"])
def test_what_is_no_name_at_all_is_an_error(name):
    with pytest.raises(MetadataError, match="invalid name") as caught:
        parse_data_type(name)
    assert (caught.value.key, caught.value.found) == ("data_type", name)


@for_each("name", ["r12", "r0", "r08", f"r{2**40}"])
def test_a_raw_type_of_broken_or_too_many_bytes_is_an_error(name):
    with pytest.raises(MetadataError, match="multiple of 8"):
        parse_data_type(name)


@pytest.mark.parametrize("name", ["int32", "r16", "bool"])
def test_a_core_type_has_no_configuration(name):
    with pytest.raises(MetadataError, match="unit"):
        parse_data_type({"name": name, "configuration": {"unit": "s"}})


def test_a_raw_type_of_thousands_of_digits_is_an_error():
    with pytest.raises(MetadataError, match="whole bytes"):
        parse_data_type("r" + "8" * 5000)
