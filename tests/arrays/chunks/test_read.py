"""What damaged chunks do, parts of any chain of codecs, and many small chunks."""

import base64
import functools
import gzip
import importlib
import os
import signal
import struct
import threading
import time

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zarrdask
from tests import selections
from tests.covering import for_each
from tests.documents import (
    CRC32C,
    LITTLE,
    blosc_frame,
    crc32c,
    rectilinear,
    same,
    shard_index,
    sharding,
    stored,
    v2,
    v3,
    zstd_bomb,
    zstd_frame,
)
from tests.formats.codecs.chains import chains
from tests.memory import at_most
from zarrdask import ZarrdaskError
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import ChecksumError, CodecError, StoreError
from zarrdask.runtime.turns import in_turns
from zarrdask.storage.memory import MemoryStore

GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 1}}
BLOSC = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle"}}


def read(document, chunks=None, attributes=None):
    return zarrdask.open_array(stored(document, chunks, attributes))[...]


# No time in them, so that test ids are the same in every process.
gz = functools.partial(gzip.compress, mtime=0)


def packed(form, *values):
    return struct.pack(form, *values)


HELLO = packed("<2H", 1, 0x0203)


@for_each("fill", ["NaN", "0x7fc00001", "-Infinity", -0.0])
def test_an_absent_chunk_reads_as_the_fill_value_to_the_bit(fill):
    z = zarrdask.open_array(stored(v3((3,), (2,), "float32", fill)))
    assert z[...].tobytes() == np.full(3, z.fill_value, "f4").tobytes()
    expected = {"NaN": 0x7FC00000, "0x7fc00001": 0x7FC00001, "-Infinity": 0xFF800000, -0.0: 2**31}
    assert z[...].view("u4").tolist() == [expected[fill]] * 3


def test_v2_structured_elements_are_packed():
    fields = [["foo", "<f4"], ["bar", [["baz", ">f4"], ["qux", "<i4", [2]]]]]
    value = packed("<f", 1.5) + packed(">f", 2.5) + packed("<2i", 7, 8)
    store = stored(v2((2,), (1,), fields, base64.b64encode(value).decode()), {"0": bytes(16)})
    z = zarrdask.open_array(store, mode="r+")
    assert z["foo"].tolist() == [0, 1.5]
    assert z[1]["bar"]["baz"] == 2.5
    assert z[1]["bar"]["qux"].tolist() == [7, 8]
    z[0] = z[1]
    assert "0" not in store


# ---- damage

KEY = "deep/array/c/1"


def outcome(act, z):
    """Return what acting on an array gives, and the error of ours that it raises instead."""
    try:
        return act(z), None
    except ZarrdaskError as error:
        return None, error


def damaged(value, codecs=(LITTLE,), **changes):
    """Return an array of 2 chunks whose second one is damaged."""
    document = v3((4,), (2,), codecs=codecs, **changes)
    root = stored(document)
    store = {f"deep/array/{key}": data for key, data in root.items()}
    return zarrdask.open_array(store | {KEY: value}, "deep/array", mode="r+")


WAYS = {
    "eager": lambda z: z[...],
    "part": lambda z: z[3:],
    "oindex": lambda z: z.oindex[[2, 3]],
    "vindex": lambda z: z.vindex[[3, 0]],
    "partial write": lambda z: z.__setitem__(slice(3, 4), 1),
}


@for_each("way", WAYS.values())
@for_each(
    ("codecs", "value"),
    [
        ([LITTLE], b""),
        ([LITTLE], bytes(3)),
        ([LITTLE], bytes(5)),
        ([LITTLE, GZIP], b""),
        ([LITTLE, GZIP], gz(HELLO)[:-1]),
        ([LITTLE, GZIP], gz(HELLO[:3])),
        ([LITTLE, GZIP], gz(HELLO * 2)),
        ([LITTLE, ZSTD], zstd_frame(HELLO)[:-1]),
        ([LITTLE, ZSTD], zstd_frame(HELLO[:3])),
        ([LITTLE, ZSTD], zstd_frame(HELLO * 2)),
        ([LITTLE, ZSTD], zstd_frame(HELLO[:3], sized=False)),
        ([LITTLE, ZSTD], zstd_frame(HELLO * 2, sized=False)),
        ([LITTLE, ZSTD], zstd_frame(HELLO) + zstd_frame(HELLO)),
        ([LITTLE, BLOSC], blosc_frame(HELLO)[:-1]),
        ([LITTLE, BLOSC], blosc_frame(HELLO[:3])),
        ([LITTLE, BLOSC], blosc_frame(HELLO * 2)),
        ([LITTLE, BLOSC], b"\xff" * 30),
        ([LITTLE, CRC32C], HELLO),
        ([LITTLE, CRC32C], HELLO[:3] + crc32c(HELLO[:3])),
        ([sharding((1,))], b""),
        ([sharding((1,))], bytes(35)),
        ([sharding((1,))], b"abcd" + shard_index((0, 2), (39, 2))),
        ([sharding((1,))], b"abcd" + shard_index((0, 2), (0, 2**40))),
    ],
)
def test_a_damaged_chunk_is_an_error_that_names_its_key(codecs, value, way):
    z = damaged(value, codecs)
    with pytest.raises(CodecError) as caught:
        way(z)
    assert KEY in caught.value.key
    assert KEY in str(caught.value)
    assert z.store.values[KEY] == value
    assert z[:2].tolist() == [0, 0]


@for_each("size", [0, 1, 3])
@for_each("way", list(WAYS)[:4])
def test_an_inner_chunk_of_another_size_is_an_error_that_names_key_and_chunk(size, way):
    z = damaged(b"abcd" + shard_index((0, 2), (1, size)), [sharding((1,))])
    with pytest.raises(CodecError, match=r"inner chunk \(1,\)") as caught:
        WAYS[way](z)
    assert caught.value.key.startswith(KEY)


@for_each("way", WAYS.values())
@for_each("codecs", [[LITTLE, CRC32C], [sharding((1,), [LITTLE, CRC32C])]])
def test_any_flipped_bit_is_a_checksum_error_that_names_the_key(codecs, way):
    good = damaged(b"", codecs)
    good.store.erase(KEY)
    good[2:] = [1, 0x0203]
    value = good.store.get(KEY)
    for bit in range(0, len(value) * 8, 11):
        broken = bytearray(value)
        broken[bit // 8] ^= 1 << bit % 8
        z = damaged(bytes(broken), codecs)
        found, error = outcome(way, z)
        if error is not None:
            assert isinstance(error, ChecksumError)
            assert KEY in error.key
        else:
            # The bit is in an inner chunk that was not read.
            assert codecs[0]["name"] == "sharding_indexed"
            assert found is None or found.tolist() in ([0x0203], [0x0203, 0])


BOMBS = {
    "gzip": ([LITTLE, GZIP], lambda: gz(bytes(2**25))),
    "zstd": ([LITTLE, ZSTD], lambda: zstd_bomb(2**25, states=2**25)),
    "zstd without a size": ([LITTLE, ZSTD], lambda: zstd_bomb(2**25)),
    "two compressors": ([LITTLE, GZIP, GZIP], lambda: gz(gz(bytes(2**25)))),
    "blosc": ([LITTLE, BLOSC], lambda: blosc_frame(b"x", states=2**27)),
    "shard": ([sharding((1,))], lambda: b"abcd" + shard_index((0, 2**27), (0, 2))),
    "inner chunk": (
        [sharding((1,), [LITTLE, GZIP])],
        lambda: (d := gz(bytes(2**25))) + shard_index((0, len(d)), None),
    ),
    "whole shard": ([sharding((1,)), GZIP], lambda: gz(bytes(2**25))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_value_that_decodes_to_a_huge_one_is_an_error_and_takes_no_memory(name, tmp_path):
    codecs, make = BOMBS[name]
    value = make()
    assert len(value) < 2**18
    z = damaged(value, codecs)
    local = zarrdask.create_array(tmp_path, shape=4, dtype="u2", chunks=2)
    for key in ("zarr.json", "c/1"):
        local.store.set(key, z.store.get(f"deep/array/{key}"))
    for array in (z, zarrdask.open_array(tmp_path)):
        with at_most(2**24), pytest.raises(CodecError, match="c/1"):
            array[...]


def test_a_chunk_that_is_written_whole_is_not_read_before():
    z = damaged(b"rubbish", [LITTLE, CRC32C])
    z[2:] = 5
    assert z[...].tolist() == [0, 0, 5, 5]


class Failing(MemoryStore):
    """A store whose values can't be had."""

    def get_many(self, keys, scratch):
        for key in keys:
            raise StoreError("the line was cut", key=key)
        yield

    def get_range(self, key, start, length=None):
        raise StoreError("the line was cut", key=key)


@pytest.mark.parametrize("codecs", [[LITTLE], [sharding((1,))]])
def test_a_failing_store_is_a_store_error_that_names_the_key(codecs):
    array = zarrdask.open_array(stored(v3((2,), codecs=codecs)))
    broken = zarrdask.Array(NodePath(Failing(array.store.values), ""), array.metadata)
    with pytest.raises(StoreError, match="the line was cut") as caught:
        broken[...]
    assert caught.value.key.count("c/0") == 1


class Asked(MemoryStore):
    """Keeps which values were asked for together."""

    def __init__(self):
        super().__init__()
        self.together = []

    def get_many(self, keys, scratch):
        self.together.append(sorted(keys))
        return super().get_many(keys, scratch)


def test_chunks_of_several_shapes_are_asked_for_together():
    store = Asked()
    lengths = (20_000, 30_000, 20_000, 40_000)
    z = zarrdask.create_array(store, shape=110_000, dtype="i4", chunks=(lengths,))
    z[...] = np.arange(110_000)
    store.together.clear()
    found = read_region(chunks_of(z), (slice(10_000, 110_000, 1),), threads=1)
    np.testing.assert_array_equal(found, np.arange(10_000, 110_000))
    assert store.together == [["c/0", "c/1", "c/2", "c/3"]]


# ---- any chain of codecs


@st.composite
def arrays_of_any_chain(draw):
    """A v3 array whose chunks have any legal chain of codecs, and its values.

    The chunks are of one shape, or of multiples of it.
    """
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=8))
    chunk_shape = tuple(draw(st.integers(1, 6)) for _ in shape)
    document = v3(shape, chunk_shape, "int16", 3, draw(chains(chunk_shape)))
    if draw(st.booleans()):
        axes = zip(shape, chunk_shape, strict=True)
        lengths = [draw(selections.lengths(size, chunk)) for size, chunk in axes]
        document["chunk_grid"] = rectilinear(lengths)
    values = draw(hnp.arrays("i2", shape, elements=st.integers(0, 5), fill=st.just(3)))
    return zarrdask.open_array(stored(document), mode="r+"), values


@given(arrays_of_any_chain(), st.data())
def test_parts_of_any_chain_are_those_of_the_whole(case, data):
    z, values = case
    z[...] = values
    same(z[...], values)
    index = data.draw(selections.basic(values.shape))
    same(z[index], values[index])
    outer = data.draw(selections.outer(values.shape))
    same(z.oindex[outer], selections.take_outer(values, outer)[0])
    if values.ndim:
        points = data.draw(selections.points(values.shape))
        same(z.vindex[points], values[points])


@given(arrays_of_any_chain(), st.data())
def test_parts_written_through_any_chain_are_those_of_the_whole(case, data):
    z, values = case
    expected = np.full(values.shape, 3, "i2")
    for number in range(2):
        index = data.draw(selections.basic(values.shape, newaxis=False))
        z[index] = expected[index] = number + 7
    outer = data.draw(selections.outer(values.shape))
    z.oindex[outer] = 20
    expected[selections.take_outer(values, outer)[1]] = 20
    same(z[...], expected)


@given(arrays_of_any_chain(), st.integers(0, 10**9), st.integers(0, 10**9))
def test_any_damage_is_an_error_of_ours_or_values(case, which, place):
    z, values = case
    z[...] = values
    keys = sorted(key for key in z.store.values if key != "zarr.json")
    if not keys:
        return
    key = keys[which % len(keys)]
    broken = bytearray(z.store.values[key])
    broken[place % len(broken)] ^= 1 << which % 8
    z.store.values[key] = bytes(broken)
    found, error = outcome(lambda z: z[...], z)
    if error is None:
        assert found.shape == values.shape
    else:
        assert key in error.key


# ---- small chunks


class SlowStore(MemoryStore):
    """As a disk far away: each value takes a while."""

    def __init__(self):
        super().__init__()
        self.together = self.most = 0
        self._lock = threading.Lock()

    def get(self, key):
        with self._lock:
            self.together += 1
            self.most = max(self.most, self.together)
        time.sleep(0.001)
        with self._lock:
            self.together -= 1
        return super().get(key)


def test_threads_wait_together_for_small_chunks_that_come_slowly():
    values = np.arange(400, dtype="i4")
    store = SlowStore()
    z = zarrdask.create_array(store, shape=400, dtype="i4", chunks=1)
    z[...] = values
    store.most = 0
    found = read_region(chunks_of(z), (slice(0, 400, 1),), threads=4)
    np.testing.assert_array_equal(found, values)
    assert store.most > 1


def test_threads_wait_together_for_a_few_chunks_that_come_slowly():
    store = SlowStore()
    z = zarrdask.create_array(store, shape=16, dtype="i4", chunks=1)
    z[...] = np.arange(16)
    store.most = 0
    found = read_region(chunks_of(z), (slice(0, 16, 1),), threads=4)
    np.testing.assert_array_equal(found, np.arange(16))
    assert store.most > 1


@for_each("chunks", [(3, 4), ([1, 3, 3], [2, 2, 6])])
@for_each("compressors", ["auto", None])
@for_each("seconds", [0, np.inf])
def test_few_chunks_are_read_alike_in_one_thread_and_in_several(
    monkeypatch, chunks, compressors, seconds
):
    monkeypatch.setattr("zarrdask.arrays.chunks.read.QUICK_SECONDS", seconds)
    values = np.arange(70, dtype="i4").reshape(7, 10)
    z = zarrdask.create_array({}, shape=(7, 10), dtype="i4", chunks=chunks, compressors=compressors)
    z[...] = values
    region = (slice(1, 7, 2), slice(1, 9, 1))
    found = read_region(chunks_of(z), region, threads=3)
    np.testing.assert_array_equal(found, values[region])
    picks = (np.array([6, 0, 0]), slice(0, 10, 3))
    found = read_region(chunks_of(z), picks, threads=3)
    np.testing.assert_array_equal(found, values[picks])
    out = np.full((7, 10), -1, "i4")
    assert read_region(chunks_of(z), (slice(0, 7, 1), slice(0, 10, 1)), threads=3, out=out) is out
    np.testing.assert_array_equal(out, values)


def test_small_chunks_that_come_fast_are_read_in_turns(tmp_path):
    values = np.arange(1000, dtype="i4")
    z = zarrdask.create_array(tmp_path, shape=1000, dtype="i4", chunks=2)
    z[...] = values
    np.testing.assert_array_equal(
        read_region(chunks_of(z), (slice(0, 1000, 1),), threads=4), values
    )


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_reads_though_another_thread_was_reading(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=300, dtype="i4", chunks=2)
    z[...] = 1
    reading, done = threading.Event(), threading.Event()

    def read_slowly(items):
        reading.set()
        done.wait(20)
        return sum(1 for _ in items)

    small = {"count": 2, "nbytes": 8}
    thread = threading.Thread(target=in_turns, args=(read_slowly, iter([1, 2])), kwargs=small)
    thread.start()
    reading.wait(20)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(0 if z[...].sum() == 300 else 1)
    done.set()
    thread.join(20)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_small_chunks_in_small_shards_are_read():
    inner = sharding((2,), codecs=[LITTLE])
    z = zarrdask.create_array({}, shape=64, dtype="i4", chunks=8, codecs=[inner, ZSTD])
    z[...] = np.arange(64)
    assert z[...].tolist() == list(range(64))


def test_filters_may_widen_elements():
    values = np.arange(100_000, dtype="u1")
    for filters in (
        [{"id": "delta", "dtype": "|u1", "astype": "<i4"}],
        [{"id": "astype", "encode_dtype": "<f8", "decode_dtype": "|u1"}],
    ):
        store = {}
        z = zarrdask.create_array(
            store, shape=values.shape, dtype="u1", chunks=-1, filters=filters, zarr_format=2
        )
        z[...] = values
        np.testing.assert_array_equal(z[...], values)


@pytest.mark.parametrize("entry", [(2**63 - 1, 2**62), (100, 2**63 - 1), (0, 2**40)])
def test_a_damaged_nested_shard_is_a_codec_error(entry):
    inner = sharding((1,))
    z = damaged(b"abcd" + shard_index(entry), [sharding((2,), codecs=[inner])])
    with pytest.raises(CodecError, match=KEY):
        z[...]


def test_all_threads_have_ended_when_one_fails():
    class Broken(MemoryStore):
        def get(self, key):
            if key == "c/0":
                raise StoreError("broken", key=key)
            time.sleep(0.01)
            done.append(key)
            return super().get(key)

    done = []
    z = zarrdask.create_array(Broken(), shape=40, dtype="i4", chunks=1)
    with pytest.raises(StoreError, match="c/0"):
        read_region(chunks_of(z), (slice(0, 40, 1),), threads=2)
    found = len(done)
    time.sleep(0.05)
    assert len(done) == found


def test_threads_share_the_chunks_of_one_shard(monkeypatch):
    module = importlib.import_module("zarrdask.arrays.chunks.read")
    opened = []

    class Opening(MemoryStore):
        def reading(self, key, scratch):
            opened.append(key)
            return super().reading(key, scratch)

    monkeypatch.setattr(module, "MIN_PART_BYTES", 16)
    values = np.arange(24 * 24, dtype="i4").reshape(24, 24)
    store = Opening()
    z = zarrdask.create_array(store, shape=(24, 24), dtype="i4", chunks=(3, 4), shards=(24, 24))
    z[...] = values
    opened.clear()
    with dask.config.set({"zarrdask.threads": 2}):
        np.testing.assert_array_equal(z[...], values)
        assert len(opened) == 4
        np.testing.assert_array_equal(z[1:20:3, 5], values[1:20:3, 5])
        np.testing.assert_array_equal(z.read_many([np.s_[2:22, 3:9]])[0], values[2:22, 3:9])
    opened.clear()
    np.testing.assert_array_equal(zarrdask.from_zarr(z).compute(scheduler="sync"), values)
    assert len(opened) == 1  # a task uses one thread


@pytest.mark.parametrize(
    "codecs",
    [
        [sharding([2, 3], [LITTLE, ZSTD])],
        [sharding([2, 3], [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE])],
        [{"name": "transpose", "configuration": {"order": [1, 0]}}, sharding([3, 2], [LITTLE])],
        [sharding([4, 3], [sharding([2, 3], [LITTLE])])],
        [sharding([2, 3], [LITTLE]), ZSTD],
    ],
)
def test_each_inner_chunk_is_read_by_itself(codecs, tmp_path):
    document = v3([8, 12], [4, 6], "int16", 7, codecs)
    (tmp_path / "zarr.json").write_bytes(stored(document)["zarr.json"])
    array = zarrdask.open_array(tmp_path, mode="r+")
    values = np.arange(96, dtype="i2").reshape(8, 12)
    values[:2, :3] = 7  # an inner chunk that is missing
    values[4:, 6:] = 7  # a shard that is missing
    array[...] = values
    out = np.zeros((5, 5), "i2", order="F")
    for row in range(0, 8, 2):
        for column in range(0, 12, 3):
            region = slice(row, row + 2), slice(column, column + 3)
            np.testing.assert_array_equal(array[region], values[region])
            np.testing.assert_array_equal(array[region[0], column], values[region[0], column])
    chunks = chunks_of(array)
    region = slice(2, 4, 1), slice(3, 6, 1)
    read_region(chunks, region, out=out[1:3, 1:4])
    np.testing.assert_array_equal(out[1:3, 1:4], values[region])
    assert np.count_nonzero(out) == 6
