"""Rechunks of arrays that read stored ones: which are other reads."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.parallel.graph.cases import same
from tests.parallel.graph.counting import CountingStore
from tests.selections import stored_arrays
from zarrdask.parallel.graph.stored_array import StoredArray

SHAPE = 12, 20
CHUNKS = {
    "merged": ((-1, 5), 4, True),
    "merged in part": (((1, 2, 9), (10, 5, 5)), 9, True),
    "by axis": ({-1: -1}, 12, True),
    "of a size": ("100 B", None, True),
    "split": ((1, 5), 48, True),
    "across chunks": ((-1, 4), None, False),
}


def stored(**options):
    store = CountingStore()
    z = zarrdask.create_array(store, shape=SHAPE, dtype="i4", **{"chunks": (1, 5)} | options)
    z[...] = np.arange(240).reshape(SHAPE)
    store.reads.clear()
    return store


def blocks(size):
    """Return a strategy for the lengths of blocks of an axis."""
    cuts = st.sets(st.integers(1, max(size - 1, 1)), max_size=3)
    return cuts.map(lambda at: tuple(np.diff([0, *sorted(at - {size}), size]).tolist()))


def tasks(x):
    (y,) = dask.optimize(x)
    return dict(y.__dask_graph__())


@for_each("name", CHUNKS)
def test_blocks_of_whole_chunks_are_another_read(name):
    chunks, count, is_read = CHUNKS[name]
    store = stored()
    x = zarrdask.from_zarr(store, chunks=(3, 10) if name == "split" else "stored")
    y = x.rechunk(chunks)
    assert y.chunks == da.Array.rechunk(x, chunks).chunks
    assert (isinstance(y, StoredArray), len(y.dask.layers) == 1) == (is_read, is_read)
    assert len(tasks(y)) == (count or len(tasks(y)))
    same(y.compute(scheduler="sync"), np.arange(240, dtype="i4").reshape(SHAPE))
    assert len(store.keys_read()) == 48


@for_each(
    ("before", "after", "is_read"),
    [
        ("stored", (-1, 10), True),
        ((2, 5), (4, 5), True),
        ((2, 5), (6, 20), True),
        ((2, 5), (2, 4), False),
        # It would read the index of each shard, and what it has of a block, several times.
        ("stored", (2, 5), False),
        ((4, 10), (2, 10), False),
    ],
)
def test_blocks_of_shards_do_not_take_more_requests(before, after, is_read):
    store = stored(shards=(6, 10))
    x = zarrdask.from_zarr(store, chunks=before)
    y = x.rechunk(after)
    assert isinstance(y, StoredArray) == is_read
    store.reads.clear()
    expected = x.compute(scheduler="sync")
    requests = len(store.reads)
    store.reads.clear()
    same(y.compute(scheduler="sync"), expected)
    assert len(store.reads) <= requests


def test_other_arrays_have_other_names_and_equal_ones_the_same():
    x = zarrdask.from_zarr(stored(), chunks="stored")
    assert x.rechunk((-1, 5)).name == x.rechunk({0: 12}).name != x.name
    assert x.rechunk(x.chunks) is x
    assert x.rechunk((-1, 5)).rechunk((1, 5)).chunks == x.chunks


def test_what_is_not_only_a_read_is_rechunked_by_dask():
    x = zarrdask.from_zarr(stored(), chunks="stored")
    assert not isinstance(x.rechunk((-1, 5), balance=True), StoredArray)
    assert not isinstance((x + 1).rechunk((-1, 5)), StoredArray)
    with pytest.raises(ValueError, match="add up"):
        x.rechunk(((5, 5), 5))
    with pytest.raises(TypeError, match="depth"):
        x.rechunk((-1, 5), depth=1)
    with pytest.raises((ValueError, IndexError)):
        x.rechunk(((-3, 15), 5))
    x[0] = 7
    y = x.rechunk((-1, 5))
    assert (y.compute(scheduler="sync")[0] == 7).all()


def test_missing_blocks_stay_constants():
    store = stored()
    for row in range(6):
        for column in range(4):
            store.erase(f"c/{row}/{column}")
    x = zarrdask.from_zarr(store, chunks="stored", skip_missing=True)
    y = x.rechunk((6, 10))
    expected = x.compute(scheduler="sync")
    store.reads.clear()
    same(y.compute(scheduler="sync"), expected)
    assert len(store.keys_read()) == 24


@settings(max_examples=8)
@given(st.data())
def test_any_blocks_have_the_values_of_dask(data):
    z, values = data.draw(stored_arrays(min_dims=1, min_side=1))
    chunks = tuple(data.draw(blocks(size)) for size in z.shape)
    x = zarrdask.from_zarr(z, chunks="stored")
    y = x.rechunk(chunks)
    assert y.chunks == chunks
    same(y.compute(scheduler="sync"), values)
    if isinstance(y, StoredArray):
        assert zarrdask.plan_read(y).repeated == 0
