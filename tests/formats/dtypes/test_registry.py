"""Data types by what a user or a document says."""

import warnings

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import ComplianceWarning, MetadataError, UnsupportedError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.ml import dtype_named
from zarrdask.formats.dtypes.registry import find_data_type, of_dtype, parse_data_type, portable

DAYS = {"name": "numpy.datetime64", "configuration": {"unit": "D", "scale_factor": 1}}
UTF32 = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}


@for_each(
    ("value", "document"),
    [
        ("float32", "float32"),
        ("f4", "float32"),
        (">f4", "float32"),
        (float, "float64"),
        (np.int8, "int8"),
        (np.dtype("c8"), "complex64"),
        ("bool", "bool"),
        ("r16", "r16"),
        ("V2", "r16"),
        ("bfloat16", "bfloat16"),
        (dtype_named("int4"), "int4"),
        (dtype_named("int4").type, "int4"),
        ("complex_float16", "complex_float16"),
        ("complex_float32", "complex64"),
        ("string", "string"),
        (str, "string"),
        ("str", "string"),
        ("U", "string"),
        (object, "string"),
        ("O", "string"),
        (np.dtypes.StringDType(), "string"),
        (np.dtypes.StringDType(na_object=None), "string"),
        ("bytes", "bytes"),
        (bytes, "bytes"),
        ("U3", UTF32),
        (UTF32, UTF32),
        ("S2", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 2}}),
        ("M8[D]", DAYS),
        (DAYS, DAYS),
        (parse_data_type(DAYS), DAYS),
        ({"name": "int8"}, "int8"),
        (
            {"names": ["a"], "formats": ["i2"]},
            {
                "name": "struct",
                "configuration": {"fields": [{"name": "a", "data_type": "int16"}]},
            },
        ),
        ("variable_length_bytes", "variable_length_bytes"),
    ],
)
def test_a_user_may_say_it_in_numpys_words_or_in_those_of_v3(value, document):
    assert portable(find_data_type(value)).to_json() == document


def test_byte_order_is_kept_for_formats_that_have_it():
    assert find_data_type(">f4").dtype == np.dtype(">f4")
    assert portable(find_data_type(">f4")).dtype == np.dtype("f4")


@for_each("value", ["nonsense", "f3", 7, {"a": 1}, object()])
def test_what_is_no_data_type_is_an_error(value):
    with pytest.raises(MetadataError) as caught:
        find_data_type(value)
    assert (caught.value.key, caught.value.found) == ("dtype", value)
    assert caught.value.expected == "a NumPy dtype, or a name of v3 such as 'bfloat16'"


@pytest.mark.parametrize("value", ["struct", "numpy.datetime64", {"name": "r7"}])
def test_a_name_that_does_not_say_enough_is_an_error(value):
    with pytest.raises(MetadataError, match="data_type"):
        find_data_type(value)


@for_each("dtype", ["O", "g", [("a", "i4", (2,))], [("a", "O")]])
def test_types_that_v3_lacks_are_refused_with_advice(dtype):
    with pytest.raises(UnsupportedError, match="zarr_format=2"):
        of_dtype(np.dtype(dtype)).to_json()


@pytest.mark.parametrize("dtype", [("i4", (2,)), "V0"])
def test_there_is_no_advice_where_v2_lacks_the_type_too(dtype):
    with pytest.raises(UnsupportedError) as caught:
        of_dtype(np.dtype(dtype)).to_json()
    assert "zarr_format" not in str(caught.value)


def test_a_type_without_a_name_is_still_a_type():
    data_type = of_dtype(np.dtype("O"))
    assert type(data_type) is DataType
    assert data_type.dtype == np.dtype(object)


# --------------------------------------------------------------------------------------------
# Fallbacks, as there were in 2023


def test_the_fallback_of_a_type_that_is_known_is_of_no_matter():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_data_type({**DAYS, "fallback": "int64"}) == parse_data_type(DAYS)


@pytest.mark.parametrize("fallback", ["int64", ["nosuch", "int64"], {"name": "int64"}])
def test_a_type_that_is_unknown_is_read_as_its_fallback_with_a_warning(fallback):
    document = {"name": "calendar", "configuration": {"of": 1}, "fallback": fallback}
    with pytest.warns(ComplianceWarning, match="X-C11"):
        assert parse_data_type(document).to_json() == "int64"


@pytest.mark.parametrize("fallback", ["nosuch", [], ["nosuch", "never"]])
def test_a_type_whose_fallbacks_are_unknown_too_is_unknown(fallback):
    document = {"name": "calendar", "fallback": fallback}
    with pytest.raises(UnsupportedError, match="calendar"):
        parse_data_type(document)


def test_a_fallback_is_an_error_in_strict_mode():
    with strictness(strict=True), pytest.raises(MetadataError, match="X-C11"):
        parse_data_type({**DAYS, "fallback": "int64"})
