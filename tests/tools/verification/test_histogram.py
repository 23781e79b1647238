"""Histograms: the bins are found from the values, and adding is counting all values at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.tools.verification.histogram import Histogram

numbers = st.lists(
    st.floats(allow_nan=False, allow_subnormal=False, width=32), min_size=1, max_size=20
)


@given(st.lists(numbers, min_size=1, max_size=4))
def test_the_sum_has_each_finite_value_in_its_bin(parts):
    found = [Histogram.of(np.array(part)) for part in parts]
    found = [each for each in found if each is not None]
    values = np.array([value for part in parts for value in part])
    values = values[np.isfinite(values)]
    if not found:
        assert not values.size
        return
    total = sum(found[1:], found[0])
    assert sum(total.counts) == values.size
    assert len(total.counts) <= 32
    bins = np.floor(np.ldexp(values, -total.exponent)) - total.first
    assert np.bincount(bins.astype(int)).tolist() == list(total.counts)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_integers_have_bins_of_whole_numbers(values):
    found = Histogram.of(np.array(values, np.int64))
    assert found.exponent >= 0
    assert sum(found.counts) == len(values)


def test_the_bars_are_as_high_as_the_counts():
    assert Histogram(0, 0, (1, 0, 4, 8)).bars() == "▁ ▄█"


def test_values_without_a_finite_one_have_no_histogram():
    assert Histogram.of(np.array([np.inf])) is None
    assert Histogram.of(np.array([], "i4")) is None
    assert Histogram.of(np.array([True, False])).counts == (1, 1)


def test_bins_of_the_largest_numbers_begin_at_a_finite_one():
    largest = np.finfo("f8").max
    found = Histogram.of(np.array([-largest, largest]))
    assert (found.start, sum(found.counts)) == (-largest, 2)
