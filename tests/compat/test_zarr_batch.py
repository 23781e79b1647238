"""What zarr-python asks a codec pipeline for, as a projection."""

from types import SimpleNamespace

import numpy as np
import pytest

from zarrdask.compat.zarr_batch import as_batch
from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.indexing.projection import Points

SPEC = SimpleNamespace(shape=(4, 5))


def batch(*items, keys=None, ndim=2, spec=SPEC):
    chunks = [
        (SimpleNamespace(path=path), spec, inside, outside, complete)
        for path, inside, outside, complete in items
    ]
    return as_batch(chunks, keys or ChunkKeys(), ndim)


def test_whole_chunks_and_parts():
    found = batch(
        ("a/b/c/0/1", (slice(0, 4), slice(0, 5, 1)), (slice(0, 4), slice(0, 5)), True),
        ("a/b/c/1/1", (slice(1, 4, 2), slice(0, 5)), (slice(4, 6), slice(0, 5)), False),
    )
    assert found.prefix == "a/b/"
    assert found.projection.indices == [(0, 1), (1, 1)]
    assert found.projection.insides == [None, (slice(1, 4, 2), slice(0, 5, 1))]
    assert not found.is_complete
    assert found.source(np.array(1.0)).shape == (6, 5)
    assert found.source(np.zeros((6, 5))).shape == (6, 5)
    for shape in [(5,), (7, 5), (1, 5), (6, 5, 1)]:
        assert found.source(np.zeros(shape)) is None


def test_an_integer_selects_an_axis_that_values_do_not_have():
    found = batch(("c/0/1", (2, slice(0, 5)), (slice(0, 5),), False))
    assert found.prefix == ""
    assert found.projection.insides == [(slice(2, 3, 1), slice(0, 5, 1))]
    assert found.view(np.zeros(5)).shape == found.source(np.zeros(5)).shape == (1, 5)


def test_positions_along_axes_and_points():
    columns = np.ix_([0, 2], [1, 3])
    found = batch(("0.1", columns, columns, False), keys=ChunkKeys("v2", "."))
    assert [pick.tolist() for pick in found.projection.insides[0]] == [[0, 2], [1, 3]]
    points = np.array([0, 2]), np.array([1, 3])
    found = batch(("c/0/1", points, np.array([5, 4]), False))
    assert isinstance(found.projection.insides[0], Points)
    assert found.source(np.array(7)).shape == (6,)
    mask = np.array([True, False, True, False])
    found = batch(("c/0/1", (mask, slice(0, 5)), (np.array([0, 1]), slice(0, 5)), False))
    assert found.projection.insides[0][0].tolist() == [0, 2]


def test_a_scalar_array():
    found = batch(("a/c", (), (), True), ndim=0, spec=SimpleNamespace(shape=()))
    assert found.projection == ([()], [None], [...])
    assert found.source(np.array(3.0)).shape == ()


@pytest.mark.parametrize(
    "item",
    [
        ("d/0/1", (slice(0, 4), slice(0, 5)), (slice(0, 4), slice(0, 5)), True),
        ("c/0/x", (slice(0, 4), slice(0, 5)), (slice(0, 4), slice(0, 5)), True),
        ("c/0/1", "field", (slice(0, 4), slice(0, 5)), True),
        ("c/0/1", (slice(0, 4),), (slice(0, 4),), True),
        ("c/0/1", (slice(0, 4), None), (slice(0, 4), slice(0, 5)), True),
        ("c/0/1", (slice(0, 4), slice(0, 5)), (slice(0, 4),), True),
        ("c/0/1", (np.zeros((2, 2), int), slice(0, 5)), (slice(0, 4), slice(0, 5)), True),
    ],
)
def test_other_batches_are_left_to_zarr_python(item):
    assert batch(item) is None
