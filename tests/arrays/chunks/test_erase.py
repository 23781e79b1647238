"""Erasing a region: covered chunks and shards are removed unread, others are changed."""

import threading

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.storage.latency import LatencyStore
from tests.storage.unlisted import UnlistedStore
from zarrdask.errors import (
    CodecError,
    LinkError,
    NodeNotFoundError,
    ReadOnlyError,
    SelectionError,
    StoreError,
)
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(1.0, 121.0).reshape(12, 10)
LAYOUTS = {
    "chunks": {"chunks": (5, 4)},
    "shards": {"chunks": (1, 2), "shards": (5, 4)},
    "uneven": {"chunks": ((5, 1, 6), (4, 6))},
    "v2": {"chunks": (5, 4), "zarr_format": 2},
    "draft": {"chunks": (5, 4), "zarr_format": "v3-draft"},
    "F": {"chunks": (5, 4), "order": "F"},
}
#: By rows, so that whole chunks are easy to name.
ROWS = {"shape": (8, 8), "dtype": "f8", "chunks": (1, 8), "compressors": ()}


class Requested(MemoryStore):
    """Notes the operations on chunks."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def _note(self, name, key):
        if "c/" in key:
            self.calls.append((name, key))

    def get(self, key):
        self._note("get", key)
        return super().get(key)

    def set(self, key, value):
        self._note("set", key)
        super().set(key, value)

    def erase(self, key):
        self._note("erase", key)
        super().erase(key)


def filled(store, layout="chunks", **options):
    z = zarrdask.create_array(
        store, "a", shape=VALUES.shape, dtype="f8", **LAYOUTS[layout], **options
    )
    z[...] = VALUES
    return z


slices = st.tuples(
    *(
        st.tuples(st.integers(0, n), st.integers(0, n)).map(lambda ends: slice(*sorted(ends)))
        for n in VALUES.shape
    )
)


@given(slices, st.sampled_from(sorted(LAYOUTS)), st.sampled_from([MemoryStore, UnlistedStore]))
def test_the_region_is_the_fill_value_and_nothing_else_changes(region, layout, kind):
    z = filled(kind(), layout, fill_value=-1)
    z.erase(region)
    expected = VALUES.copy()
    expected[region] = -1
    np.testing.assert_array_equal(z[...], expected)


@for_each("layout", LAYOUTS)
@for_each("kind", [MemoryStore, LatencyStore, UnlistedStore])
def test_nothing_is_stored_of_an_array_that_is_erased(layout, kind):
    store = kind()
    z = filled(store, layout)
    before = set(store.list_prefix("")) if store.capabilities.listable else set(store.values)
    z.erase(...)
    after = set(store.list_prefix("")) if store.capabilities.listable else set(store.values)
    assert len(after) == len(before) - np.prod(z.metadata.grid.counts)
    assert (z[...] == 0).all()


def test_covered_chunks_are_removed_unread():
    store = Requested()
    z = filled(store)
    store.calls.clear()
    z.erase(np.s_[5:12])  # the last chunks extend beyond the end of the array
    assert sorted(store.calls) == [("erase", f"a/c/{i}/{j}") for i in (1, 2) for j in range(3)]


def test_chunks_that_are_covered_in_part_are_read_and_filled():
    store = Requested()
    z = filled(store)
    store.calls.clear()
    z.erase(np.s_[0:5, 2:8])
    assert sorted(store.calls) == [("erase", "a/c/0/1"), ("get", "a/c/0/0"), ("set", "a/c/0/0")]


def test_chunks_that_are_not_stored_are_not_created():
    store = MemoryStore()
    z = zarrdask.create_array(store, shape=(8, 8), dtype="f8", chunks=(2, 8), fill_value=np.nan)
    z.erase(np.s_[1:7, 1:7])
    assert sorted(store.values) == ["zarr.json"]


def test_a_chunk_with_nothing_left_is_removed_also_if_empty_chunks_are_written():
    with dask.config.set({"zarrdask.write-empty-chunks": True}):
        store = MemoryStore()
        z = zarrdask.create_array(store, **ROWS)
        z[0] = np.arange(8)
        z.erase(np.s_[0:1, 1:])
    assert sorted(store.values) == ["zarr.json"]


def test_chunks_of_a_shard_that_are_covered_are_not_in_it_any_more():
    z = filled(MemoryStore(), "shards")
    z.erase(np.s_[0:3, 0:4])
    assert z.stored_map().all()
    assert not z.stored_map(per="chunk")[:3, :2].any()
    assert z.stored_map(per="chunk")[3:, :].all()


def test_no_chunk_of_a_shard_is_decoded_if_whole_chunks_are_erased():
    store, key = MemoryStore(), "a/c/0/0"
    z = filled(store, "shards", compressors="gzip")
    # Of each of the 10 chunks, before the index, a byte in the middle is changed.
    damaged, length = bytearray(store.values[key]), (len(store.values[key]) - 164) // 10
    for start in range(0, 10 * length, length):
        damaged[start + length // 2] ^= 255
    store.values[key] = bytes(damaged)
    z.erase(np.s_[1:3, 0:2])
    stored = z.stored_map(per="chunk")
    assert stored[0].all()
    assert not stored[1:3, 0].any()
    assert damaged[:length] in store.values[key]
    with pytest.raises(CodecError):
        z.erase(np.s_[3:4, 0:1])


@for_each(
    "dtype, fill, options",
    [
        ("f4", np.nan, {}),
        ("f4", -0.0, {}),
        ("i2", zarrdask.NO_FILL_VALUE, {"zarr_format": 2}),
        ("string", "none", {}),
        ("M8[s]", "NaT", {}),
        ([("x", "i4"), ("y", "f8")], None, {"zarr_format": 2}),
        ("bool", None, {}),
    ],
)
def test_every_kind_of_fill_value(dtype, fill, options):
    store = MemoryStore()
    z = zarrdask.create_array(store, shape=7, dtype=dtype, chunks=3, fill_value=fill, **options)
    blank = z[...]
    z[...] = np.ones(7, z.dtype) if z.dtype.kind != "O" else "some"
    kept = z[...]
    z.erase(np.s_[2:])
    assert z[2:].tobytes() == blank[2:].tobytes() or z[2:].tolist() == blank[2:].tolist()
    assert z[:2].tolist() == kept[:2].tolist()
    assert z.nchunks_stored() == 1


def test_an_array_without_axes():
    z = zarrdask.create_array({}, shape=(), dtype="i4")
    z[...] = 3
    z.erase(...)
    assert (z[...], z.nchunks_stored()) == (0, 0)


def test_names_of_dimensions():
    z = zarrdask.create_array({}, dimension_names=("y", "x"), **ROWS)
    z[...] = 1
    z.erase({"y": slice(-2, None)})
    assert z.stored_map()[:, 0].tolist() == [True] * 6 + [False] * 2


@for_each("region", [3, np.s_[::2], np.s_[0:9], [1, 2], {"z": slice(0, 1)}, "auto", None, (None,)])
def test_a_region_is_made_of_slices_within_the_array(region):
    store = Requested()
    z = zarrdask.create_array(store, **ROWS)
    z[...] = 1
    store.calls.clear()
    with pytest.raises(SelectionError):
        z.erase(region)
    assert store.calls == []


def test_an_empty_region_erases_nothing():
    z = filled(MemoryStore())
    z.erase(np.s_[3:3])
    np.testing.assert_array_equal(z[...], VALUES)


def test_an_array_that_is_open_for_reading_is_not_erased():
    store = MemoryStore()
    filled(store)
    with pytest.raises(ReadOnlyError):
        zarrdask.open_array(store, "a").erase(...)
    assert zarrdask.open_array(store, "a").nchunks_stored() == 9


def test_a_damaged_chunk_is_removed_if_it_is_covered_and_else_an_error():
    store = MemoryStore()
    z = filled(store)
    store.values["a/c/0/0"] = b"damaged"
    with pytest.raises(CodecError, match="c/0/0"):
        z.erase(np.s_[0:2])
    z.erase(np.s_[0:5])
    assert (z[:5] == 0).all()


def test_nothing_is_erased_if_a_chunk_is_behind_a_link(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    z = zarrdask.create_array(tmp_path / "a.zarr", **ROWS)
    z[...] = 1
    (tmp_path / "a.zarr" / "c" / "7").rename(elsewhere)
    (tmp_path / "a.zarr" / "c" / "7").symlink_to(elsewhere)
    with pytest.raises(LinkError):
        z.erase(...)
    assert (z[...] == 1).all()


def test_chunks_are_changed_at_the_same_time_in_a_store_with_latency():
    store = LatencyStore()
    z = zarrdask.create_array(store, **ROWS)
    z[...] = 1
    store.clear()
    z.erase(np.s_[:, 2:5])
    assert store.most > 4
    assert z[:, 2:5].sum() == 0
    assert z[...].sum() == 8 * 5


def test_many_chunks_of_which_few_are_stored():
    store = Requested()
    z = zarrdask.create_array(store, shape=10**12, dtype="u1", chunks=1)
    for at in (0, 5, 10**11, 10**12 - 1):
        z[at] = 1
    store.calls.clear()
    z.erase(np.s_[1:])
    assert set(store.calls) == {("erase", f"c/{i}") for i in (5, 10**11, 10**12 - 1)}


def test_a_partial_write_at_the_same_time_does_not_bring_a_chunk_back(monkeypatch):
    store = MemoryStore()
    z = zarrdask.create_array(store, **ROWS)
    z[...] = 1
    original = store.erase_values

    # While the chunks are erased, a writer that has read one of them stores it again.
    def erase_values(keys):
        original(keys)
        z[0, 0:2] = 5
        store.values["c/0/0"] = np.full(8, 7.0).tobytes()

    monkeypatch.setattr(store, "erase_values", erase_values)
    z.erase(np.s_[0:2])
    assert (z[0:2] == 0).all()


def test_an_array_that_has_grown_keeps_its_new_elements():
    store = MemoryStore()
    z = filled(store)
    zarrdask.open_array(store, "a", mode="r+").append(np.full((2, 10), 9.0))
    z.erase(...)
    grown = zarrdask.open_array(store, "a")[...]
    assert (grown[:12] == 0).all()
    assert (grown[12:] == 9).all()


def test_an_array_that_has_shrunk():
    store = MemoryStore()
    z = filled(store)
    zarrdask.open_array(store, "a", mode="r+").resize((3, 3))
    z.erase(np.s_[2:, 1:])
    expected = VALUES[:3, :3].copy()
    expected[2:, 1:] = 0
    np.testing.assert_array_equal(zarrdask.open_array(store, "a")[...], expected)


def test_an_array_that_is_gone_or_was_replaced():
    store = MemoryStore()
    z = filled(store)
    zarrdask.create_array(store, "a", shape=3, dtype="u1", overwrite=True)
    with pytest.raises(StoreError, match="another number of axes"):
        z.erase(...)
    zarrdask.create_group(store, "a", overwrite=True)
    with pytest.raises(NodeNotFoundError):
        z.erase(...)


def test_the_last_chunks_wait_for_an_append_that_is_under_way():
    store = MemoryStore()
    z = filled(store)
    erased = threading.Event()

    def erase():
        z.erase(np.s_[8:])
        erased.set()

    with z.node_path.exclusive("shape"):
        thread = threading.Thread(target=erase)
        thread.start()
        z.erase(np.s_[0:5, 0:4])  # elsewhere, nothing is waited for
        assert not erased.is_set()
        assert (z[8:] == VALUES[8:]).all()
    thread.join()
    assert (z[8:] == 0).all()
