"""Where level 0 has changed, by the groups of its chunks."""

import numpy as np
import pytest

from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.tools.pyramids.changed import ChangedUnits, whole_bounds

GRID = RegularGrid((10, 12), (2, 3))


def changed(*groups, lengths=(1, 1)):
    """Return the changes of some groups, each of `lengths` chunks."""
    counts = [-(-n // k) for n, k in zip(GRID.counts, lengths, strict=True)]
    flags = np.zeros(counts, bool)
    for group in groups:
        flags[group] = True
    return ChangedUnits(GRID, lengths, flags)


def test_the_bounds_hold_all_that_has_changed():
    assert changed((1, 2)).bounds == ((2, 4), (6, 9))
    assert changed((1, 2), (4, 0)).bounds == ((2, 10), (0, 9))
    assert changed((2, 1), lengths=(2, 2)).bounds == ((8, 10), (6, 12))


def test_a_region_is_extended_to_whole_groups_that_have_changed():
    units = changed((0, 1), lengths=(2, 2))
    assert units.extended(((1, 3), (7, 8))) == ((0, 4), (6, 12))
    assert units.extended(((5, 6), (7, 8))) == ((5, 6), (7, 8))


def test_of_a_group_of_one_chunk_a_part_may_have_changed():
    assert changed((0, 0)).extended(((1, 2), (0, 1))) == ((1, 2), (0, 1))


def test_groups_outside_a_region():
    outside = changed((0, 0), (4, 3)).outside(((0, 2), (0, 3)))
    assert np.argwhere(outside).tolist() == [[4, 3]]
    assert not changed((0, 0)).outside(whole_bounds(GRID.shape)).any()


@pytest.mark.parametrize("bounds", [((0, 10), (0, 12)), ((3, 4), (3, 4))])
def test_nothing_is_extended_without_changes(bounds):
    assert changed().extended(bounds) == bounds
