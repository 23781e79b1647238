"""rechunked: the blocks of a Dask array are exchanged through temporary objects, where needed."""

import gc
from collections import Counter

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrdask
from tests.counting import CountingStore
from tests.covering import for_each
from tests.memory import at_most_in_a_call
from zarrdask.errors import MetadataError, NodeTypeError, StoreError, UnsupportedError
from zarrdask.parallel.graph.stored_array import StoredArray
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(24 * 30, dtype="i4").reshape(24, 30)
ROWS, COLUMNS = (1, 30), (24, 5)


def stored(store, **options):
    """Return the stored array of rows."""
    options = {"chunks": ROWS, "compressors": ()} | options
    z = zarrdask.create_array(store, shape=VALUES.shape, dtype="i4", **options)
    z[...] = VALUES
    return z


@pytest.fixture
def source():
    """A store that counts its reads, with the array of rows."""
    store = CountingStore(MemoryStore())
    stored(store)
    store.clear()
    return store


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


def chunk_reads(store):
    return Counter({key: n for key, n in store.reads.items() if key.startswith("c/")})


def temporary(store):
    """Return the temporary objects in a store."""
    keys = (key for key in store.list_prefix("") if ".zarrdask-temporary/" in key)
    return [key for key in keys if not key.endswith("/owner")]


def exchanged(x, chunks=COLUMNS, **options):
    """Return the array with other blocks, exchanged with little memory; and the temporary store."""
    options = {"max_mem": 2000, "temp": MemoryStore()} | options
    return zarrdask.rechunked(x, chunks, **options), options["temp"]


@st.composite
def divided(draw, size):
    """Draw the lengths of blocks, which may be empty."""
    ends = sorted(draw(st.lists(st.integers(0, size), max_size=3)))
    return tuple(np.diff([0, *ends, size]).tolist())


@settings(max_examples=8)
@given(st.data(), st.booleans())
def test_blocks_have_the_elements_of_the_array(data, is_stored):
    shape = data.draw(st.tuples(*[st.integers(0, 9)] * 2))
    values = np.arange(np.prod(shape), dtype="i8").reshape(shape)
    before, after = (tuple(data.draw(divided(n)) for n in shape) for _ in range(2))
    x = da.from_array(values, before)
    if is_stored:
        z = zarrdask.create_array({}, shape=shape, dtype="i8", chunks=(2, 3))
        z[...] = values
        x = zarrdask.from_zarr(z, chunks=before)
    y, _ = exchanged(x, after, max_mem=data.draw(st.sampled_from([400, 3000])))
    # Dask leaves the blocks of an array whose axes are all empty as they are.
    assert y.chunks == (after if any(shape) else before)
    np.testing.assert_array_equal(y.compute(), values)
    np.testing.assert_array_equal(y[:1, ::2].compute(), values[:1, ::2])


def test_a_stored_array_is_read_once_and_packed(source):
    y, temp = exchanged(zarrdask.from_zarr(source))
    assert not chunk_reads(source)
    assert not temporary(temp)
    np.testing.assert_array_equal(y.compute(), VALUES)
    assert set(chunk_reads(source).values()) == {1}
    assert 1 < len(temporary(temp)) < 24 / 2


def test_a_part_needs_only_the_tasks_that_pack_its_pieces(source):
    y, _ = exchanged(zarrdask.from_zarr(source), (12, 5))
    np.testing.assert_array_equal(y[:12, :5].compute(), VALUES[:12, :5])
    assert chunk_reads(source) == {f"c/{row}/0": 1 for row in range(12)}


@for_each(
    ("stored_chunks", "chunks"),
    [(ROWS, (6, 30)), (ROWS, {0: -1}), ((3, 10), (24, 10)), ((3, 10), (3, 30))],
)
def test_blocks_of_whole_chunks_are_read_at_once(stored_chunks, chunks):
    source, temp = CountingStore(MemoryStore()), MemoryStore()
    x = zarrdask.from_zarr(stored(source, chunks=stored_chunks), chunks=(1, 30))
    source.clear()
    y = zarrdask.rechunked(x, chunks, temp=temp)
    assert isinstance(y, StoredArray)
    np.testing.assert_array_equal(y.compute(), VALUES)
    assert set(chunk_reads(source).values()) == {1}
    assert not temporary(temp)


def test_whole_blocks_that_are_joined_or_divided_are_left_to_dask():
    x = da.from_array(VALUES, chunks=(2, 30))
    for chunks in ((6, 30), (1, 30)):
        y, _ = exchanged(x, chunks)
        assert y.name == x.rechunk(chunks).name
    assert exchanged(x, (2, 30))[0] is x


def test_small_blocks_that_are_computed_are_joined_to_few_tasks():
    z = zarrdask.create_array({}, shape=(1000, 64), dtype="f4", chunks=(1, 64))
    y = zarrdask.rechunked(zarrdask.from_zarr(z, chunks=(1, 64)) + 1, (1000, 8))
    tasks = y.__dask_optimize__(y.__dask_graph__(), y.__dask_keys__())
    assert len(dict(tasks)) < 200


def test_few_blocks_are_in_memory_at_a_time(tmp_path):
    values = np.ones((64, 128, 128), "f8")  # 8 MiB
    z = zarrdask.create_array(tmp_path / "z", shape=values.shape, dtype="f8", chunks=(1, 128, 128))
    z[...] = values
    y = zarrdask.rechunked(zarrdask.from_zarr(z), (64, 32, 32), temp=tmp_path, max_mem="1 MiB")
    total = y.sum()
    with dask.config.set({"zarrdask.keep-memory": 0}):
        assert at_most_in_a_call(3 * 2**20, total.compute) == values.size


def test_too_little_memory_is_an_error_that_names_the_least():
    with pytest.raises(MetadataError, match=r"max_mem.*at least \d+ bytes"):
        exchanged(zarrdask.from_zarr(stored({}, chunks=(8, 30))), COLUMNS, max_mem=100)


def test_elements_without_a_fixed_size():
    values = VALUES.astype(str).astype(object)
    with pytest.raises(UnsupportedError, match="fixed size"):
        exchanged(da.from_array(values, chunks=ROWS))
    z = zarrdask.create_array({}, shape=(24, 30), dtype="string", chunks=ROWS)
    z[...] = values
    y, _ = exchanged(zarrdask.from_zarr(z))
    np.testing.assert_array_equal(y.compute(), values)


def test_names_of_dimensions_and_wrong_chunks():
    x = zarrdask.from_zarr(stored({}, dimension_names=("y", "x")))
    assert exchanged(x, {"y": -1, "x": 5})[0].chunks == ((24,), (5,) * 6)
    with pytest.raises(MetadataError, match="chunks"):
        exchanged(x, (24, 5, 1))
    with pytest.raises(NodeTypeError, match="from_zarr"):
        zarrdask.rechunked("a.zarr", 5)
    with pytest.raises(UnsupportedError, match="NumPy"):
        exchanged(da.ma.masked_equal(da.from_array(VALUES, ROWS), 3))


def test_the_array_that_is_read_can_not_be_replaced_by_the_result(tmp_path):
    stored(tmp_path / "z")
    y, _ = exchanged(zarrdask.from_zarr(tmp_path / "z"))
    with pytest.raises(zarrdask.errors.NodeExistsError, match="read"):
        zarrdask.rechunk(y, tmp_path / "z", chunks=ROWS, overwrite=True)


class _Forgetful(MemoryStore):
    """A store that loses what is stored."""

    def set(self, key, value):
        pass


def test_a_lost_object_is_an_error_that_says_what_to_do():
    y, _ = exchanged(da.from_array(VALUES, ROWS), temp=_Forgetful())
    with pytest.raises(StoreError, match=r"temporary object.*temp="):
        y.compute()


class TestOnACluster:
    """Workers are other processes."""

    def test_the_exchange(self, client, tmp_path):
        stored(tmp_path / "z")
        with dask.config.set(scheduler=client):
            for x in (zarrdask.from_zarr(tmp_path / "z"), da.from_array(VALUES, chunks=ROWS)):
                y = zarrdask.rechunked(x, COLUMNS, temp=tmp_path, max_mem=4000)
                np.testing.assert_array_equal(y.compute(), VALUES)

    def test_objects_stay_as_long_as_tasks_need_them(self, client, tmp_path):
        stored(tmp_path / "z")
        with dask.config.set(scheduler=client):
            y = zarrdask.rechunked(
                zarrdask.from_zarr(tmp_path / "z"), COLUMNS, temp=tmp_path, max_mem=4000
            )
            [kept] = dask.persist(y.map_blocks(np.copy))
            del y
            gc.collect()
            np.testing.assert_array_equal(kept.compute(), VALUES)

    def test_they_can_not_be_in_memory(self, client):
        with (
            dask.config.set(scheduler=client),
            pytest.raises(StoreError, match="in the memory of one process"),
        ):
            exchanged(da.from_array(VALUES, chunks=ROWS))
