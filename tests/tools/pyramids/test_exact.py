"""Sums and means of integers are those of Python's integers, which have no limits."""

from fractions import Fraction

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.tools.pyramids.exact import halfway_to_even, mean_of_integers, sum_of_integers

WIDE = ["i8", "u8"]


def extremes(dtype):
    """Return rows of the largest and smallest values of a type, and of random ones."""
    limits = np.iinfo(dtype)
    values = [limits.min, limits.max, limits.max - 1, limits.min + 1, 0, 1, 2**32, 2**32 - 1]
    rng = np.random.default_rng(5)
    rows = rng.choice(np.array(values, dtype), (40, 6))
    return np.concatenate([rows, rng.integers(limits.min, limits.max, (40, 6), dtype)])


@for_each("dtype", WIDE)
def test_means_are_rounded_half_to_even(dtype):
    rows = extremes(dtype)
    expected = [round(Fraction(sum(map(int, row)), 6)) for row in rows]
    assert mean_of_integers(rows, np.full(len(rows), 6)).tolist() == expected


@for_each("dtype", WIDE)
def test_sums_stop_at_the_limits(dtype):
    rows, limits = extremes(dtype), np.iinfo(dtype)
    expected = [min(max(sum(map(int, row)), limits.min), limits.max) for row in rows]
    assert sum_of_integers(rows).tolist() == expected


@pytest.mark.parametrize("dtype", ["i2", "u2", "i4", "i8"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 64])
def test_quotients_of_small_sums_are_rounded_half_to_even(dtype, count):
    start = 0 if dtype == "u2" else -200
    sums = np.arange(start, 200, dtype=dtype)
    expected = [round(Fraction(int(each), count)) for each in sums]
    assert halfway_to_even(sums, count).tolist() == expected


def test_a_sum_near_the_limit_of_its_type_is_divided_as_well():
    sums = np.array([127, 126, -128], "i1")
    assert halfway_to_even(sums, 4).tolist() == [32, 32, -32]
