"""Plans of writes: who writes which unit, what it is made of, what it costs."""

import pickle
from itertools import accumulate, combinations, pairwise, product
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.axes import axes_of
from tests.covering import for_each
from zarrdask.errors import SelectionError
from zarrdask.parallel.plan.write_plan import plan_writes


class Stored(NamedTuple):
    """What a plan knows of a stored array."""

    shape: tuple[int, ...]
    dtype: np.dtype
    grid: Any
    dimension_names: tuple[str | None, ...] | None = None


def plan(chunks, units, *, shape=None, start=None, dtype="f4", stored=None, names=None, size=2**30):
    """Return the plan of a write to all of an array, or to a part that begins somewhere."""
    lengths = tuple(map(sum, chunks))
    start = start or (0,) * len(lengths)
    shape = shape or lengths
    grid = SimpleNamespace(axes=axes_of(units, shape))
    target = Stored(shape, np.dtype(stored or dtype), grid, names)
    region = tuple(slice(a, a + n, 1) for a, n in zip(start, lengths, strict=True))
    return plan_writes(chunks, np.dtype(dtype), target, region, block_size=size)


def spans(lengths, start):
    """Return where blocks begin and end."""
    return list(pairwise(accumulate(lengths, initial=start)))


def unit_spans(units):
    """Return where units begin and end, as far as the array goes."""
    return list(pairwise(units.edges.tolist()))


@st.composite
def plans(draw, least=0):
    """Plans of up to three axes: blocks of any lengths (also 0), units even or not, a region."""
    chunks, units, shape, start = [], [], [], []
    for _ in range(draw(st.integers(least, 3))):
        size = draw(st.integers(1, 24))
        begin = draw(st.integers(0, size - 1))
        end = draw(st.integers(begin, size))
        cuts = sorted(draw(st.lists(st.integers(begin, end), max_size=4)))
        chunks.append(tuple(b - a for a, b in pairwise([begin, *cuts, end])))
        ends = draw(st.sets(st.integers(1, size - 1), max_size=5)) if size > 1 else set()
        # The last unit may hang over.
        edges = np.array([0, *sorted(ends), size + draw(st.integers(0, 3))])
        units.append(draw(st.one_of(st.integers(1, 30), st.just(edges))))
        shape.append(size)
        start.append(begin)
    size = draw(st.sampled_from([1, 100, 2**30]))
    return plan(tuple(chunks), tuple(units), shape=tuple(shape), start=tuple(start), size=size)


def indices(found):
    """Return the units that something is written to."""
    return product(*(axis.written for axis in found.axes))


@given(plans())
def test_each_unit_has_one_owner_and_that_has_all_of_it(found):
    met = set(indices(found))
    assert len(met) == found.objects
    for index in met:
        owner = found.owner(index)
        for axis, unit, block in zip(found.axes, index, owner, strict=True):
            low, high = unit_spans(axis.units)[unit]
            begin, end = spans(axis.blocks, axis.start)[block]
            assert begin <= max(low, axis.start)
            assert min(high, axis.stop) <= end


@given(plans())
def test_the_units_that_are_met_are_those_of_the_region_and_no_others(found):
    for axis in found.axes:
        meets = [
            number
            for number, (low, high) in enumerate(unit_spans(axis.units))
            if max(low, axis.start) < min(high, axis.stop)
        ]
        assert list(axis.written) == (meets if axis.start < axis.stop else [])


@given(plans())
def test_blocks_cover_the_region_and_are_as_many_as_there_are_tasks(found):
    assert tuple(map(sum, found.blocks)) == found.shape == tuple(map(sum, found.source))
    assert found.tasks == prod(map(len, found.blocks))


def kind_of(found, index):
    """Return what a unit is, and the source blocks it is made of: by looking at them all."""
    part, sources = False, []
    for axis, unit in zip(found.axes, index, strict=True):
        low, high = unit_spans(axis.units)[unit]
        part |= low < axis.start or high > axis.stop
        met = [
            number
            for number, (a, b) in enumerate(spans(axis.source, axis.start))
            if max(a, low) < min(b, high)
        ]
        sources.append(met)
    merged = prod(map(len, sources)) > 1
    return "read-modify-write" if part else "merged" if merged else "whole", sources


@given(plans())
def test_kinds_and_sources_are_what_one_finds_by_looking(found):
    counts = {"whole": 0, "merged": 0, "read-modify-write": 0}
    for index in indices(found):
        kind, sources = kind_of(found, index)
        unit = found.unit(index)
        assert unit.kind == kind
        assert unit.index == index
        counts[kind] += 1
        for rng, met, lengths in zip(unit.sources, sources, found.source, strict=True):
            assert [i for i in rng if lengths[i]] == met
    assert (found.whole, found.merged, found.read_modify_write) == tuple(counts.values())


@given(plans())
def test_what_moves_is_all_but_the_most_that_a_block_has_from_one_source(found):
    moved = 0
    for block in product(*(spans(a.blocks, a.start) for a in found.axes)):
        sizes = [
            prod(max(min(b, d) - max(a, c), 0) for (a, b), (c, d) in zip(block, other, strict=True))
            for other in product(*(spans(a.source, a.start) for a in found.axes))
        ]
        moved += prod(b - a for a, b in block) - max(sizes, default=0)
    assert found.moved == moved * 4


@given(plans(least=1))
def test_no_other_boundaries_along_an_axis_move_less(found):
    def kept(axis, blocks):
        old = spans(axis.source, axis.start)
        return sum(max(min(b, d) - max(a, c) for c, d in old) for a, b in spans(blocks, axis.start))

    for axis in found.axes:
        inner = [a for a, _ in unit_spans(axis.units) if axis.start < a < axis.stop][:7]
        most = max(
            kept(axis, [b - a for a, b in pairwise([axis.start, *chosen, axis.stop])])
            for count in range(len(inner) + 1)
            for chosen in combinations(inner, count)
        )
        assert axis.pieces.kept >= most


@given(plans(least=1))
def test_blocks_that_lie_right_stay_and_cost_nothing(found):
    again = plan(
        found.blocks,
        tuple(axis.units for axis in found.axes),
        shape=tuple(axis.units.size for axis in found.axes),
        start=tuple(axis.start for axis in found.axes),
    )
    assert again.blocks == found.blocks
    assert again.extra_tasks == 0
    assert again.moved == 0
    assert again.merged == 0


@given(plans(least=1))
def test_extra_tasks_are_those_that_dask_makes(found):
    if any(0 in lengths for lengths in found.source) or found.blocks == found.source:
        return
    x = da.zeros(found.shape, chunks=found.source)
    made = x.rechunk(found.blocks, threshold=10**9, method="tasks")
    extra = {key: task for key, task in dict(made.dask).items() if key not in dict(x.dask)}
    aliases = sum(type(task).__name__ == "Alias" for task in extra.values())
    assert found.extra_tasks == len(extra) - aliases


def test_neighbours_exchange_edges():
    found = plan(((50, 50, 50), (100,)), (64, 100))
    assert found.blocks == ((64, 64, 22), (100,))
    assert (found.objects, found.whole, found.merged, found.read_modify_write) == (3, 1, 2, 0)
    assert found.moved == (14 + 28) * 100 * 4
    assert [found.owner((i, 0)) for i in range(3)] == [(0, 0), (1, 0), (2, 0)]
    # 4 pieces that aren't blocks, and 2 blocks of several pieces.
    assert found.extra_tasks == 6


def test_units_say_why():
    found = plan(((4, 4), (3, 3, 3)), (4, 4), shape=(12, 12), start=(2, 1), names=("time", None))
    assert found.unit((1, 1)).why == "Dask blocks meet in it along time at 6, along axis 1 at 7"
    assert found.unit((0, 1)).why == (
        "it is written in part: 2:4 of 0:4 along time; Dask blocks meet in it along axis 1 at 7"
    )
    assert found.unit((0, 0)).why == (
        "it is written in part: 2:4 of 0:4 along time, 1:4 of 0:4 along axis 1"
    )
    assert plan(((4,),), (4,)).unit([0]).why == "it lies in one Dask block"
    many = plan(((1,) * 9,), (9,)).unit(0)
    assert many.why == "Dask blocks meet in it along axis 0 at 1, 2, 3, ..."
    assert many.sources == (range(9),)


@for_each("index", [(0, 0), (3, 1), (-1, 1), (1,), (1, 1, 1), 1])
def test_a_unit_that_nothing_is_written_to_has_no_owner(index):
    found = plan(((4, 4), (4,)), (4, 4), shape=(12, 12), start=(0, 4))
    with pytest.raises(SelectionError, match="nothing is written"):
        found.owner(index)


def test_scalars_and_empty_arrays_have_plans():
    scalar = plan((), ())
    assert (scalar.objects, scalar.whole, scalar.tasks, scalar.moved) == (1, 1, 1, 0)
    assert scalar.owner(()) == ()
    empty = plan(((0,), (3, 3)), (4, 4))
    assert (empty.objects, empty.tasks, empty.moved, empty.nbytes) == (0, 2, 0, 0)
    for found in (scalar, empty):
        assert str(found)
        assert found.svg()


def test_joined_blocks_are_cut_elsewhere_so_that_memory_is_bounded():
    found = plan(((1,) * 100, (1000,), (1000,)), (100, 100, 100), size=1)
    assert found.blocks == ((100,), (100,) * 10, (200,) * 5)
    assert found.block_bytes == 2 * 1000 * 1000 * 4
    roomy = plan(((1,) * 100, (1000,), (1000,)), (100, 100, 100), size=100 * 1000 * 1000 * 4)
    assert roomy.blocks == ((100,), (1000,), (1000,))


@given(plans(least=1))
def test_a_block_has_no_more_than_twice_the_largest_that_there_was_or_is_one_unit(found):
    bound = max(2 * prod(map(max, found.source)) * 4, 100)
    small = plan(
        found.source,
        tuple(axis.units for axis in found.axes),
        shape=tuple(axis.units.size for axis in found.axes),
        start=tuple(axis.start for axis in found.axes),
        size=100,
    )
    units = [
        max((n for n in axis.blocks if n > axis.unit_length), default=0) for axis in small.axes
    ]
    assert small.block_bytes <= bound or not any(units)


def test_the_memory_of_a_task_by_its_parts():
    aligned = plan(((64, 64),), (32,), dtype="f8")
    assert (aligned.block_bytes, aligned.unit_bytes) == (512, 256)
    assert aligned.peak == 512 + 3 * 256
    # Pieces and what they are joined to.
    assert plan(((500,) * 3,), (64,), dtype="f8").peak == 2 * 512 * 8 + 3 * 64 * 8
    # The values, as they are and as they are stored.
    assert plan(((64, 64),), (32,), dtype="f8", stored="f4").peak == 512 + 256 + 3 * 128
    # A unit that hangs over is encoded in full.
    assert plan(((10,),), (1000,), dtype="i1").peak == 10 + 3 * 1000


def test_an_array_of_more_units_than_one_could_count_is_planned_at_once():
    found = plan(((1_000_000,) * 100,) * 3, (16, 30, 20))
    assert found.objects == 6_250_000 * 3_333_334 * 5_000_000
    assert found.owner((6_249_999, 3_333_333, 4_999_999)) == (99, 99, 99)
    assert found.whole + found.merged == found.objects
    assert found.extra_tasks
    assert str(found)


def test_one_axis_of_units_without_end_is_planned_at_once():
    found = plan(((10**15,) * 100,), (10,), dtype="i1", size=10**16)
    assert found.objects == 10**16
    assert found.owner(10**15) == (10,)
    assert found.svg()


def test_plans_say_what_they_are():
    found = plan(((50, 50, 50), (100,)), (64, 100), names=("y", "x"))
    assert repr(found) == (
        "<zarrdask.WritePlan (150, 100), 3 tasks, 3 chunks or shards: 1 whole, 2 merged, 0 partial>"
    )
    assert str(found) == (
        "array   (150, 100) float32, chunks or shards of 64 x 100\n"
        "stored  3 chunks or shards: 1 whole, 2 merged from several Dask blocks\n"
        "costs   3 PUT, about 75 KiB stored (before compression)\n"
        "tasks   3 write tasks; 6 tasks before to split and join blocks\n"
        "moved   16.4 KiB of 58.6 KiB move to another block\n"
        "memory  up to 125 KiB per task (block 25 KiB, chunk or shard 25 KiB)\n"
        "y       3 x 50 become 2 x 64, 22\n"
        "x       100 unchanged"
    )


def test_plans_of_regions_say_which_units_they_change():
    found = plan(
        ((4,),), (np.array([0, 3, 5, 9, 10]),), shape=(9,), start=(1,), dtype="f8", stored="f4"
    )
    assert str(found) == (
        "array   (4,) float64 as float32 into (9,), chunks or shards of 3, 2, 4, 1\n"
        "stored  2 chunks or shards: 1 whole, 1 written in part (read, changed, written back)\n"
        "costs   1 GET, 2 PUT, about 12 B fetched (if all are stored, before compression), "
        "about 24 B stored (before compression)\n"
        "tasks   1 write task; blocks are unchanged\n"
        "moved   0 B of 32 B move to another block\n"
        "memory  up to 96 B per task (block 32 B, chunk or shard 12 B)\n"
        "axis 0  4 unchanged; 1:3 of chunk or shard 0, 0:3"
    )


def test_plans_pickle():
    found = plan(((50, 50, 50),), (64,))
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
