"""Blocks of Dask arrays and stored units."""

from itertools import accumulate, combinations, pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.axes import axes_of, axis_of
from tests.covering import for_each
from zarrdask.parallel.plan import align
from zarrdask.parallel.plan.align import auto_block


def snap(blocks, start, units):
    """Snap blocks to units of a length, or with these boundaries."""
    return align.snap(blocks, start, axis_of(units, start + sum(blocks)))


def shorten(blocks, start, units, most):
    """Shorten blocks on units, as for `snap`."""
    ends = [first + sum(lengths) for first, lengths in zip(start, blocks, strict=True)]
    return align.shorten(blocks, start, axes_of(units, ends), most)


def edges(start, lengths):
    """Return where blocks begin, and where the last one ends."""
    return list(accumulate(lengths, initial=start))


@st.composite
def axes(draw):
    """Blocks along an axis: lengths, where they begin, and the units' length."""
    blocks = tuple(draw(st.lists(st.integers(1, 40), min_size=1, max_size=12)))
    start = draw(st.integers(0, 50))
    unit = draw(st.integers(1, 30))
    return blocks, start, unit


@given(axes())
def test_snapped_blocks_cover_the_same_stretch(axis):
    blocks, start, unit = axis
    found = snap(blocks, start, unit)
    assert sum(found) == sum(blocks)
    assert all(n > 0 for n in found)


@given(axes())
def test_each_unit_has_one_writer_after_snapping(axis):
    blocks, start, unit = axis
    found = edges(start, snap(blocks, start, unit))
    writers = {}
    for number, (a, b) in enumerate(pairwise(found)):
        for touched in range(a // unit, (b - 1) // unit + 1):
            writers.setdefault(touched, set()).add(number)
    assert all(len(who) == 1 for who in writers.values())
    assert set(writers) == set(range(start // unit, (start + sum(blocks) - 1) // unit + 1))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(1, 9), st.integers(0, 5))
def test_blocks_that_lie_right_stay(counts, unit, first):
    blocks = tuple(n * unit for n in counts)
    start = first * unit
    assert snap(blocks, start, unit) == blocks


def test_the_last_block_may_end_inside_the_last_unit():
    assert snap((64, 64, 22), 0, 64) == (64, 64, 22)


def test_snapping_goes_to_the_nearer_boundary():
    assert snap((30, 70), 0, 64) == (100,)
    assert snap((40, 60), 0, 64) == (64, 36)


@pytest.mark.parametrize("blocks", [(0,), (0, 0)])
def test_an_empty_axis_stays_empty(blocks):
    assert sum(snap(blocks, 0, 4)) == 0


shapes = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 40), st.integers(1, 4)), max_size=3)


def clipped(unit, shape):
    """Return what a unit holds of an array at most."""
    return tuple(min(u, n) for u, n in zip(unit, shape, strict=True))


@given(shapes, st.sampled_from([1, 2, 8]), st.integers(1, 200_000), st.none() | st.integers(0, 50))
def test_auto_blocks_are_whole_units_below_the_limit_unless_one_unit_is_above(
    axes, size, limit, depth
):
    shape = tuple(n for n, _, _ in axes)
    inner = tuple(c for _, c, _ in axes)
    unit = tuple(c * m for _, c, m in axes)
    depths = None if depth is None else tuple(depth // (2 + axis) for axis in range(len(axes)))
    block = auto_block(shape, unit, inner, size, limit, depths)
    huge = prod(clipped(unit, shape)) * size > 4 * limit
    part = inner if huge else unit
    for length, u, n in zip(block, part, shape, strict=True):
        assert length >= 1
        assert length % u == 0 or length == n
    if prod(clipped(block, shape)) * size > limit:
        assert clipped(block, shape) == clipped(part, shape)


@given(shapes, st.sets(st.integers(0, 2), min_size=1), st.integers(1, 200_000))
def test_blocks_of_an_empty_array_have_lengths_still(axes, empty, limit):
    shape = tuple(0 if axis in empty else n for axis, (n, _, _) in enumerate(axes))
    inner = tuple(c for _, c, _ in axes)
    unit = tuple(c * m for _, c, m in axes)
    assert all(length >= 1 for length in auto_block(shape, unit, inner, 8, limit))


@given(shapes, st.sampled_from([1, 2, 8]))
def test_an_array_below_the_limit_is_one_block(axes, size):
    shape = tuple(n for n, _, _ in axes)
    unit = tuple(c * m for _, c, m in axes)
    limit = prod(-(-n // u) * u or u for n, u in zip(shape, unit, strict=True)) * size
    block = auto_block(shape, unit, unit, size, limit)
    assert all(b >= n for b, n in zip(block, shape, strict=True))


@for_each(
    ("shape", "unit", "inner", "block"),
    [
        # 1 MiB chunks: sixteen of them, stacked along the leading axes.
        ((256, 1024, 1024), (64, 64, 64), (64, 64, 64), (256, 256, 64)),
        # A shard of 32 MiB is above 16 MiB: a block of its own.
        ((256, 1024, 1024), (128, 256, 256), (32, 32, 32), (128, 256, 256)),
        # A shard of 1 GiB is far above it: cut along its inner chunks.
        ((256, 1024, 1024), (256, 1024, 1024), (64, 64, 64), (256, 256, 64)),
        # A chunk of 1 GiB can't be read in parts.
        ((256, 1024, 1024), (256, 1024, 1024), (256, 1024, 1024), (256, 1024, 1024)),
    ],
)
def test_auto_blocks_of_sizes_as_in_the_benchmarks(shape, unit, inner, block):
    assert auto_block(shape, unit, inner, 4, 2**24) == block


@for_each(
    ("shape", "unit", "inner", "depths", "block"),
    [
        # Images: joined within each, not one on top of another.
        ((64, 4000, 4000), (1, 500, 500), (1, 500, 500), (0, 8, 8), (1, 2000, 2000)),
        ((64, 4000, 4000), (1, 500, 500), (1, 500, 500), (0, 0, 8), (2, 500, 4000)),
        # Where nothing is left to join that overlaps, units are stacked.
        ((64, 1000, 1000), (1, 500, 500), (1, 500, 500), (0, 8, 8), (4, 1000, 1000)),
        ((256, 1024, 1024), (64, 64, 64), (64, 64, 64), (2, 2, 2), (256, 128, 128)),
        # Of a neighbouring shard, one layer of chunks is read.
        ((64, 4096, 4096), (1, 512, 1024), (1, 64, 1024), (0, 8, 8), (1, 1024, 4096)),
    ],
)
def test_auto_blocks_that_overlap_are_joined_where_most_is_read_twice(
    shape, unit, inner, depths, block
):
    assert auto_block(shape, unit, inner, 4, 2**24, depths) == block


@st.composite
def uneven(draw):
    """Boundaries of units of different lengths, and a stretch of the axis."""
    ends = edges(0, draw(st.lists(st.integers(1, 9), min_size=1, max_size=12)))
    start = draw(st.integers(0, ends[-1] - 1))
    return np.array(ends), start, draw(st.integers(start + 1, ends[-1]))


@given(uneven(), st.data())
def test_each_uneven_unit_has_one_writer_after_snapping(case, data):
    boundaries, start, end = case
    cuts = data.draw(st.lists(st.integers(start + 1, end - 1) if end - start > 1 else st.nothing()))
    blocks = tuple(b - a for a, b in pairwise([start, *sorted(set(cuts)), end]))
    found = snap(blocks, start, boundaries)
    assert sum(found) == end - start
    assert all(n > 0 for n in found)
    assert set(edges(start, found)[1:-1]) <= set(boundaries.tolist())


@given(uneven())
def test_blocks_on_uneven_boundaries_stay(case):
    boundaries, start, end = case
    inner = [at for at in boundaries.tolist() if start < at < end]
    blocks = tuple(b - a for a, b in pairwise([start, *inner, end]))
    assert snap(blocks, start, boundaries) == blocks


def test_snapping_goes_to_the_nearer_boundary_of_uneven_units():
    boundaries = np.array([0, 10, 60, 100])
    assert snap((30, 70), 0, boundaries) == (10, 90)
    assert snap((35, 65), 0, boundaries) == (60, 40)
    assert snap((4, 96), 0, boundaries) == (100,)


def kept(blocks, found, start):
    """Return how much can stay: of each new block, the most that it has from one old block."""
    old = list(pairwise(edges(start, blocks)))
    return sum(
        max(min(b, d) - max(a, c) for c, d in old)
        for a, b in pairwise(edges(start, found))
        if a < b
    )


@st.composite
def few(draw):
    """Blocks of any lengths on few units of any lengths, from anywhere in them."""
    ends = edges(0, draw(st.lists(st.integers(1, 9), min_size=1, max_size=7)))
    start = draw(st.integers(0, ends[-1] - 1))
    end = draw(st.integers(start + 1, ends[-1]))
    cuts = draw(st.lists(st.integers(start, end), max_size=8))
    blocks = tuple(b - a for a, b in pairwise([start, *sorted(cuts), end]))
    return blocks, start, np.array(ends)


@given(few())
def test_no_other_choice_of_boundaries_moves_less(case):
    blocks, start, boundaries = case
    found = snap(blocks, start, boundaries)
    end = start + sum(blocks)
    inner = [at for at in boundaries.tolist() if start < at < end]
    choices = (
        tuple(b - a for a, b in pairwise([start, *chosen, end]))
        for count in range(len(inner) + 1)
        for chosen in combinations(inner, count)
    )
    assert kept(blocks, found, start) == max(kept(blocks, other, start) for other in choices)


@given(few())
def test_there_are_no_more_blocks_than_before(case):
    blocks, start, boundaries = case
    assert len(snap(blocks, start, boundaries)) <= len(blocks)


@given(few())
def test_a_block_reaches_no_farther_than_the_units_that_it_met(case):
    blocks, start, boundaries = case
    old = list(pairwise(edges(start, blocks)))
    for a, b in pairwise(edges(start, snap(blocks, start, boundaries))):
        reach = [
            (
                max(boundaries[np.searchsorted(boundaries, c, "right") - 1], start),
                boundaries[np.searchsorted(boundaries, d)],
            )
            for c, d in old
            if c < d
        ]
        assert a == b or any(low <= a and b <= high for low, high in reach)


@given(axes())
def test_even_units_are_snapped_to_like_the_same_boundaries(axis):
    blocks, start, unit = axis
    boundaries = np.arange(start + sum(blocks) + unit + 1) // unit * unit
    assert snap(blocks, start, unit) == snap(blocks, start, np.unique(boundaries))


def test_a_unit_of_many_blocks_goes_to_the_one_that_has_most_of_it():
    # The middle of the unit lies in the short block.
    assert snap((30, 4, 30, 64), 0, 64) == (64, 64)
    assert snap((20, 88, 20), 0, 64) == (128,)


def test_at_the_edge_of_a_region_only_what_lies_in_it_counts():
    # 40 is nearer to 64 than to 0, but in the region from 30 on it is not.
    assert snap((10, 60), 30, 64) == (70,)
    assert snap((50, 5), 64, 100) == (55,)


def test_blocks_without_elements_stay_where_nothing_moves():
    assert snap((4, 0, 4), 0, 4) == (4, 0, 4)
    assert snap((3, 0, 5), 0, 4) == (4, 4)


def test_units_longer_than_any_array():
    assert snap((3, 5), 0, 2**63 - 1) == (8,)


def test_a_million_units_are_not_looked_at_one_by_one():
    assert snap((10**17, 10**17 + 1, 10**17), 5, 10) == (10**17 + 5, 10**17, 10**17 - 4)


room = st.integers(1, 2000)


@given(few(), few(), room)
def test_shortened_blocks_have_few_elements_or_one_unit(one, two, most):
    cases = one, two
    start = tuple(case[1] for case in cases)
    boundaries = tuple(case[2] for case in cases)
    blocks = tuple(snap(*case) for case in cases)
    found = shorten(blocks, start, boundaries, most)
    longest = []
    for lengths, before, first, units in zip(found, blocks, start, boundaries, strict=True):
        ends = edges(first, lengths)
        assert set(edges(first, before)) <= set(ends)
        assert set(ends[1:-1]) <= {*units.tolist(), *edges(first, before)}
        singles = {b - a for a, b in pairwise(ends) if not any(a < at < b for at in units.tolist())}
        longest.append((max(lengths), max(lengths) in singles))
    assert prod(n for n, _ in longest) <= most or all(single for _, single in longest)


def test_blocks_are_shortened_along_the_leading_axis_first_and_no_more_than_needed():
    assert shorten(((8,), (60,)), (0, 0), (4, 20), 480) == ((8,), (60,))
    assert shorten(((8,), (60,)), (0, 0), (4, 20), 240) == ((4, 4), (60,))
    assert shorten(((8,), (60,)), (2, 0), (4, 20), 200) == ((2, 4, 2), (40, 20))
    assert shorten((), (), (), 1) == ()


def test_even_and_uneven_units_are_shortened_alike():
    boundaries = np.arange(0, 101, 4)
    for start in range(6):
        blocks = ((40, 3, 50),)
        for most in range(1, 60):
            even_units = shorten(blocks, (start,), (4,), most)
            assert even_units == shorten(blocks, (start,), (boundaries,), most)
