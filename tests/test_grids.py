"""Regular grids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.errors import MetadataError
from zarrdask.grids import RegularGrid

axes = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 7)), max_size=3)


@pytest.mark.parametrize(
    ("shape", "chunk_shape", "counts"),
    [
        ((), (), ()),
        ((5, 7), (2, 3), (3, 3)),
        ((6,), (3,), (2,)),
        ((6,), (100,), (1,)),
        ((0, 4), (3, 3), (0, 2)),
        ((0,), (0,), (0,)),
    ],
)
def test_counts_are_rounded_up(shape, chunk_shape, counts):
    assert RegularGrid(shape, chunk_shape).counts == counts


def test_a_chunk_of_a_large_array_lies_where_the_specification_says():
    # chunk (2, 4) holds rows 2000..2999 and columns 4000..4999.
    grid = RegularGrid((10_000, 10_000), (1000, 1000))
    assert grid.start((2, 4)) == (2000, 4000)
    assert grid.counts == (10, 10)


@given(axes)
def test_chunks_cover_the_array_and_each_meets_it(axes):
    shape, chunk_shape = tuple(n for n, _ in axes), tuple(c for _, c in axes)
    grid = RegularGrid(shape, chunk_shape)
    indices = list(grid.indices())
    assert len(indices) == len(set(indices)) == grid.size
    assert indices == sorted(indices)
    assert all(all(a < n for a, n in zip(grid.start(i), shape, strict=True)) for i in indices)
    for n, count, chunk in zip(shape, grid.counts, chunk_shape, strict=True):
        assert (count - 1) * chunk < n <= count * chunk or n == count == 0


@given(axes, st.data())
def test_a_resized_grid_has_the_same_chunks(axes, data):
    grid = RegularGrid(tuple(n for n, _ in axes), tuple(c for _, c in axes))
    shape = tuple(data.draw(st.integers(0, 30)) for _ in axes)
    assert grid.resize(shape) == RegularGrid(shape, grid.chunk_shape)


@pytest.mark.parametrize(
    ("shape", "chunk_shape"),
    [((4,), (2, 2)), ((4, 4), (2,)), ((), (1,)), ((4,), (0,)), ((4, 4), (2, -1))],
)
def test_chunks_that_do_not_fit_the_array_are_an_error(shape, chunk_shape):
    with pytest.raises(MetadataError) as caught:
        RegularGrid(shape, chunk_shape)
    assert caught.value.key == "chunk_shape"
    assert caught.value.found == chunk_shape
