"""v3's data types by name."""

import numpy as np
import pytest

from zarrdask.dtypes.v3 import CORE, parse_dtype, render_dtype
from zarrdask.errors import MetadataError, UnsupportedError

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


def test_all_core_types_are_there():
    assert sorted(CORE) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_core_names_are_numpys(name):
    dtype = parse_dtype(name, {})
    assert dtype == np.dtype(name)
    assert dtype.isnative
    assert render_dtype(dtype) == name
    assert render_dtype(dtype.newbyteorder(">")) == name


@pytest.mark.parametrize(("name", "size"), [("r8", 1), ("r16", 2), ("r24", 3), ("r4096", 512)])
def test_raw_types_count_bits(name, size):
    assert parse_dtype(name, {}) == np.dtype(f"V{size}")
    assert render_dtype(np.dtype(f"V{size}")) == name


@pytest.mark.parametrize("name", ["float128", "f8", "<f8", "", "int", "r", "r0", "r08", "Bool"])
def test_an_unknown_type_is_named(name):
    with pytest.raises(UnsupportedError) as caught:
        parse_dtype(name, {})
    assert (caught.value.key, caught.value.found) == ("data_type", name)
    assert "float64" in caught.value.expected


def test_a_raw_type_of_broken_bytes_is_an_error():
    with pytest.raises(MetadataError, match="r12"):
        parse_dtype("r12", {})


def test_a_core_type_has_no_configuration():
    with pytest.raises(MetadataError, match="unit"):
        parse_dtype("int32", {"unit": "s"})


@pytest.mark.parametrize(
    "dtype", ["S3", "U3", "M8[s]", "m8[s]", "O", "i4,f4", "g", ("i4", (2,)), "V0"]
)
def test_types_outside_the_core_are_refused_with_advice(dtype):
    with pytest.raises(UnsupportedError, match="zarr_format=2"):
        render_dtype(np.dtype(dtype))
