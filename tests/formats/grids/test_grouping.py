"""Elements grouped by the chunks that hold them: a stable order, for any numbers of chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.formats.grids.grouping import grouped

#: The numbers of chunks along axes: in one byte, in two, more than 2**16, and more than 2**63.
BOUNDS = [(1,), (256,), (3, 5), (255, 257), (2**16,), (2**16 + 1, 2), (2**40, 9), (2**40, 2**40)]


def check(numbers):
    order, edges = grouped(numbers)
    expected = np.lexsort(numbers[::-1])
    np.testing.assert_array_equal(order, expected)
    chunks = np.stack(numbers)[:, order]
    changes = np.flatnonzero((np.diff(chunks, axis=1) != 0).any(axis=0)) + 1
    np.testing.assert_array_equal(edges, [0, *changes, len(order)] if len(order) else [0])


@pytest.mark.parametrize("bounds", BOUNDS)
def test_elements_are_sorted_by_chunk_and_stay_in_order_within_it(bounds):
    rng = np.random.default_rng(0)
    check([rng.integers(0, bound, 500) for bound in bounds])
    # Near the end of large arrays, and in few chunks.
    check([bound - 1 - rng.integers(0, min(bound, 3), 50) for bound in bounds])


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 300)), max_size=30))
def test_any_numbers_are_grouped(pairs):
    check([np.array(each, np.int64) for each in zip(*pairs, strict=True)] or [np.zeros(0, int)])
