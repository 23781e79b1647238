"""Casts in which no value may become another one."""

import datetime

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import CodecError
from zarrdask.formats.dtypes.checked_cast import checked_cast

ml_dtypes = pytest.importorskip("ml_dtypes")

TEXTS = np.array(["abc", "d"], np.dtypes.StringDType())
MISSING = np.array(["abc", None], np.dtypes.StringDType(na_object=None))
PAIRS = np.array([(300, "abc")], [("a", "i8"), ("b", "U3")])


TIMES = ("M8[s]", "m8[s]")
OTHERS = ("i1", "i8", ">u8", "f8", "c16", "?", ml_dtypes.int4, ml_dtypes.bfloat16, "V8")


#: NaT and 5, in no unit.
COUNTS = np.array([-(2**63), 5]).view("m8")


def objects(*items):
    return np.array(items, object)


@for_each(
    ("values", "dtype"),
    [
        (np.array([300]), "i1"),
        (np.array([-1]), "u1"),
        (np.array([2**63], "u8"), "i8"),
        (np.array([2**40], ">i8"), "<i4"),
        (np.array([np.nan]), "i4"),
        (np.array([-np.inf]), "i8"),
        (np.array([1e300]), "f4"),
        (np.array([70_000]), "f2"),
        (np.array([1e300 + 1j]), "c8"),
        (np.array([1 + 1j]), "f8"),
        (np.array([300 + 0j]), "i1"),
        (np.array([2]), "?"),
        (np.array([np.nan]), "?"),
        (np.array([0.5]), "?"),
        (np.array([1e39]), ml_dtypes.bfloat16),
        (np.array([449.0]), ml_dtypes.float8_e4m3fn),
        (np.array([np.inf]), ml_dtypes.float8_e4m3fn),
        (np.array([0.0]), ml_dtypes.float8_e8m0fnu),
        (np.array([np.nan]), ml_dtypes.float4_e2m1fn),
        (np.array([8]), ml_dtypes.int4),
        (np.array([300], ml_dtypes.bfloat16), "i1"),
        (np.array(["9999-01-01"], "M8[D]"), "M8[ns]"),
        (np.array(["2000-01-01T01"], "M8[h]"), "M8[D]"),
        (np.array([30], "m8[h]"), "m8[D]"),
        *((np.array([1], time), each) for time in TIMES for each in OTHERS),
        (np.array([1], "m8[s]"), "M8[s]"),
        (np.array(["2000-01-01"], "M8[s]"), "m8[s]"),
        *((np.ones(1, other), time) for time in TIMES for other in OTHERS),
        *((objects(each), "m8[s]") for each in (1, np.int8(1), True, "1", np.datetime64(1, "s"))),
        *((objects(each), "M8[s]") for each in (1, np.int8(1), True, np.timedelta64(1, "s"))),
        (objects(np.timedelta64(1, "s")), "i8"),
        (objects(datetime.timedelta(1)), "i8"),
        (np.array(["1"]), "m8[s]"),
        (np.array([b"1"]), "m8[s]"),
        (np.array([1], "m8[s]"), "U9"),
        (np.array([1], "m8[s]"), COUNTS.dtype),
        (COUNTS, "m8[s]"),
        (np.array(["NaT"], "m8[s]"), "i8"),
        (np.array([1], "m8[s]"), [("a", "i8")]),
        (np.array([(1,)], [("a", "i8")]), [("a", "m8[s]")]),
        (np.array(["abcd"]), "U3"),
        (np.array([b"abcd"]), "S3"),
        (np.array(["\N{SNOWMAN}"]), "S3"),
        (np.array([b"\xff"]), "U3"),
        (np.array([123]), "U2"),
        (np.array(["300"]), "i1"),
        (np.array(["one"]), "i1"),
        (TEXTS, "U2"),
        (TEXTS, "S2"),
        (MISSING, "U4"),
        (objects(None, "a"), "U4"),
        (objects("abcd"), "U3"),
        (objects(b"a\0"), "S2"),
        (objects(300), "i1"),
        (objects(np.int64(300)), "i1"),
        (objects(None), "i4"),
        (objects(datetime.datetime(2000, 1, 1, 5)), "M8[D]"),
        (PAIRS, [("a", "i1"), ("b", "U3")]),
        (PAIRS, [("a", "i8"), ("b", "U2")]),
        (PAIRS, [("b", "i8"), ("a", "U3")]),
        (PAIRS, [("a", "i8")]),
        (PAIRS, "i8"),
        (np.array([b"abcd"], "V4"), "V2"),
    ],
)
def test_values_that_would_become_others_are_refused(values, dtype):
    with pytest.raises(CodecError, match=r"zarrdask\.casting = 'numpy'"):
        checked_cast(values, np.dtype(dtype))


@for_each(
    ("values", "dtype", "expected"),
    [
        ([True], "i1", [1]),
        ([0, 1], "?", [False, True]),
        ([1.9, -1.9], "i1", [1, -1]),
        ([0.1], "f4", [np.float32(0.1)]),
        ([np.nan, np.inf], "f2", [np.nan, np.inf]),
        ([2**53 + 1], "f8", [2.0**53]),
        ([7 + 0j], "i1", [7]),
        (np.array([1], ">i8"), "<i2", [1]),
        (np.array([3], ml_dtypes.bfloat16), "i1", [3]),
        (np.array(["2000-01-01T00", "NaT"], "M8[h]"), "M8[D]", ["2000-01-01", "NaT"]),
        (np.array([2, "NaT"], "m8[D]"), "m8[h]", np.array([48, "NaT"], "m8[h]")),
        (["NaT"], "m8[s]", ["NaT"]),
        (["2000-01-01", "NaT"], "M8[s]", ["2000-01-01", "NaT"]),
        (np.array(["2000-01-01"], "M8[D]"), "S10", [b"2000-01-01"]),
        (
            objects(datetime.timedelta(1), None, "NaT"),
            "m8[h]",
            np.array([24, "NaT", "NaT"], "m8[h]"),
        ),
        (COUNTS[:1], "m8[h]", ["NaT"]),
        (np.array(["abc"], "U9"), "U3", ["abc"]),
        (np.array(["abc"], "U9"), "S3", [b"abc"]),
        (np.array([b"abc"], "S9"), "U3", ["abc"]),
        (np.array([12]), "U2", ["12"]),
        (np.array(["30"]), "i1", [30]),
        (TEXTS, "U3", ["abc", "d"]),
        (objects("ab"), "S2", [b"ab"]),
        (objects(1.5, None), "f4", [1.5, np.nan]),
        (objects(datetime.datetime(2000, 1, 1), None), "M8[ns]", ["2000-01-01", "NaT"]),
        (PAIRS, [("x", "i2"), ("y", "U5")], np.array([(300, "abc")], [("x", "i2"), ("y", "U5")])),
        (np.zeros((0, 3)), "i1", np.zeros((0, 3))),
        (np.array(5), "i1", 5),
    ],
)
def test_digits_and_fractions_may_be_rounded(values, dtype, expected):
    dtype = np.dtype(dtype)
    found = checked_cast(np.asarray(values), dtype)
    np.testing.assert_array_equal(found, np.asarray(expected).astype(dtype), strict=True)


def test_values_of_the_type_are_taken_as_they_are():
    values = np.arange(3)
    assert checked_cast(values, values.dtype) is values
