"""The strategies of a rewrite: each within the memory, and their costs are what one counts."""

from math import prod

import numpy as np
from hypothesis import given

from tests.parallel.plan.jobs import elements, is_made_of, jobs, met, pieces, regions
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.parallel.plan.strategies import Costs
from zarrdask.storage.capabilities import REMOTE_COSTS, Capabilities
from zarrdask.storage.memory import MemoryStore


@given(jobs())
def test_no_way_takes_more_memory_than_there_is(job):
    grids, costs = job
    for scheme in schemes(grids, costs):
        for stage in scheme.stages:
            assert prod(stage.regions.longest) * grids.itemsize <= stage.peak
            assert stage.peak * stage.costs.at_once <= costs.memory
            assert 1 <= stage.threads * stage.costs.at_once <= costs.threads
            assert stage.costs.slab <= max(costs.memory // stage.costs.at_once // 8, 1)


@given(jobs())
def test_a_pass_has_each_element_once(job):
    grids, costs = job
    for scheme in schemes(grids, costs):
        for stage in scheme.stages:
            count = np.zeros(grids.shape, int)
            for box in regions(stage.regions):
                count[tuple(slice(*span) for span in box)] += 1
            assert (count == 1).all()


@given(jobs())
def test_who_writes_the_target_has_whole_units_of_it(job):
    grids, costs = job
    for scheme in schemes(grids, costs):
        last = scheme.stages[-1]
        assert last.writes == "target"
        assert is_made_of(last.regions, grids.target)


@given(jobs())
def test_of_several_passes_the_first_reads_whole_pieces_and_each_the_next_ones_packs(job):
    grids, costs = job
    for scheme in schemes(grids, costs):
        reads = [stage.reads for stage in scheme.stages]
        writes = [stage.writes for stage in scheme.stages]
        assert reads == ["source", *["packed"] * (len(reads) - 1)]
        assert writes == [*["packed"] * (len(reads) - 1), "target"]
        if len(reads) > 1:
            assert is_made_of(scheme.stages[0].regions, grids.source)


@given(jobs())
def test_requests_and_bytes_are_what_one_counts(job):
    grids, costs = job
    source, target = pieces(grids.source), pieces(grids.target)
    for scheme in schemes(grids, costs):
        before = source
        for at, stage in enumerate(scheme.stages):
            own = regions(stage.regions)
            pairs = met(own, before)
            written = target if stage is scheme.stages[-1] else own
            if at == 0:  # chunks are read as a whole, again by each that meets them
                assert stage.bytes_read == sum(elements(b) for _, b in pairs) * grids.itemsize
            else:
                assert stage.bytes_read == grids.nbytes
            assert stage.bytes_written == grids.nbytes
            assert stage.requests == len(pairs) + len(written)
            assert stage.tasks == len(own)
            before = own


@given(jobs())
def test_several_passes_move_the_array_twice_each(job):
    grids, costs = job
    for scheme in schemes(grids, costs):
        count = {"one pass": 1, "two passes": 2, "three passes": 3}[scheme.name]
        assert len(scheme.stages) == count
        if count > 1:
            assert scheme.moved == 2 * count * grids.nbytes
            assert costs.packs
        else:
            assert scheme.moved >= 2 * grids.nbytes


@given(jobs())
def test_numbers_of_a_way_are_those_of_its_passes(job):
    for scheme in schemes(*job):
        stages = scheme.stages
        assert scheme.moved == sum(s.bytes_read for s in stages) + sum(
            s.bytes_written for s in stages
        )
        assert scheme.requests == sum(s.requests for s in stages)
        assert scheme.tasks == sum(s.tasks for s in stages)
        assert scheme.peak == max(s.peak * s.costs.at_once for s in stages)
        assert scheme.cost >= scheme.moved + scheme.requests * job[1].request


def test_the_slowest_store_decides_what_requests_cost():
    class Far(MemoryStore):
        capabilities = Capabilities(costs=REMOTE_COSTS)

    costs = Costs(2**20, packs=False)
    near, far = MemoryStore(), Far()
    assert costs.for_stores([]) == costs.for_stores([near]) == costs
    slow = costs.for_stores([near, far])
    assert slow == costs.for_stores([far])
    expected = far.capabilities.costs
    assert (slow.request, slow.copies, slow.network) == expected[:3]
    assert (slow.memory, slow.packs) == (2**20, False)
