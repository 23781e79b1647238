"""Plans by which workers hand each other what they read: in boxes that fit in all of them."""

from math import ceil, prod

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.axes import grids_of
from tests.covering import for_each
from tests.parallel.plan.jobs import elements, is_made_of, jobs, met, pieces, regions
from zarrdask.parallel.plan.plan_report import PlanReport
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.parallel.plan.shuffle import exchanges
from zarrdask.parallel.plan.strategies import Costs
from zarrdask.storage.capabilities import REMOTE_COSTS

MIB, GIB = 2**20, 2**30
NAME = "in the cluster"


@st.composite
def exchanged(draw):
    """Arrays, and workers that hold all of one, or hardly a part."""
    grids, costs = draw(jobs())
    assume(grids.nbytes)  # otherwise one pass does all once
    costs = costs._replace(processes=draw(st.integers(2, 9)), memory=2**40)
    (whole, *_) = exchanges(grids, costs)
    less = costs._replace(memory=draw(st.integers(costs.threads, whole.peak + costs.threads)))
    for scheme in exchanges(grids, less):
        return grids, less, scheme
    return grids, costs, whole


def boxes_of(grids, scheme):
    """Return the boxes, each with what is read and what is written of it: by counting."""
    boxes = regions(scheme.exchange.boxes)
    read, written = (regions(stage.regions) for stage in scheme.stages)
    return [(box, inside(read, box), inside(written, box)) for box in boxes]


def inside(found, box):
    return [
        each
        for each in found
        if all(start <= a and b <= stop for (a, b), (start, stop) in zip(each, box, strict=True))
    ]


@given(exchanged())
def test_boxes_end_where_both_grids_have_ends_and_regions_in_boxes(job):
    grids, _, scheme = job
    boxes = scheme.exchange.boxes
    assert is_made_of(boxes, grids.source)
    assert is_made_of(boxes, grids.target)
    read, written = (stage.regions for stage in scheme.stages)
    assert is_made_of(read, grids.source)
    assert is_made_of(written, grids.target)
    found = boxes_of(grids, scheme)
    for box, ours, theirs in found:
        assert sum(map(elements, ours)) == sum(map(elements, theirs)) == elements(box)
    assert sum(len(ours) for _, ours, _ in found) == scheme.stages[0].tasks
    assert sum(len(theirs) for _, _, theirs in found) == scheme.stages[1].tasks


@given(exchanged())
def test_each_byte_is_read_once_and_written_once(job):
    grids, _, scheme = job
    assert scheme.moved == 2 * grids.nbytes
    assert scheme.requests == len(pieces(grids.source)) + len(pieces(grids.target))
    assert scheme.exchange.pieces == len(met(*(regions(stage.regions) for stage in scheme.stages)))


@given(exchanged())
def test_what_a_worker_holds_of_any_box_fits(job):
    grids, costs, scheme = job
    read, written = scheme.stages
    for _, ours, theirs in boxes_of(grids, scheme):
        share = ceil(len(ours) / costs.processes)
        kept = share * max(map(elements, ours), default=0) * grids.itemsize
        # What a task works with comes to it.
        assert kept + read.threads * grids.piece_bytes <= read.peak
        assert kept + 2 * max(map(elements, theirs), default=0) * grids.itemsize <= written.peak
    assert scheme.peak == max(read.peak, written.peak) <= costs.memory
    assert read.costs.at_once == written.costs.at_once == 1


@given(exchanged())
def test_it_prints_and_draws_itself(job):
    found = PlanReport(*job[:2], (job[2],))
    assert "workers exchange" in str(found)
    assert "keep pieces" in str(found)
    assert found.svg(0).startswith("<svg")
    assert found.svg(1).startswith("<svg")
    assert found._repr_html_().startswith("<table")


GRIDS = grids_of((256, 1024, 1024), 4, (1, 1024, 1024), (256, 64, 64))


@for_each(
    ("memory", "processes", "exchanges", "name"),
    [
        (256 * MIB, 8, True, NAME),
        (256 * MIB, 4, True, "two passes"),  # together they hold the array, but nothing beside
        (256 * MIB, 8, False, "two passes"),
        (2 * GIB, 1, True, "one pass"),
        (256 * MIB, 1, True, "two passes"),
    ],
)
def test_it_is_taken_where_all_workers_together_hold_a_box(memory, processes, exchanges, name):
    costs = Costs(memory, processes=processes, exchanges=exchanges)
    assert schemes(GRIDS, costs)[0].name == name


def test_longer_arrays_have_more_boxes():
    grids = grids_of((2560, 1024, 1024), 4, (1, 1024, 1024), (256, 64, 64))
    scheme = schemes(grids, Costs(256 * MIB, processes=8, exchanges=True))[0]
    assert scheme.exchange.boxes.counts == (10, 1, 1)


def test_each_worker_has_as_much_to_do():
    for processes in range(6, 40):
        (scheme, *_) = exchanges(GRIDS, Costs(256 * MIB, processes=processes))
        lengths = [np.diff(edges) for edges in scheme.stages[0].regions.edges]
        read = len(lengths[0])
        # Rows are the smallest that can be shared.
        assert ceil(read / processes) * lengths[0].max() <= 1.5 * ceil(256 / processes)


def test_a_network_that_is_slower_than_the_store_is_spared():
    costs = Costs(256 * MIB, processes=8, exchanges=True)
    names = [schemes(GRIDS, costs._replace(network=n))[0].name for n in (0.5, 4.0)]
    assert names == [NAME, "two passes"]


def test_far_away_it_saves_what_passes_would_store_between():
    grids = grids_of((8760, 721, 1440), 4, (24, 721, 1440), (8760, 10, 10))
    costs = Costs(2 * GIB, 2, 40, REMOTE_COSTS.request, copies=2, exchanges=True, network=0.5)
    best, other = schemes(grids, costs)[:2]
    assert (best.name, other.name) == (NAME, "two passes")
    assert prod(best.exchange.boxes.counts) == 1
