"""Projections whose entries are divided among threads."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.arrays.chunks.divide import divide
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.indexing.projection import Points, Projection, Regions, project

SHAPE, SHARD, CHUNK = (16, 21), (8, 9), (2, 3)
VALUES = np.arange(np.prod(SHAPE)).reshape(SHAPE)
AXES = RegularGrid(SHAPE, SHARD).axes


def slices(length):
    numbers = st.tuples(st.integers(0, length - 1), st.integers(1, length), st.integers(1, 4))
    return numbers.map(lambda n: slice(n[0], min(n[0] + n[1], length), n[2]))


REGIONS = st.tuples(*map(slices, SHAPE))


def shard_at(index):
    return VALUES[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, SHARD, strict=True))]


def chunks_of(index, region):
    """Return the chunks of a shard that a region overlaps."""
    picks = [range(n)[pick] for n, pick in zip(SHARD, region, strict=True)]
    rows, columns = ({i // n for i in pick} for pick, n in zip(picks, CHUNK, strict=True))
    return {(index, i, j) for i in rows for j in columns}


@given(REGIONS, st.integers(1, 5))
def test_the_parts_of_a_request_are_the_request(region, count):
    out = np.zeros_like(VALUES[region])
    seen = []
    cuts = divide(project(region, AXES), SHARD, CHUNK, count)
    for index, inside, outside in zip(*cuts, strict=True):
        part = tuple(slice(0, n, 1) for n in SHARD) if inside is None else inside
        out[outside] += shard_at(index)[part]
        seen += chunks_of(index, part)
    np.testing.assert_array_equal(out, VALUES[region])
    assert len(seen) == len(set(seen))


@given(st.lists(REGIONS, min_size=1, max_size=4), st.integers(1, 5))
def test_the_parts_of_regions_are_the_regions(regions, count):
    blocks = [np.zeros_like(VALUES[region]) for region in regions]
    seen = []
    cuts = divide(project(Regions(tuple(regions)), AXES), SHARD, CHUNK, count)
    for index, inside, places in zip(*cuts, strict=True):
        chunks = set()
        for region, (number, place) in zip(inside.regions, places, strict=True):
            part = tuple(slice(0, n, 1) for n in SHARD) if region is None else region
            blocks[number][place] += shard_at(index)[part]
            chunks |= chunks_of(index, part)
        seen += chunks
    for region, block in zip(regions, blocks, strict=True):
        np.testing.assert_array_equal(block, VALUES[region])
    assert len(seen) == len(set(seen))


def test_a_whole_shard_is_divided_across_the_axis_with_the_most_chunks():
    cuts = Projection([(0, 0)], [None], [(slice(0, 8), slice(8, 17))])
    assert divide(cuts, SHARD, CHUNK, 2).insides == [
        (slice(0, 4, 1), slice(0, 9, 1)),
        (slice(4, 8, 1), slice(0, 9, 1)),
    ]


def test_requests_of_positions_stay_as_they_are():
    cuts = project(Points((np.array([1, 2]), np.array([3, 8]))), AXES)
    assert divide(cuts, SHARD, CHUNK, 4) is not cuts
    assert divide(cuts, SHARD, CHUNK, 4).insides == cuts.insides
    cuts = project((slice(0, 4, 1), np.array([3, 8])), AXES)
    assert divide(cuts, SHARD, CHUNK, 4).insides == cuts.insides
