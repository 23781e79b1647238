"""Shards of a store with latency: indexes and chunks of all of them are in flight together."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.storage.latency import FarStore, LatencyStore
from zarrdask.arrays.chunks import shards
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.runtime import in_flight

VALUES = np.arange(40 * 30, dtype="i4").reshape(40, 30)


def sharded(**options):
    store = LatencyStore(seconds=0)
    options = {"chunks": (5, 5), "shards": (10, 10)} | options
    z = zarrdask.create_array(store, shape=VALUES.shape, dtype="i4", **options)
    z[...] = VALUES
    store.clear()
    return z, store


def test_one_task_takes_two_rounds_for_all_shards():
    z, store = sharded()
    x = zarrdask.from_zarr(z, chunks=-1)
    store.clear()
    np.testing.assert_array_equal(x[2:38, 7].compute(scheduler="sync"), VALUES[2:38, 7])
    assert store.calls == ["get_partial_values", "get_partial_values"]


def test_whole_shards_take_one_round():
    z, store = sharded()
    x = zarrdask.from_zarr(z, chunks=-1)
    store.clear()
    np.testing.assert_array_equal(x.compute(scheduler="sync"), VALUES)
    assert store.calls == ["get_partial_values"]


def test_only_what_is_needed_is_read():
    z, store = sharded(compressors=[])
    inner = store.inner
    asked = []
    original = inner.get_partial_values
    inner.get_partial_values = lambda ranges: asked.append([*ranges]) or original(asked[-1])
    x = zarrdask.from_zarr(z, chunks=-1)[0:10, 0:1]
    np.testing.assert_array_equal(x.compute(scheduler="sync"), VALUES[0:10, 0:1])
    indexes, chunks = asked
    assert [start for _, (start, _) in indexes] == [-(4 * 16 + 4)]
    assert [length for _, (_, length) in chunks] == [300]  # two of them by one request


class Concurrent(FarStore):
    """A store whose requests may be in flight together; it keeps where they start."""

    def get_range(self, key, start, length=None):
        self.starts.append(start)
        return super().get_range(key, start, length)


def test_chunks_are_requested_while_later_indexes_are_on_their_way(setting):
    setting({"zarrdask.requests": 1})
    _, store = sharded()
    far = Concurrent(store.inner, seconds=0)
    far.starts = []
    request = slice(2, 38, 1), slice(7, 8, 1)
    values = read_region(chunks_of(zarrdask.open_array(far)), request, threads=1)
    np.testing.assert_array_equal(values, VALUES[request])
    of_index = [start < 0 for start in far.starts]
    assert (len(of_index), sum(of_index)) == (8, 4)
    assert not all(of_index[:4])


@pytest.mark.parametrize("shards", [None, (10, 10)])
def test_units_are_decoded_while_later_ones_are_on_their_way(monkeypatch, setting, shards):
    decoding, answered = threading.Event(), []

    class Slow(FarStore):
        """Answers for the last unit only when the first one is being decoded."""

        def get(self, key):
            return self.get_range(key, 0)

        def get_range(self, key, start, length=None):
            if key == "c/3/2":
                answered.append(decoding.wait(30))
            return super().get_range(key, start, length)

    def decode(pipeline, *args):
        decoding.set()
        return original(pipeline, *args)

    _, store = sharded(chunks=(5, 5) if shards else (10, 10), shards=shards)
    z = zarrdask.open_array(Slow(store.inner, seconds=0))
    original = Pipeline.decode
    monkeypatch.setattr(Pipeline, "decode", decode)
    setting({"zarrdask.threads": 1})
    np.testing.assert_array_equal(z[...], VALUES)
    assert answered == [True]


@pytest.mark.parametrize(("limit", "most"), [(2**28, 12), (900, 2), (1, 1)])
def test_shards_in_flight_are_bounded_in_bytes(monkeypatch, limit, most):
    monkeypatch.setattr(in_flight, "MAX_BYTES_IN_FLIGHT", limit)
    _, store = sharded()
    far = Concurrent(store.inner, seconds=0.05)
    far.starts = []
    z = zarrdask.open_array(far)
    far.most = 0
    np.testing.assert_array_equal(
        read_region(chunks_of(z), (slice(0, 40, 1), slice(0, 30, 1)), threads=1), VALUES
    )
    assert far.most == most


@pytest.mark.parametrize(
    "order", [None, [{"name": "transpose", "configuration": {"order": [1, 0]}}]]
)
@given(data=st.data())
def test_any_selection_is_numpys(order, data):
    z, _ = sharded(**({} if order is None else {"filters": order}))
    picks = tuple(
        slice(
            *sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)))),
            data.draw(st.integers(1, 4)),
        )
        for n in VALUES.shape
    )
    np.testing.assert_array_equal(z[picks], VALUES[picks])


def test_missing_shards_and_chunks_are_the_fill_value():
    store = LatencyStore(seconds=0)
    z = zarrdask.create_array(
        store, shape=(20, 20), dtype="i4", chunks=(5, 5), shards=(10, 10), fill_value=7
    )
    z[0:5, 0:5] = 1
    expected = np.full((20, 20), 7)
    expected[0:5, 0:5] = 1
    np.testing.assert_array_equal(z[1:19, 1:19], expected[1:19, 1:19])


def test_shards_within_shards_are_read():
    bare = [{"name": "bytes", "configuration": {"endian": "little"}}]

    def sharding(shape, codecs):
        settings = {"chunk_shape": shape, "codecs": codecs, "index_codecs": bare}
        return [{"name": "sharding_indexed", "configuration": settings}]

    store = LatencyStore(seconds=0)
    codecs = sharding([10, 10], sharding([5, 5], [{"name": "bytes"}]))
    z = zarrdask.create_array(store, shape=(40, 40), dtype="u1", chunks=(20, 20), codecs=codecs)
    values = np.arange(1600).reshape(40, 40).astype("u1")
    z[...] = values
    np.testing.assert_array_equal(z[3:33, 4:37], values[3:33, 4:37])


def test_rounds_are_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(shards, "MAX_BYTES_IN_FLIGHT", 300)
    z, store = sharded(compressors=[])
    x = zarrdask.from_zarr(z, chunks=-1)
    store.clear()
    np.testing.assert_array_equal(x[:, 7].compute(scheduler="sync"), VALUES[:, 7])
    assert store.calls == ["get_partial_values"] * (1 + 4)


def test_a_damaged_index_is_an_error_that_names_the_shard():
    z, store = sharded()
    key = "c/1/0"
    value = bytearray(store.inner.get(key))
    value[-1] ^= 1
    store.inner.set(key, bytes(value))
    with pytest.raises(CodecError, match="c/1/0"):
        z[:, 3]
