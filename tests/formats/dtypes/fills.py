"""Fill values of data types, in NumPy and in the JSON of v3."""

import numpy as np

V3 = [
    ("bool", True, "01"),
    ("bool", False, "00"),
    ("int8", -128, "80"),
    ("int64", -(2**63), "8000000000000000"),
    ("int64", 2**63 - 1, "7fffffffffffffff"),
    ("uint64", 2**64 - 1, "ffffffffffffffff"),
    ("uint64", 2**53 + 1, "0020000000000001"),
    ("float16", 0.1, "2e66"),
    ("float16", 0.0999755859375, "2e66"),
    ("float32", 0.1, "3dcccccd"),
    ("float32", 7, "40e00000"),
    ("float32", "NaN", "7fc00000"),
    ("float32", "Infinity", "7f800000"),
    ("float32", "-Infinity", "ff800000"),
    ("float32", "+Infinity", "7f800000"),
    ("float32", "0x7fc00001", "7fc00001"),
    ("float32", "0xFFC0ABCD", "ffc0abcd"),
    ("float32", "0x3f800000", "3f800000"),
    ("float32", -0.0, "80000000"),
    ("float64", "NaN", "7ff8000000000000"),
    ("float64", "0x7ff8000000000abc", "7ff8000000000abc"),
    ("float64", -0.0, "8000000000000000"),
    ("float64", 5e-324, "0000000000000001"),
    ("float16", "0x7e01", "7e01"),
]


NESTED = np.dtype([("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])])
