"""Cached indexes of shards: each is of one version of its shard, and is used for no other one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.storage.latency import VersionedStore
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.formats.byte_ranges import Part
from zarrdask.storage.memory import MemoryStore

SHAPE = 40, 30
VALUES = np.arange(1, 40 * 30 + 1, dtype="i4").reshape(SHAPE)
WINDOW = slice(2, 38, 1), slice(7, 8, 1)


def sharded(**options):
    """Return an array of shards, as it is opened by a reader, and its store; and by a writer."""
    memory = MemoryStore()
    options = {"chunks": (5, 5), "shards": (10, 10), "fill_value": -1} | options
    writer = zarrdask.create_array(memory, shape=SHAPE, dtype="i4", **options)
    writer[...] = VALUES
    far = VersionedStore(memory, seconds=0.03)
    return zarrdask.open_array(far), far, writer


def read(z, window):
    """Read a part of an array in one thread; count its rounds of requests, and the requests."""
    store = z.store.inner
    store.clear()
    values = read_region(chunks_of(z), window, threads=1)
    return values, store.rounds, len(store.calls)


def counts(z, window, expected):
    values, rounds, requests = read(z, window)
    np.testing.assert_array_equal(values, expected[window])
    return rounds, requests


@pytest.mark.parametrize("location", ["start", "end"])
def test_reading_again_takes_one_round(location):
    bare = [{"name": "bytes", "configuration": {"endian": "little"}}]
    crc = [*bare, {"name": "crc32c"}]
    settings = {"chunk_shape": [5, 5], "codecs": bare, "index_codecs": crc}
    codec = {"name": "sharding_indexed", "configuration": settings | {"index_location": location}}
    z, store, _ = sharded(codecs=[codec], chunks=(10, 10), shards=None)
    shards = 4
    assert counts(z, WINDOW, VALUES)[1] == 2 * shards
    assert counts(z, WINDOW, VALUES) == (1, shards)
    neighbour = slice(2, 38, 1), slice(3, 4, 1)
    assert counts(z, neighbour, VALUES) == (1, shards)
    # Another object for the same store, as that of another task.
    again = zarrdask.open_array(VersionedStore(store.inner, seconds=0.03))
    assert counts(again, WINDOW, VALUES) == (1, shards)


def test_arrays_of_two_stores_have_indexes_of_their_own():
    for _ in range(2):
        assert counts(sharded()[0], WINDOW, VALUES)[1] == 8


def test_without_the_setting_no_indexes_are_kept(setting):
    setting({"zarrdask.index-cache-size": 0})
    z, store, _ = sharded()
    for _ in range(2):
        assert counts(z, WINDOW, VALUES)[1] == 8
        assert set(store.calls) == {"get_range"}


def test_a_changed_shard_and_those_after_it_are_read_anew():
    z, _, writer = sharded()
    counts(z, WINDOW, VALUES)
    expected = VALUES.copy()
    expected[22, 7] = writer[22, 7] = 0
    assert counts(z, WINDOW, expected)[1] <= 4 + 2 * 2
    assert counts(z, WINDOW, expected) == (1, 4)


def test_a_shard_that_is_missing_or_empty_is_asked_for_again():
    z, _, writer = sharded()
    empty = slice(0, 5, 1), slice(0, 5, 1)
    expected = VALUES.copy()
    for value in (-1, 3):
        expected[empty] = writer[empty] = value
        counts(z, empty, expected)
        assert counts(z, empty, expected)[0] == 1
    for key in ("c/0/0", "c/1/0"):
        z.store.inner.inner.erase(key)
        i = 10 * int(key[2])
        expected[i : i + 10, :10] = -1
    assert counts(z, WINDOW, expected)[1] > 4
    writer[...] = VALUES
    counts(z, WINDOW, VALUES)


@st.composite
def windows(draw):
    bounds = [sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in SHAPE]
    return tuple(slice(*pair, draw(st.integers(1, 3))) for pair in bounds)


@given(st.data())
def test_no_change_between_reads_goes_unnoticed(data):
    z, store, writer = sharded()
    store.seconds, expected = 0, VALUES.copy()
    for turn in range(data.draw(st.integers(1, 4))):
        values = read_region(chunks_of(z), window := data.draw(windows()), threads=1)
        np.testing.assert_array_equal(values, expected[window])
        match data.draw(st.sampled_from(["write", "fill", "erase"])):
            case "erase":
                i, j = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 2)))
                store.inner.erase(f"c/{i}/{j}")
                expected[10 * i : 10 * i + 10, 10 * j : 10 * j + 10] = -1
            case change:
                part = data.draw(windows())
                value = -1 if change == "fill" else -2 - turn
                expected[part] = writer[part] = value
    np.testing.assert_array_equal(
        read_region(chunks_of(z), (slice(0, 40, 1), slice(0, 30, 1)), threads=1), expected
    )


class Changing(VersionedStore):
    """A store whose values are replaced again and again: none has the version that it had."""

    def get_part(self, key, start, length, tag=None):
        return super().get_part(key, start, length) if tag is None else None


class Whole(VersionedStore):
    """A store behind a server that knows no ranges."""

    def get_part(self, key, start, length, tag=None):
        return Part(value := self.inner.get(key), len(value), None)


@pytest.mark.parametrize("kind", [Changing, Whole])
def test_a_shard_whose_parts_are_of_no_version_is_read(kind):
    _, store, _ = sharded()
    counts(zarrdask.open_array(kind(store.inner, seconds=0)), WINDOW, VALUES)


@given(st.integers(1, 9))
def test_a_shard_that_changes_during_a_read_is_of_one_version(after):
    """A shard is replaced, by one whose chunks are in other places, after some request."""
    _, store, writer = sharded(shards=(10, 30), compressors=[{"name": "gzip"}])
    old = store.inner.get("c/1/0")
    writer[10:20] = new = np.random.default_rng(0).integers(0, 2**31, (10, 30), "i4")
    replaced = store.inner.get("c/1/0")
    store.inner.set("c/1/0", old)

    class Changing(VersionedStore):
        def get_part(self, key, *args):
            part = super().get_part(key, *args)
            if len(self.calls) == after:
                self.inner.set("c/1/0", replaced)
            return part

    far = Changing(store.inner, seconds=0)
    z = zarrdask.open_array(far)
    read_region(chunks_of(z), (slice(10, 20, 1), slice(7, 8, 1)), threads=1)
    values = read_region(chunks_of(z), (slice(10, 20, 1), slice(7, 30, 12)), threads=1)
    assert any(np.array_equal(values, each[:, 7::12]) for each in (VALUES[10:20], new))
