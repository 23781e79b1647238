"""Windows of cells become one cell: compared with loops of Python over each window."""

from itertools import product

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import UnsupportedError, ZarrdaskError
from zarrdask.tools.pyramids.kernels import Missing, Reduction

FACTORS = (2, 3)
#: What NumPy makes of the values of one window, for values that are no integers.
EXPECTED = {
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
    "sum": np.sum,
    "median": np.median,
}


def windows(values, borders):
    """Return the cells of each window, as lists, by the index of the window."""
    counts = [
        length // factor if borders == "trim" else -(-length // factor)
        for length, factor in zip(values.shape, FACTORS, strict=True)
    ]
    if borders == "pad":
        pads = [(0, -n % f) for n, f in zip(values.shape, FACTORS, strict=True)]
        values = np.pad(values, pads, "edge")
    cells = {}
    for i, j in product(*map(range, counts)):
        cells[i, j] = values[2 * i : 2 * i + 2, 3 * j : 3 * j + 3].ravel()
    return tuple(counts), cells


@for_each("method, borders", product(EXPECTED, ["trim", "pad", "partial"]))
def test_each_window_is_reduced_to_one_cell(method, borders):
    values = np.random.default_rng(1).integers(-50, 50, (5, 8)).astype("f8")
    shape, cells = windows(values, borders)
    out = np.empty(shape)
    Reduction(method, FACTORS, borders).reduce(values, out)
    for index, each in cells.items():
        assert out[index] == pytest.approx(EXPECTED[method](each))


@for_each("method", ["mean", "min", "max", "sum", "median"])
def test_missing_values_do_not_count(method):
    values = np.random.default_rng(2).integers(0, 9, (6, 9)).astype("f8")
    values[values == 3] = -999
    values[0:2, 0:3] = -999
    out = np.empty((3, 3))
    missing = Missing((-999,), has_nan=True, result=np.nan)
    Reduction(method, FACTORS, "trim", missing).reduce(values, out)
    for index, each in windows(values, "trim")[1].items():
        valid = each[each != -999]
        expected = EXPECTED[method](valid) if len(valid) else np.nan
        assert out[index] == pytest.approx(expected, nan_ok=True)


def test_the_most_frequent_value_is_the_smallest_of_equals():
    values = np.array([[5, 5, 1], [1, 7, 9]], "i2")
    out = np.empty((1, 1), "i2")
    Reduction("mode", FACTORS, "trim").reduce(values, out)
    assert out.item() == 1


def test_the_nearest_value_is_one_of_the_window():
    values = np.array([["a", "b", "c"], ["d", "e", "f"]])
    out = np.empty((1, 1), values.dtype)
    Reduction("nearest", FACTORS, "trim").reduce(values, out)
    assert out.item() == "b"


def test_sums_of_integers_stop_at_the_limits_of_their_type():
    values = np.full((2, 3), 100, "u1")
    out = np.empty((1, 1), "u1")
    Reduction("sum", FACTORS, "trim").reduce(values, out)
    assert out.item() == 255


@for_each("method, dtype", [("mean", "S3"), ("median", "c8"), ("min", "c8"), ("sum", "?")])
def test_a_method_combines_values_of_some_types(method, dtype):
    Reduction.check("nearest", np.dtype(dtype))
    with pytest.raises(UnsupportedError, match=f"the method '{method}' can't combine"):
        Reduction.check(method, np.dtype(dtype))


def test_an_unknown_method_is_an_error():
    with pytest.raises(ZarrdaskError, match="method"):
        Reduction.check("average", np.dtype("f4"))
