"""What is stored of an array of chunks of several shapes: counted, trimmed."""

import threading
import time

import dask
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.unlisted import UnlistedStore
from zarrdask.arrays.chunks.stored_keys import StoredUnits, chunks_with_data, erase_leftovers
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import StoreError
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.storage.base import Store
from zarrdask.storage.memory import MemoryStore


def filled(**options):
    store = {}
    z = zarrdask.create_array(store, shape=12, dtype="u1", compressors=[], **options)
    z[...] = range(1, 13)
    return z, store


def test_units_are_known_by_their_keys():
    z, store = filled(chunks=((3, 1, 8),))
    store |= {"c/3": b"", "c/x": b"", "c/0/0": b"", "other": b""}
    assert sorted(StoredUnits(chunks_of(z)).indices()) == [(0,), (1,), (2,)]
    assert z.nchunks_stored() == z.nchunks == 3
    z[3:4] = 0
    assert sorted(StoredUnits(chunks_of(z)).indices()) == [(0,), (2,)]


def test_a_unit_that_is_erased_while_units_are_counted_has_no_size(monkeypatch):
    z, _ = filled(chunks=((3, 1, 8),))
    get = MemoryStore.get
    gone = {"c/1": None}
    monkeypatch.setattr(MemoryStore, "get", lambda store, key: gone.get(key, get(store, key)))
    assert z.nbytes_stored() == 3 + 8


def test_chunks_of_another_grid_have_data_where_units_are_stored():
    z = zarrdask.create_array({}, shape=12, dtype="u1", chunks=2)
    z[0], z[9] = 1, 2
    grid = RegularGrid((12,), (3,))
    assert [*chunks_with_data(grid, [chunks_of(z)])] == [(0,), (2,), (3,)]
    z[...] = 1
    assert [*chunks_with_data(grid, [chunks_of(z)])] == [(0,), (1,), (2,), (3,)]


def test_what_is_appended_lies_in_chunks_of_the_last_length():
    z, store = filled(chunks=((4, 6, 4),))
    assert z.append(np.arange(101, 108)) == (19,)
    assert z.chunks == ((4, 6, 4, 4, 1),)
    assert z[...].tolist() == [*range(1, 13), *range(101, 108)]
    assert store["c/2"] == bytes([11, 12, 101, 102])
    assert store["c/4"] == bytes([107, 0, 0, 0])
    assert zarrdask.open_array(store)[...].tolist() == z[...].tolist()


def test_chunks_in_shards_of_several_shapes_are_counted():
    z, _ = filled(chunks=2, shards=((2, 6, 4),))
    assert (z.nchunks, z.nchunks_stored()) == (6, 6)
    z[4:8] = 0
    assert z.nchunks_stored() == 4
    z.resize(5)
    assert z.nchunks_stored() == 2
    assert z[...].tolist() == [1, 2, 3, 4, 0]


def test_units_that_are_kept_outside_come_back_in_their_own_shapes():
    z, store = filled(chunks=((3, 1, 8),))
    before = dict(store)
    z.resize(2, outside="keep")
    assert z[...].tolist() == [1, 2]
    z.resize(14, outside="keep")
    assert z[...].tolist() == [*range(1, 13), 0, 0]
    assert {key for key in store if store[key] != before.get(key)} == {"zarr.json"}


# ---- which are stored


@for_each(
    "options",
    [
        {"chunks": (5, 4)},
        {"chunks": (5, 4), "zarr_format": 2},
        {"chunks": (5, 4), "zarr_format": "v3-draft"},
        {"chunks": (1, 2), "shards": (5, 4), "zarr_format": "v3-draft"},
        {"chunks": ((5, 1, 6), (4, 6))},
        {"chunks": (1, 2), "shards": (5, 4)},
        {"chunks": (1, 2), "shards": (5, 4), "order": "F"},
        {"chunks": (1, 2), "shards": ((5, 1, 6), (4, 6))},
    ],
)
def test_the_stored_map_shows_where_there_are_values(options):
    z = zarrdask.create_array({}, shape=(12, 10), dtype="i4", **options)
    z[0, 3] = z[11, 9] = z[5, 8] = 1
    for per, grid in (("shard", z.metadata.grid), ("chunk", z.metadata.read_grid)):
        expected = np.zeros(grid.counts, bool)
        for index in grid.indices():
            start, shape = grid.start(index), grid.shape_of(index)
            region = tuple(slice(at, at + n) for at, n in zip(start, shape, strict=True))
            expected[index] = z[region].any()
        np.testing.assert_array_equal(z.stored_map(per=per), expected)


@pytest.mark.parametrize(("shape", "expected"), [((), True), ((0, 3), np.zeros((0, 1), bool))])
def test_the_stored_map_of_few_elements(shape, expected):
    z = zarrdask.create_array({}, shape=shape, dtype="i4")
    z[...] = 1
    assert z.stored_map().tolist() == np.array(expected).tolist()


def test_the_indices_of_shards_are_read_together():
    class Asked(MemoryStore):
        times = 0

        def get_partial_values(self, key_ranges):
            self.times += 1
            return super().get_partial_values(key_ranges)

    store = Asked()
    z = zarrdask.create_array(store, shape=12, dtype="u1", chunks=1, shards=2)
    z[...] = 1
    assert z.stored_map(per="chunk").all()
    assert store.times == 1


def test_the_stored_map_needs_a_listing():
    class Unlistable(Store):
        url = "unlistable"

        def get(self, key):
            return values.get(key)

    values = {}
    zarrdask.create_array(values, shape=4, dtype="i4")
    z = zarrdask.open_array(Unlistable())
    with pytest.raises(zarrdask.errors.UnsupportedError, match="listed"):
        z.stored_map()
    with pytest.raises(zarrdask.errors.MetadataError, match="'shard' or 'chunk'"):
        z.stored_map(per="unit")


# ---- becoming smaller


class Noted(MemoryStore):
    """Notes what is changed, in order."""

    def __init__(self, values=None):
        super().__init__(values)
        self.changes = []

    def set(self, key, value):
        self.changes.append(key)
        super().set(key, value)

    def erase(self, key):
        self.changes.append(key)
        super().erase(key)

    def erase_values(self, keys):
        keys = list(keys)
        self.changes.append(len(keys))
        for key in keys:
            super().erase(key)


LAYOUTS = {
    "chunks": {"chunks": (5, 4)},
    "shards": {"chunks": (1, 2), "shards": (5, 4)},
    "uneven": {"chunks": ((5, 1, 6), (4, 6))},
    "v2": {"chunks": (5, 4), "zarr_format": 2},
    "draft": {"chunks": (5, 4), "zarr_format": "v3-draft"},
}
OLD = np.arange(1.0, 121.0).reshape(12, 10)


def old(store, layout):
    z = zarrdask.create_array(store, "a", shape=OLD.shape, dtype="f8", **LAYOUTS[layout])
    z[...] = OLD
    return z


@for_each("layout", LAYOUTS)
@for_each("shape", [(7, 3), (12, 3), (0, 10), (5, 4), (12, 10), (1, 1), (6, 10)])
def test_what_is_cut_off_never_comes_back(layout, shape):
    store = MemoryStore()
    z = old(store, layout)
    z.resize(shape)
    expected = np.zeros((20, 20))
    expected[: shape[0], : shape[1]] = OLD[: shape[0], : shape[1]]
    np.testing.assert_array_equal(z[...], expected[: shape[0], : shape[1]])
    zarrdask.open_array(store, "a", mode="r+").resize((20, 20))
    np.testing.assert_array_equal(zarrdask.open_array(store, "a")[...], expected)


def test_the_shape_is_the_last_that_is_written():
    store = Noted()
    z = old(store, "chunks")
    store.changes.clear()
    z.resize((7, 3))
    assert store.changes[0] == "a/.zarrdask-rewrite/plan.json"  # of a rewrite that was begun
    assert store.changes[1] == 7  # units, in one call
    assert sorted(store.changes[2:-1]) == ["a/c/0/0", "a/c/1/0"]
    assert store.changes[-1] == "a/zarr.json"


def test_growing_writes_the_shape_only():
    store = Noted()
    z = old(store, "chunks")
    store.changes.clear()
    z.resize((100, 100))
    assert store.changes == ["a/zarr.json"]


def test_many_units_are_erased_in_batches_by_several_threads():
    used = set()

    class Many(Noted):
        def erase_values(self, keys):
            used.add(threading.get_ident())
            time.sleep(0.005)
            super().erase_values(keys)

    store = Many()
    z = zarrdask.create_array(store, shape=5000, dtype="u1", chunks=1, compressors=())
    store.values.update({f"c/{i}": b"\1" for i in range(5000)})
    with dask.config.set({"zarrdask.threads": 3}):
        z.resize(10)
    assert len(used) == 3
    assert max(n for n in store.changes if isinstance(n, int)) <= 256
    assert z.nchunks_stored() == 10


def test_a_store_that_can_not_be_listed_is_asked_to_erase_all_that_there_might_be():
    store = UnlistedStore()
    z = old(store, "chunks")
    z.resize((7, 3))
    assert sorted(key for key in store.values if "/c/" in key) == ["a/c/0/0", "a/c/1/0"]
    z.resize((12, 10))
    assert z[...].sum() == OLD[:7, :3].sum()


@for_each("layout", LAYOUTS)
def test_what_was_cut_short_is_done_when_it_is_done_again(layout):
    class Fails(MemoryStore):
        left = 1000

        def _count(self):
            self.left -= 1
            if self.left < 0:
                raise StoreError("no more")

        def set(self, key, value):
            self._count()
            super().set(key, value)

        def erase(self, key):
            self._count()
            super().erase(key)

    for left in range(20):
        store = Fails()
        z = old(store, layout)
        store.left = left
        try:
            z.resize((7, 3))
        except StoreError:
            assert zarrdask.open_array(store, "a").shape == OLD.shape
            np.testing.assert_array_equal(z[:7, :3], OLD[:7, :3])
            store.left = 1000
            z.resize((7, 3))
        store.left = 1000
        z.resize(OLD.shape)
        assert z[...].sum() == OLD[:7, :3].sum()
        if left > 12:
            return


def test_a_unit_that_is_damaged_is_named():
    store = MemoryStore()
    z = old(store, "chunks")
    store.values["a/c/1/0"] = b"damaged"
    with pytest.raises(zarrdask.errors.CodecError, match="a/c/1/0"):
        z.resize((7, 3))
    assert z.shape == OLD.shape


# ---- what is left of an array that is gone


def test_units_are_erased_that_no_document_tells_of():
    store = MemoryStore()
    z = old(store, "chunks")
    others = {"a/c/x": b"", "a/b/zarr.json": b"{}", "c/0/0": b""}
    # A larger array may have been here: a later resize would show its chunks.
    store.values.update(others | {"a/c/9/9": b""})
    del store.values["a/zarr.json"]
    erase_leftovers(chunks_of(z))
    assert {key for key in store.values if key != "zarr.json"} == set(others)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_that_was_removed_in_part_is_replaced_as_a_whole(zarr_format):
    store = MemoryStore()
    z = zarrdask.create_array(
        store, "a", shape=8, dtype="i4", chunks=2, zarr_format=zarr_format, compressors=()
    )
    z[...] = 5
    for key in ("a/zarr.json", "a/.zarray"):
        store.values.pop(key, None)
    new = zarrdask.create_array(
        store, "a", shape=7, dtype="i4", chunks=2, zarr_format=zarr_format, overwrite=True
    )
    assert new[...].tolist() == [0] * 7
