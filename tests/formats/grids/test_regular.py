"""Regular grids, and grids by name."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.documents import stored, v3
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.grids.axis import Even, axis_of
from zarrdask.formats.grids.chunk_grid import GRIDS, ChunkGrid, parse_grid
from zarrdask.formats.grids.rectilinear import RectilinearGrid
from zarrdask.formats.grids.regular import RegularGrid

axes = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 7)), max_size=3)


@for_each(
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


@for_each(
    ("shape", "chunk_shape"),
    [((4,), (2, 2)), ((4, 4), (2,)), ((), (1,)), ((4,), (0,)), ((4, 4), (2, -1))],
)
def test_chunks_that_do_not_fit_the_array_are_an_error(shape, chunk_shape):
    with pytest.raises(MetadataError) as caught:
        RegularGrid(shape, chunk_shape)
    assert caught.value.key == "chunk_shape"
    assert caught.value.found == chunk_shape


@given(axes)
def test_all_chunks_have_the_shape(axes):
    grid = RegularGrid(tuple(n for n, _ in axes), tuple(c for _, c in axes))
    assert grid.is_regular
    assert grid.axes == tuple(map(Even, grid.shape, grid.chunk_shape))
    assert {grid.shape_of(index) for index in grid.indices()} <= {grid.chunk_shape}


def test_a_regular_grid_is_what_its_document_says():
    grid = RegularGrid((5, 7), (2, 3))
    document = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
    assert grid.to_json() == document
    assert parse_grid(document, (5, 7)) == grid


@for_each(
    "value",
    [
        "regular",
        {"name": "regular"},
        {"name": "regular", "configuration": {"chunk_shape": 2}},
        {"name": "regular", "configuration": {"chunk_shape": [2.0]}},
        {"name": "regular", "configuration": {"chunk_shape": [True]}},
        {"name": "regular", "configuration": {"chunk_shape": [2], "kind": "inline"}},
        {"name": "rectilinear"},
        {"name": "rectilinear", "configuration": {"kind": "inline"}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [2]}},
        {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": 2}},
        {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [2], "x": 1}},
        7,
    ],
)
def test_wrong_configurations_are_an_error(value):
    with pytest.raises(MetadataError):
        parse_grid(value, (4,))


def test_an_unknown_grid_is_named():
    with pytest.raises(UnsupportedError) as caught:
        parse_grid({"name": "hexagonal", "must_understand": False}, (4,))
    assert (caught.value.key, caught.value.found) == ("chunk_grid", "hexagonal")
    assert caught.value.expected == "rectilinear, regular"


@for_each(
    ("grid", "expected"),
    [
        (RegularGrid((5, 7), (2, 3)), (2, 3)),
        (RectilinearGrid((5, 7), (2, 3)), (2, 3)),
        (RectilinearGrid((5, 7), (2, (3, 8))), ((2, 2, 1), (3, 4))),
        (RectilinearGrid((5, 0), ((1, 4, 9), 3)), ((1, 4), (0,))),
    ],
)
def test_chunks_are_what_chunks_hold_of_the_array(grid, expected):
    assert grid.chunks == expected


@dataclass(frozen=True)
class Growing(ChunkGrid):
    """A grid of one axis by somebody else: chunks of 1, 2, 3 ... elements."""

    @property
    def axes(self):
        [size] = self.shape
        lengths = []
        while sum(lengths) < size:
            lengths.append(len(lengths) + 1)
        return (axis_of(size, lengths),)

    @classmethod
    def from_configuration(cls, configuration, shape):
        return cls(shape)

    def to_json(self):
        return {"name": "example.growing"}

    def resize(self, shape):
        return Growing(shape)


def test_a_grid_of_ones_own(own_registries):
    GRIDS.register("example.growing", Growing)
    document = v3((8,), data_type="uint8", chunk_grid="example.growing")
    store = stored(document, {"c/0": b"\1", "c/2": b"\4\5\6", "c/3": b"\7\x08\0\0"})
    z = zarrdask.open_array(store, mode="r+")
    assert z.chunks == ((1, 2, 3, 2),)
    assert z[...].tolist() == [1, 0, 0, 4, 5, 6, 7, 8]
    z[1:7:2] = 9
    z.append(np.array([1, 2, 3], "u1"))
    assert z[...].tolist() == [1, 9, 0, 9, 5, 9, 7, 8, 1, 2, 3]
    assert store["c/1"] == b"\x09\0"
    assert store["c/4"] == b"\x03\0\0\0\0"
    x = zarrdask.from_zarr(store, chunks="stored")
    assert x.chunks == ((1, 2, 3, 4, 1),)
    assert x.compute(scheduler="sync").tolist() == z[...].tolist()
