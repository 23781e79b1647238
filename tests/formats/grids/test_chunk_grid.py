"""What all chunk grids have in common."""

import pickle

import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.grids.chunk_grid import check_axes, parse_grid
from zarrdask.formats.grids.rectilinear import RectilinearGrid
from zarrdask.formats.grids.regular import RegularGrid

GRIDS = [RegularGrid((5, 7), (2, 3)), RectilinearGrid((5, 7), ((1, 4), (3, 3, 3)))]


@for_each("grid", GRIDS)
def test_the_regions_of_all_chunks_cover_the_array_once(grid):
    counted = dict.fromkeys(((i, j) for i in range(5) for j in range(7)), 0)
    for index in grid.indices():
        rows, columns = grid.region(index)
        for i in range(rows.start, rows.stop):
            for j in range(columns.start, columns.stop):
                counted[i, j] += 1
    assert set(counted.values()) == {1}
    assert len([*grid.indices()]) == grid.size


@for_each("grid", GRIDS)
def test_a_chunk_is_stored_in_a_shape_that_holds_its_region(grid):
    for index in grid.indices():
        starts = grid.start(index)
        assert starts == tuple(pick.start for pick in grid.region(index))
        for stored, pick in zip(grid.shape_of(index), grid.region(index), strict=True):
            assert stored >= pick.stop - pick.start


@for_each("grid", GRIDS)
def test_a_grid_is_the_same_after_it_was_stored_or_pickled(grid):
    assert parse_grid(grid.to_json(), grid.shape) == grid
    assert grid.size  # a cached property
    assert pickle.loads(pickle.dumps(grid)) == grid


def test_a_grid_has_a_chunk_shape_if_all_chunks_have_it():
    regular, rectilinear = GRIDS
    assert (regular.is_regular, regular.chunks) == (True, (2, 3))
    assert (rectilinear.is_regular, rectilinear.chunks) == (False, ((1, 4), (3, 3, 1)))
    assert rectilinear.chunk_shape == (4, 3)


def test_an_unknown_grid_is_an_error_whatever_need_not_be_understood():
    with pytest.raises(UnsupportedError, match="chunk grid"):
        parse_grid({"name": "hexagonal", "must_understand": False}, (4,))


def test_there_is_one_entry_for_each_axis():
    check_axes((1, 2), (4, 5), "chunks")
    with pytest.raises(MetadataError) as caught:
        check_axes((1,), (4, 5), "chunks")
    assert (caught.value.key, caught.value.found) == ("chunks", (1,))
