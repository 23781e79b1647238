"""Arrays that become longer or shorter."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import selections
from tests.arrays.nodes.stores import filled, keys
from tests.covering import for_each
from tests.documents import same
from zarrdask import create_array, open_array
from zarrdask.errors import MetadataError, ReadOnlyError, SelectionError, UnsupportedError


def resized(values, shape, fill):
    """Return what an array is after it got another shape."""
    out = np.full(shape, fill, values.dtype)
    common = tuple(slice(min(a, b)) for a, b in zip(values.shape, shape, strict=True))
    out[common] = values[common]
    return out


@given(selections.stored_arrays(min_dims=1), st.data())
def test_any_resizes_keep_what_is_inside_and_fill_the_rest(case, data):
    z, values = case
    for _ in range(3):
        shape = tuple(data.draw(st.integers(0, 12)) for _ in z.shape)
        z.resize(shape)
        values = resized(values, shape, 7)
        same(z[...], values)
    grid = z.metadata.grid
    ends = grid.start(grid.counts) if z.shards else grid.counts
    chunks = z.chunks if z.shards else (1,) * z.ndim
    assert z.nchunks_stored() <= math.prod(n // c for n, c in zip(ends, chunks, strict=True))


@pytest.mark.parametrize("kind", ["v3", "v2", "irregular"])
def test_leading_chunks_are_not_dropped_where_others_would_be_copied(kind):
    options = {"v3": {}, "v2": {"zarr_format": 2}, "irregular": {"chunks": ((2, 6),)}}[kind]
    z = create_array(store := {}, shape=8, dtype="i4", **{"chunks": 2, **options})
    z[...] = 1
    before = dict(store)
    with pytest.raises(UnsupportedError, match="lengths" if kind == "irregular" else "session"):
        z.drop_before(0, 2)
    for n in (1, 10, -2, 2.0):
        with pytest.raises(UnsupportedError if kind == "irregular" else SelectionError):
            z.drop_before(0, n)
    with pytest.raises(ReadOnlyError):
        open_array(store).drop_before(0, 2)
    assert store == before


def test_chunks_outside_are_erased():
    z, _ = filled()
    z.resize((3, 5))
    assert keys(z) == ["c/0/0", "c/0/1"]


def test_a_1d_array_takes_a_number():
    z, values = filled((5,), 2)
    z.resize(3)
    same(z[...], values[:3])


@for_each("shape", [3, (3,), (3, 3, 3), (3, -1), (3, 2.5), ("3", 3), (True, 3)])
def test_what_is_no_shape_for_the_array_is_an_error_and_changes_nothing(shape):
    z, values = filled()
    with pytest.raises(MetadataError):
        z.resize(shape)
    same(open_array(z.store)[...], values)
