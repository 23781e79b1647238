"""Which columns are kept between steps: as many as the memory holds."""

import numpy as np

from tests.covering import for_each
from zarrdask.arrays.samples.kept_columns import keep, uses_of

SIZES = np.array([100, 200, 300, 400]) * 2**10


def uses(*rows):
    """Return the uses of the columns of each sample, one sample a step."""
    width = max(map(len, rows))
    columns = np.array([[*row, *[-1] * (width - len(row))] for row in rows])
    return uses_of(columns, SIZES, np.arange(len(rows)))


def test_each_column_is_used_once_in_a_step():
    found = uses_of(np.array([[0, 1], [1, -1], [0, 1]]), SIZES, np.array([0, 0, 1]))
    assert found.columns.tolist() == [0, 0, 1, 1]
    assert found.steps.tolist() == [0, 1, 0, 1]


def test_with_enough_memory_each_column_is_decoded_once():
    found = keep(uses([0, 1], [2], [1, 0], [0]), 2**30)
    assert found.nbytes == SIZES[[0, 1, 2]].sum()
    assert found.peak == SIZES[[0, 1]].sum()


def test_without_memory_nothing_is_kept():
    found = keep(uses([0], [0], [0]), 0)
    assert not found.is_kept.any()
    assert found.is_decoded.all()
    assert found.nbytes == 3 * SIZES[0]


def test_the_column_that_is_used_again_soonest_is_kept():
    found = keep(uses([3], [3], [2], [1], [2]), SIZES[3])
    assert found.nbytes == SIZES[[3, 2, 1]].sum()


@for_each("limit", [0, 150, 300, 450, 600, 10**6])
def test_the_limit_is_never_exceeded_and_more_memory_decodes_less(limit):
    rng = np.random.default_rng(3)
    steps = uses(*(rng.choice(4, 2, replace=False).tolist() for _ in range(30)))
    found, more = (keep(steps, kib * 2**10) for kib in (limit, limit + 200))
    assert found.peak <= limit * 2**10
    assert more.nbytes <= found.nbytes
    assert found.is_decoded.sum() == len(steps.columns) - found.is_kept.sum()
