"""The factors from level to level, and the number of levels."""

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import ZarrdaskError
from zarrdask.tools.pyramids.level_factors import Steps

NAMES = ("t", "y", "x")


@for_each(
    "factors, expected",
    [
        (2, (1, 2, 2)),
        ({"x": 3}, (1, 1, 3)),
        ({0: 2, "y": 4}, (2, 4, 1)),
        ((1, 2, 4), (1, 2, 4)),
        (np.array([1, 2, 4]), (1, 2, 4)),
    ],
)
def test_factors_of_one_step_hold_for_all_levels(factors, expected):
    assert Steps.parse(None, factors, (9, 9, 9), NAMES) == Steps((expected,), None)


def test_factors_of_each_level_say_how_many_there_are():
    steps = Steps.parse(None, [(1, 2, 2), {"t": 2}], (9, 9, 9), NAMES)
    assert steps == Steps(((1, 2, 2), (2, 1, 1)), 3)
    assert Steps.parse(3, [(1, 2, 2), (1, 2, 2)], (9, 9, 9), NAMES).number == 3


@for_each(
    "levels, factors",
    [
        (0, 2),
        ("2", 2),
        (None, 0),
        (None, 1.5),
        (None, "2"),
        (None, (2, 2)),
        (None, {"z": 2}),
        (2, [(1, 2, 2), (1, 2, 2)]),
    ],
)
def test_other_values_are_errors(levels, factors):
    with pytest.raises(ZarrdaskError):
        Steps.parse(levels, factors, (9, 9, 9), NAMES)


def test_levels_end_where_a_chunk_holds_them():
    levels = Steps(((2, 2),), None).levels((64, 40), "0", "partial", (16, 16))
    assert [level.shape for level in levels] == [(64, 40), (32, 20), (16, 10)]
    assert [level.path for level in levels] == ["0", "1", "2"]
    assert [level.factors for level in levels] == [(1, 1), (2, 2), (4, 4)]


def test_an_axis_without_a_factor_does_not_count():
    levels = Steps(((1, 2),), None).levels((1000, 32), "0", "partial", (10, 16))
    assert [level.shape for level in levels] == [(1000, 32), (1000, 16)]


def test_cells_that_fill_no_window_end_the_levels_if_they_are_left_out():
    steps = Steps(((4, 4),), None)
    assert len(steps.levels((3, 64), "0", "trim", (1, 1))) == 1
    assert len(steps.levels((3, 64), "0", "partial", (1, 1))) == 4
