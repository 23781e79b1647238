"""Plans of rewrites: within the memory, each element once, as many requests as one counts."""

import re
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.axes import axes_of, grids_of
from tests.covering import for_each
from tests.parallel.plan.jobs import is_made_of, jobs, pieces, smallest
from zarrdask.errors import MetadataError
from zarrdask.parallel.plan.plan_report import PlanReport
from zarrdask.parallel.plan.rechunk_strategies import schemes
from zarrdask.parallel.plan.strategies import Costs

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40


@given(jobs())
def test_the_first_is_the_cheapest(job):
    found = schemes(*job)
    assert [scheme.cost for scheme in found] == sorted(scheme.cost for scheme in found)
    assert {scheme.name for scheme in found} in (
        {"one pass"},
        {"one pass", "two passes", "three passes"},
    )


@given(jobs(), st.integers(1, 1000))
def test_too_little_memory_is_refused_and_the_smallest_that_works_does(job, less):
    grids, costs = job
    least = smallest(grids, costs)
    assert schemes(grids, costs._replace(memory=least))
    if least:
        with pytest.raises(MetadataError, match=rf"max_mem.*at least {least} bytes"):
            schemes(grids, costs._replace(memory=max(least - less, 0)))


@given(jobs())
def test_where_memory_holds_the_array_each_byte_is_moved_once(job):
    grids, costs = job
    unit = max(grids.piece_bytes, grids.unit_bytes)
    enough = 4 * grids.nbytes + 4 * unit
    best = schemes(grids, costs._replace(memory=enough, threads=1, processes=1))[0]
    assert best.name == "one pass"
    assert best.moved == 2 * grids.nbytes
    assert best.requests == len(pieces(grids.source)) + len(pieces(grids.target))


def test_parts_of_chunks_make_one_pass_where_whole_chunks_take_two():
    grids = grids_of((256, 1024, 1024), 4, (1, 1024, 1024), (256, 64, 64))
    costs = Costs(256 * MIB, 2)
    assert schemes(grids, costs)[0].name == "two passes"
    divided = replace(grids, divided=axes_of((1, 128, 1024), grids.shape))
    best = schemes(divided, costs)[0]
    assert (best.name, best.moved) == ("one pass", 2 * grids.nbytes)
    assert best.peak <= costs.memory
    # A chunk is requested for each region that needs a part of it.
    rows = best.stages[0].regions.counts[1]
    assert best.requests == 256 * rows + 16 * 16


def test_chunks_of_shards_are_requested_by_runs_and_each_index_once_a_task():
    grids = grids_of((64, 256, 256), 4, (1, 32, 32), (64, 32, 32))
    held = replace(grids, holders=axes_of((16, 256, 256), grids.shape))
    best = schemes(held, Costs(4 * MIB, 1))[0]
    [stage], [regions] = best.stages, best.cuttings
    rows, columns = regions.counts[1:]
    # The chunks of a row are neighbours in a shard: 64 planes have 8 rows of chunks each.
    runs, indexes = 64 * 8 * columns, 4 * rows * columns
    assert stage.requests == runs + indexes + grids.units.size
    assert best.requests < schemes(grids, Costs(4 * MIB, 1))[0].requests


@given(jobs())
def test_objects_of_one_chunk_each_change_only_the_number_of_requests(job):
    grids, costs = job
    held = replace(grids, holders=grids.source)
    assert {s.name for s in schemes(held, costs)} == {s.name for s in schemes(grids, costs)}


@given(jobs())
def test_parts_that_are_whole_chunks_change_no_plan(job):
    grids, costs = job
    divided = replace(grids, divided=grids.source)
    found = [(s.name, s.cost, s.peak) for s in schemes(divided, costs)]
    assert found == [(s.name, s.cost, s.peak) for s in schemes(grids, costs)]


def large():
    """Arrays of TiB whose chunks have a MiB or a few, and memory for some hundred of these."""
    side = st.sampled_from([1, 64, 1000, 4096, 100_000])

    @st.composite
    def draw_job(draw):
        ndim = draw(st.integers(2, 3))
        shape = (1_000_000, 300_000) if ndim == 2 else (20_000, 4000, 5000)
        grids = []
        for _ in range(2):
            lengths = [1] * ndim
            for axis in draw(st.permutations(range(ndim))):
                room = 500_000 // prod(lengths)
                wanted = draw(side) if axis else room
                lengths[axis] = max(1, min(shape[axis], room, wanted))
            grow = draw(st.integers(0, ndim - 1))
            others = prod(lengths) // lengths[grow]
            lengths[grow] = min(shape[grow], max(lengths[grow], 250_000 // others))
            grids.append(tuple(lengths))
        return grids_of(shape, 8, *grids)

    return draw_job()


@settings(max_examples=10)
@given(large(), st.sampled_from([256 * MIB, GIB, 4 * GIB]), st.integers(1, 8))
def test_input_and_output_stay_near_the_lower_bound(grids, memory, threads):
    # Nothing can be less than 2; two passes are 4, and 6 with one between that saves requests.
    best = schemes(grids, Costs(memory, threads))[0]
    assert 2 * grids.nbytes <= best.moved <= 6 * grids.nbytes


@given(jobs(["units", "inner"]))
def test_bytes_are_moved_by_tasks_of_whole_units(job):
    grids, costs = job
    (scheme,) = schemes(grids, costs)
    (stage,) = scheme.stages
    assert scheme.name == "bytes as they are"
    assert stage.moves == grids.moves
    assert scheme.moved == 2 * grids.nbytes
    assert is_made_of(stage.regions, grids.target)
    assert stage.peak * stage.costs.at_once <= costs.memory
    units = len(pieces(grids.target))
    parts = units if grids.moves == "units" else len(pieces(grids.source))
    assert stage.requests == units + parts


ERA5 = (350640, 721, 1440)


CLASSIC = {
    "era5 in time": (ERA5, 4, (31, 721, 1440), (43800, 10, 10), GIB),
    "era5 in all time": (ERA5, 4, (31, 721, 1440), (350640, 10, 10), GIB),
    "era5 back": (ERA5, 4, (43800, 10, 10), (31, 721, 1440), GIB),
    "time to space": ((10000, 1000, 1000), 8, (1, 1000, 1000), (10000, 10, 10), GIB),
    "shards": ((40000, 2000, 2000), 4, (100, 100, 100), (400, 400, 400), GIB),
    "primes": ((99991, 1009, 1013), 4, (7, 1009, 1013), (9973, 31, 37), GIB),
    "100 TiB": ((2**27, 2**20), 1, (2**10, 2**18), (2**24, 2**4), 4 * GIB),
}


@for_each("case", CLASSIC.values())
def test_two_passes_are_enough_of_classic_cases(case):
    shape, itemsize, source, target, memory = case
    best = schemes(grids_of(shape, itemsize, source, target), Costs(memory, 2))[0]
    assert best.name in ("one pass", "two passes")
    assert best.moved <= 4 * prod(shape) * itemsize


def test_what_is_aligned_takes_one_pass_whatever_the_memory():
    grids = grids_of((10**6, 10**4), 8, (1000, 100), (3000, 100))
    best = schemes(grids, Costs(40 * MIB))[0]
    assert (best.name, best.moved) == ("one pass", 2 * grids.nbytes)


def test_far_away_a_request_costs_more_so_that_there_are_fewer():
    shape, itemsize, source, target, memory = CLASSIC["era5 in all time"]
    grids = grids_of(shape, itemsize, source, target)
    near, far = (schemes(grids, Costs(memory, request=cost))[0] for cost in (2**15, 2**19))
    assert (near.name, far.name) == ("two passes", "three passes")
    assert far.requests < near.requests / 10


def test_several_workers_have_something_to_do():
    grids = grids_of((400, 400), 8, (1, 400), (400, 1))
    tasks = [schemes(grids, Costs(8 * MIB, processes=n))[0].stages[-1].tasks for n in (1, 4)]
    assert tasks[0] == 1
    assert tasks[1] % 4 == 0


def report(job, way=None):
    found = tuple(schemes(*job))
    chosen = tuple(scheme for scheme in found if way in (None, scheme.name))
    return PlanReport(*job, chosen)


class TestReport:
    @given(jobs(), st.data())
    def test_each_way_prints_and_draws_itself(self, job, data):
        found = report(job)
        way = data.draw(st.sampled_from(found.schemes))
        found = replace(found, schemes=(way,))
        assert way.name in str(found)
        assert repr(found).startswith("<zarrdask.PlanReport (")
        assert found._repr_html_().startswith("<table")
        for stage in range(-1, len(way.stages)):
            assert found.svg(stage).startswith("<svg")

    WIDE = (grids_of((4096, 4096), 8, (1, 4096), (4096, 1)), Costs(4 * MIB))

    def test_it_says_in_numbers_why(self):
        found = report(self.WIDE)
        assert "array     (4096, 4096), 128 MiB" in str(found)
        assert "from 4096 pieces of 1 x 4096 to 4096 chunks or shards of 4096 x 1" in str(found)
        assert "strategy  two passes; I/O 512 MiB (4.0x the array), " in str(found)
        assert re.search(r"one\s+pass\s+would\s+cost \d", str(found))
        assert re.search(r"three\s+passes\s+would\s+cost \d", str(found))
        assert re.search(r"pass 2 +\d+ tasks of 4096 x \d+; read packed pieces", str(found))
        assert re.search(r"up to [\d.]+ MiB of 4 MiB per process", str(found))
        assert found.objects == 4096
        assert found.tasks == found.scheme.tasks
        assert found.peak == found.scheme.peak <= 4 * MIB

    def test_it_goes_another_way_if_one_asks(self):
        found = report(self.WIDE).by("one pass")
        assert found.scheme.name == "one pass"
        assert len(found.schemes) == 3
        assert re.search(r"two\s+passes\s+would\s+cost 0\.\d+x as much", str(found))
        with pytest.raises(
            MetadataError, match=r"strategy.*found 'four passes'.*one pass, two passes"
        ):
            found.by("four passes")

    def test_it_says_why_there_is_one_way_only(self):
        grids, costs = self.WIDE
        found = report((grids, costs._replace(packs=False)))
        assert "values of variable size can't be packed" in str(found)
        found = report((grids, costs._replace(memory=GIB)))
        assert "every byte is read once and written once" in str(found)
        found = report((replace(grids, moves="units", target=grids.source), costs))
        assert "source and target have the same encoded bytes" in str(found)

    def test_a_drawing_shows_what_is_read_and_written(self):
        found = report((grids_of((8, 8), 8, (1, 8), (8, 1)), Costs(400)), "one pass")
        svg = found.svg()
        assert "pass 1 of 1: (8, 8)" in svg
        assert "regions, one task each" in svg

    def test_what_is_too_large_is_not_drawn(self):
        found = report((grids_of((10**6,), 8, (1,), (1,)), Costs(MIB)))
        assert "<svg" not in found._repr_html_()
