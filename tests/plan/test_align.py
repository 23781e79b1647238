"""Blocks of Dask arrays and stored units."""

from itertools import accumulate, pairwise
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.plan.align import auto_block, even, offset_blocks, snap


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


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20))
def test_offset_blocks_lie_at_multiples_and_cover_the_stretch(start, size, length):
    found = offset_blocks(start, size, length)
    assert sum(found) == size
    inner = edges(start, found)[1:-1]
    assert all(at % length == 0 for at in inner)
    assert all(0 < n <= length for n in found) or found == (0,)


@given(st.integers(0, 60), st.integers(1, 20))
def test_even_lengths_but_for_the_last(size, length):
    found = even(size, length)
    assert sum(found) == size
    assert set(found[:-1]) <= {length}
    assert 0 < found[-1] <= length or found == (0,)


def test_axes_are_cut_into_units():
    assert tuple(map(even, (5, 4, 0), (2, 4, 3))) == ((2, 2, 1), (4,), (0,))
    assert tuple(map(even, (), ())) == ()


shapes = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 40), st.integers(1, 4)), max_size=3)


def clipped(unit, shape):
    """Return what a unit holds of an array at most."""
    return tuple(min(u, n) for u, n in zip(unit, shape, strict=True))


@given(shapes, st.sampled_from([1, 2, 8]), st.integers(1, 200_000))
def test_auto_blocks_are_whole_units_below_the_limit_unless_one_unit_is_above(axes, size, limit):
    shape = tuple(n for n, _, _ in axes)
    inner = tuple(c for _, c, _ in axes)
    unit = tuple(c * m for _, c, m in axes)
    block = auto_block(shape, unit, inner, size, limit)
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


@pytest.mark.parametrize(
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
