"""What of a plan is drawn: which axes, which units, which boundaries."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from tests.covering import for_each
from tests.parallel.plan.test_write_plan import plan, plans
from zarrdask.errors import SelectionError
from zarrdask.parallel.plan.drawing import choose, shown, strip


@for_each(
    ("chunks", "units", "axes"),
    [
        (((8,),), (4,), (0,)),
        (((8,), (8,)), (4, 4), (0, 1)),
        # Of axes along which the same happens, the last two.
        (((8,),) * 4, (4,) * 4, (2, 3)),
        # Where blocks meet within units, and then where there are several units.
        (((3, 5), (8,), (8,), (8,)), (4, 4, 8, 8), (0, 1)),
        (((8,), (3, 5), (8,), (8,)), (4, 4, 4, 8), (1, 2)),
        ((), (), ()),
    ],
)
def test_the_axes_along_which_most_happens_are_drawn(chunks, units, axes):
    assert choose(plan(chunks, units).axes, None).axes == axes


def test_axes_can_be_chosen():
    axes = plan(((8,),) * 3, (4,) * 3).axes
    assert choose(axes, (2, 0)).axes == (2, 0)
    assert choose(axes, [-2]).axes == (1,)


@for_each("wanted", [(), (0, 1, 2), (3,), (-4, 0), (1, 1), (2, -1)])
def test_axes_that_are_not_there_are_refused(wanted):
    with pytest.raises(SelectionError, match="one or two of 3 axes"):
        plan(((8,),) * 3, (4,) * 3).svg(wanted)


def test_along_other_axes_a_unit_that_is_whole_is_drawn():
    found = plan(((6, 6), (8,), (8,)), (4, 4, 4), shape=(16, 8, 8), start=(2, 0, 0))
    assert choose(found.axes, (1, 2)).position[0] == 1
    assert "0:4" not in found.svg((1, 2))
    assert "drawn: index 1 along axis 0" in found.svg((1, 2))


@given(plans(least=1))
def test_few_units_are_all_drawn(found):
    for axis in found.axes:
        assert len(shown(axis)) == min(axis.units.count, 20) or axis.units.count > 20


def test_of_many_units_the_first_the_last_and_those_where_blocks_meet_are_drawn():
    [axis] = plan(((100,) * 50,), (4,)).axes
    units = shown(axis)
    assert len(units) <= 20
    assert {0, 1, 24, 25, 49, 50, 1248, 1249} <= set(units)
    assert all(b - a != 2 for a, b in pairwise(units)), "one alone may as well be drawn"


def test_units_around_a_region_are_drawn():
    [axis] = plan(((10,) * 3,), (8,), shape=(1000,), start=(333,)).axes
    assert shown(axis) == [40, 41, 42, 43, 44, 45, 46]
    slots = strip(axis, "x").slots
    assert [slot.unit for slot in slots] == [None, *range(40, 47), None]
    assert (slots[0].begin, slots[-1].end) == (0, 1000)


@given(plans(least=1))
def test_slots_lie_side_by_side_and_have_the_whole_axis(found):
    for axis in found.axes:
        slots = strip(axis, "x").slots
        assert (slots[0].begin, slots[-1].end) == (0, axis.units.size)
        assert all(a.end == b.begin for a, b in pairwise(slots))


@given(plans(least=1))
def test_blocks_that_can_be_seen_are_told(found):
    for axis in found.axes:
        drawn = strip(axis, "x")
        if axis.units.count <= 20:
            assert drawn.edges == tuple(axis.block_edges.tolist())
            assert drawn.sources == tuple(pairwise(axis.source_edges.tolist()))


def test_a_hundred_thousand_blocks_are_not_all_told():
    [axis] = plan(((1,) * 100_000,), (10_000,)).axes
    assert len(strip(axis, "x").sources) < 1000


@given(plans())
def test_every_plan_can_be_drawn_and_printed(found):
    assert found.svg().startswith("<svg")
    assert found._repr_html_().startswith("<div")
    assert str(found)


def test_units_of_any_lengths_are_drawn():
    edges = np.array([0, 1, 1000, 1003, 5000])
    found = plan(((2000, 3000),), (edges,))
    assert [slot.end for slot in strip(found.axes[0], "x").slots] == edges[1:].tolist()
    offsets = strip(found.axes[0], "x").offsets
    assert all(b - a >= 16 for a, b in pairwise(offsets))
