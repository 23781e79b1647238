"""NumPy's data types by text."""

import subprocess
import sys

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.formats.dtypes.numpy_type import check_divisors, is_unitless, numpy_type

#: NumPy ends the process if it parses one of these.
FATAL = [
    "M8[s/0]",
    "<m8[s/00]",
    ">M8[0s/0]",
    "datetime64[s/ +0]",
    "timedelta64[25s/-0]",
    "<M8[s/4294967296]",
    "M8[s/0]i4",
]


@for_each("text", FATAL)
def test_a_text_that_ends_the_process_does_not_reach_numpy(text):
    with pytest.raises(ValueError, match="divisor"):
        numpy_type(text)
    with pytest.raises(ValueError, match="divisor"):
        check_divisors(f'{{"names": ["a"], "formats": ["{text}"]}}')


@for_each("text", ["01", "nosuch", "f3", "", "\ud800", "M8[s/3]", "M8[s/"])
def test_all_errors_of_numpy_are_value_errors(text):
    with pytest.raises(ValueError):
        numpy_type(text)


@for_each(
    "value", ["<f4", "i4,i4", "M8[s/1000]", "m8[2Y/12]", "m8[s/0100]", "<M8[ns]", float, None]
)
def test_everything_else_is_numpys(value):
    assert numpy_type(value) == np.dtype(value)


def test_documents_do_not_end_the_process():
    # In a process of its own, as this would end that of the tests.
    code = """
from zarrdask.formats.codecs.numcodecs.adapter import make
from zarrdask.formats.codecs.numcodecs.table import TABLE
from zarrdask.formats.dtypes.registry import find_data_type
from zarrdask.formats.dtypes.v2 import parse_dtype
from zarrdask.errors import ZarrdaskError

for parse, value in [
    (parse_dtype, "<M8[s/4294967296]"),
    (find_data_type, "M8[s/0]"),
    (TABLE["numcodecs.delta"].from_configuration, {"dtype": "M8[s/0]"}),
    (make, {"id": "delta", "dtype": "M8[s/0]"}),
    (make, {"id": "delta", "dtype": "i4", "astype": "M8[s/0]"}),
    (make, {"id": "astype", "decode_dtype": "M8[s/0]", "encode_dtype": "i4"}),
    (make, {"id": "delta", "dtype": {"names": ["a"], "formats": ["M8[s/0]"]}}),
]:
    try:
        parse(value)
    except ZarrdaskError:
        print("refused")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.split()) == (0, ["refused"] * 7), run.stderr


@for_each(
    ("dtype", "expected"),
    [("M8", True), ("m8[10generic]", True), ("M8[s]", False), ("m8[10s]", False), ("i8", False)],
)
def test_times_may_have_no_unit(dtype, expected):
    assert is_unitless(np.dtype(dtype)) is expected
