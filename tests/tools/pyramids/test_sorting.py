"""Cells of windows that are sorted by networks."""

import numpy as np

from zarrdask.tools.pyramids.kernels import Missing, Reduction
from zarrdask.tools.pyramids.sorting import ascending


def test_networks_sort_all_zeros_and_ones():
    # What sorts all sequences of zeros and ones sorts all sequences.
    for count in range(1, 10):
        cells = np.indices((2,) * count, np.uint8).reshape(count, -1)
        for used in (range(count), range((count - 1) // 2, count // 2 + 1)):
            rows = ascending(cells.copy(), used)
            for n in used:
                np.testing.assert_array_equal(rows[n], np.sort(cells, axis=0)[n])


def test_windows_of_any_length_are_sorted():
    rng = np.random.default_rng(0)
    for dtype in ("u1", "i2", "i4", "f8", "c16"):
        for count in (16, 17, 129):
            cells = rng.integers(0, 99, (count, 5)).astype(dtype)
            for used in (range(count), range((count - 1) // 2, count // 2 + 1)):
                rows, expected = ascending(cells.copy(), used), np.sort(cells, axis=0)
                for n in used:
                    np.testing.assert_array_equal(rows[n], expected[n])


def test_values_at_the_limit_of_a_type_are_not_missing():
    values = np.array([[255, 1, 255, 3], [1, 1, 1, 255]], np.uint8)
    for method, expected in {"mode": 255, "median": 255}.items():
        reduction = Reduction(method, (2, 4), "trim", Missing((1,), has_nan=False, result=1))
        out = np.zeros((1, 1), np.uint8)
        reduction.reduce(values, out)
        assert out.item() == expected
