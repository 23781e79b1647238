"""Decoded chunks are cached with the version of their stored object, and never used for another."""

import os
import pickle
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.processes import running
from tests.storage.latency import VersionedStore
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.runtime.decoded_chunks import CHUNKS
from zarrdask.storage.local import open_file
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore

SHAPE = 24, 20
VALUES = np.arange(1, 24 * 20 + 1, dtype="i4").reshape(SHAPE)
BIG_ENDIAN = {"name": "bytes", "configuration": {"endian": "big"}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
LAYOUTS = {
    "chunks": {"chunks": (8, 5)},
    "shards": {"chunks": (4, 5), "shards": (8, 10)},
    "rectilinear": {"chunks": ((3, 9, 12), (5, 5, 10))},
    "transposed": {"chunks": (8, 5), "filters": [TRANSPOSE]},
    "uncompressed": {"chunks": (8, 5), "compressors": None},
    "big-endian": {"chunks": (8, 5), "codecs": [BIG_ENDIAN]},
    # These codecs and chunk keys have no form in Zarr v3.
    "v2": {"chunks": (8, 5), "zarr_format": 2, "filters": [{"id": "delta", "dtype": "<i4"}]},
    "v3-draft": {"chunks": (8, 5), "zarr_format": "v3-draft"},
}
#: A shard in a dict is read in parts, which have no version.
CASES = [
    (layout, name)
    for layout in LAYOUTS
    for name in ("disk", "memory", "far")
    if (layout, name) != ("shards", "memory")
]


@pytest.fixture(autouse=True)
def cache(setting, monkeypatch):
    setting({"zarrdask.cache-size": 2**20})
    CHUNKS.clear()
    # Chunks that have just been written are cached, too.
    monkeypatch.setattr(open_file, "CLOCK_NS", -(10**15))
    yield CHUNKS
    CHUNKS.clear()


@pytest.fixture
def decodes(monkeypatch):
    """Count the chunks that are decoded, but not the indexes of shards."""
    counts, decode = Counter(), Pipeline.decode

    def counted(self, data, memory=None):
        counts["chunks"] += self.spec.dtype == VALUES.dtype
        return decode(self, data, memory)

    monkeypatch.setattr(Pipeline, "decode", counted)
    return counts


def places(tmp_path):
    return {"disk": str(tmp_path / "a.zarr"), "memory": MemoryStore(), "far": MemoryStore()}


def opened(place, name):
    """Return the array of a place, as a reader opens it."""
    return zarrdask.open_array(VersionedStore(place, seconds=0) if name == "far" else place)


@pytest.mark.parametrize(("layout", "name"), CASES)
def test_an_array_that_is_read_row_by_row_is_decoded_once(layout, name, tmp_path, decodes):
    place = places(tmp_path)[name]
    zarrdask.create_array(place, shape=SHAPE, dtype="i4", **LAYOUTS[layout])[...] = VALUES
    z = opened(place, name)
    decodes.clear()
    for row in range(SHAPE[0]):
        np.testing.assert_array_equal(z[row], VALUES[row])
    chunks = chunks_of(z).metadata.read_grid.size
    assert decodes["chunks"] == chunks
    # Other ways to read, another object, and one that was pickled.
    if (layout, name) != ("shards", "far"):  # whole shards are fetched by one request
        np.testing.assert_array_equal(z[...], VALUES)
    np.testing.assert_array_equal(z[1:20:3, [0, 7, 3]], VALUES[1:20:3, [0, 7, 3]])
    np.testing.assert_array_equal(z.vindex[[3, 9, 20], [0, 7, 19]], VALUES[[3, 9, 20], [0, 7, 19]])
    np.testing.assert_array_equal(opened(place, name)[5], VALUES[5])
    if name != "far":
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(z))[5], VALUES[5])
    regions = [(slice(n, n + 9), slice(1, 19)) for n in range(0, 12, 3)]
    for block, region in zip(z.read_many(regions), regions, strict=True):
        np.testing.assert_array_equal(block, VALUES[region])
    np.testing.assert_array_equal(zarrdask.from_zarr(z)[3].compute(scheduler="threads"), VALUES[3])
    assert decodes["chunks"] == chunks


def test_of_two_threads_that_need_a_chunk_one_decodes_it(tmp_path, monkeypatch):
    z = zarrdask.create_array(tmp_path / "a", shape=SHAPE, dtype="i4", chunks=SHAPE)
    z[...] = VALUES
    both, counts, decode = threading.Barrier(2, timeout=20), Counter(), Pipeline.decode_apart
    get_if_changed = LocalStore.get_if_changed

    def get(*args):
        version = get_if_changed(*args)
        both.wait()  # Each thread has read the chunk.
        return version

    def counted(self, data):
        counts["chunks"] += 1
        time.sleep(0.05)
        return decode(self, data)

    monkeypatch.setattr(LocalStore, "get_if_changed", get)
    monkeypatch.setattr(Pipeline, "decode_apart", counted)
    with ThreadPoolExecutor(2) as pool:
        for row in pool.map(z.__getitem__, (3, 3)):
            np.testing.assert_array_equal(row, VALUES[3])
    assert counts["chunks"] == 1


def test_shards_whose_chunks_are_cached_are_not_opened(tmp_path, monkeypatch):
    z = zarrdask.create_array(tmp_path / "a", shape=SHAPE, dtype="i4", **LAYOUTS["shards"])
    z[...] = VALUES
    z[...]  # caches all chunks
    opened = []
    monkeypatch.setattr(LocalStore, "opened", lambda self, key: opened.append(key))
    for request in ((3,), (slice(1, 20, 3), [0, 7, 3]), (slice(None), 4)):
        np.testing.assert_array_equal(z[request], VALUES[request])
    np.testing.assert_array_equal(z.vindex[[3, 9, 20], [0, 7, 19]], VALUES[[3, 9, 20], [0, 7, 19]])
    assert not opened


def test_blocks_that_overlap_decode_each_chunk_once(decodes):
    z = zarrdask.create_array({}, shape=SHAPE, dtype="i4", chunks=(8, 5))
    z[...] = VALUES
    decodes.clear()
    x = zarrdask.from_zarr(z, chunks="stored", depth=2, boundary="periodic")
    x.compute(scheduler="sync")
    assert decodes["chunks"] == 12
    assert zarrdask.plan_read(x).arrays[0].decodes == 9 * 12


def test_without_the_setting_nothing_is_cached(setting, decodes):
    setting({"zarrdask.cache-size": 0})
    z = zarrdask.create_array({}, shape=SHAPE, dtype="i4", chunks=(8, 5))
    z[...] = VALUES
    for _ in range(2):
        decodes.clear()
        np.testing.assert_array_equal(z[3], VALUES[3])
        assert decodes["chunks"] == 4
    assert CHUNKS.nbytes == 0


def test_chunks_of_unknown_size_are_not_cached():
    for values in (np.array(["a", "bc"], object), np.array(["a", "bc"], np.dtypes.StringDType())):
        z = zarrdask.create_array({}, shape=2, dtype=values.dtype, chunks=2)
        z[...] = values
        assert list(z[...]) == ["a", "bc"]
    assert CHUNKS.nbytes == 0


@pytest.mark.parametrize("name", ["disk", "memory", "far"])
def test_a_change_of_what_was_read_changes_nothing_else(name, tmp_path):
    place = places(tmp_path)[name]
    zarrdask.create_array(place, shape=SHAPE, dtype="i4", chunks=SHAPE)[...] = VALUES
    z = opened(place, name)
    for _ in range(3):
        whole, row = z[...], z[2]
        np.testing.assert_array_equal(whole, VALUES)
        whole[...] = row[...] = 0


@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_arrays_of_one_store_have_cached_chunks_of_their_own(layout, tmp_path, decodes):
    for number, name in enumerate("ab"):
        z = zarrdask.create_array(tmp_path / "g", name, shape=SHAPE, dtype="i4", **LAYOUTS[layout])
        z[...] = VALUES + number
    decodes.clear()
    arrays = [zarrdask.open_array(tmp_path / "g", name) for name in "ab"]
    for _ in range(2):
        for number, z in enumerate(arrays):
            np.testing.assert_array_equal(z[...], VALUES + number)
    assert decodes["chunks"] == 2 * arrays[0].nchunks


def test_shards_of_several_lengths_are_cached(tmp_path, decodes):
    place, lengths = tmp_path / "a.zarr", ((8, 16), (10, 10))
    z = zarrdask.create_array(place, shape=SHAPE, dtype="i4", chunks=(4, 5), shards=lengths)
    z[...] = VALUES
    decodes.clear()
    z = zarrdask.open_array(place)
    for _ in range(2):
        np.testing.assert_array_equal(z[...], VALUES)
    assert decodes["chunks"] == z.nchunks


def test_an_array_of_other_codecs_in_the_same_place_is_decoded_anew(tmp_path):
    values = {}
    for endian in ("little", "big"):
        codec = {"name": "bytes", "configuration": {"endian": endian}}
        z = zarrdask.create_array(tmp_path / endian, shape=8, dtype="i4", chunks=8, codecs=[codec])
        z[...] = np.arange(8)
        values[endian] = (tmp_path / endian / "zarr.json").read_bytes()
    place = tmp_path / "little"
    assert list(zarrdask.open_array(place)[:3]) == [0, 1, 2]
    (place / "zarr.json").write_bytes(values["big"])
    assert list(zarrdask.open_array(place)[:3]) == [0, 2**24, 2**25]


@st.composite
def windows(draw):
    bounds = [sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in SHAPE]
    return tuple(slice(*pair, draw(st.integers(1, 3))) for pair in bounds)


@given(st.data(), st.sampled_from(["chunks", "shards", "rectilinear"]))
def test_no_change_between_reads_goes_unnoticed(tmp_path_factory, data, layout):
    name = data.draw(st.sampled_from(["disk", "memory", "far"]))
    place = places(tmp_path_factory.mktemp("a"))[name]
    writer = zarrdask.create_array(place, shape=SHAPE, dtype="i4", fill_value=-1, **LAYOUTS[layout])
    writer[...] = VALUES
    z, expected = opened(place, name), VALUES.copy()
    for turn in range(data.draw(st.integers(1, 5))):
        part = data.draw(windows())
        np.testing.assert_array_equal(z[part], expected[part])
        part = data.draw(windows())
        expected[part] = writer[part] = data.draw(st.sampled_from([-1, -2 - turn]))
    np.testing.assert_array_equal(z[...], expected)


def test_a_chunk_that_was_just_written_is_not_cached(tmp_path, monkeypatch, decodes):
    """A further write within the same step of the file system's clock might go unnoticed."""
    z = zarrdask.create_array(tmp_path / "a.zarr", shape=SHAPE, dtype="i4", chunks=SHAPE)
    z[...] = VALUES
    monkeypatch.setattr(open_file, "CLOCK_NS", 10**15)
    for number in range(1, 3):
        np.testing.assert_array_equal(z[3], VALUES[3])
        assert decodes["chunks"] == number
    # Times in whole seconds are those of a coarse clock, which advances later.
    monkeypatch.setattr(open_file, "CLOCK_NS", 0)
    chunk = tmp_path / "a.zarr" / "c" / "0" / "0"
    status = os.stat(chunk)
    coarse = os.stat_result((*status[:10],), {"st_mtime_ns": 10**9, "st_ctime_ns": 2 * 10**9})
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda _: coarse)
        patched.setattr(open_file.time, "time_ns", lambda: 4 * 10**9)
        assert open_file.settled_version(0) is None
        patched.setattr(open_file.time, "time_ns", lambda: 5 * 10**9)
        assert open_file.settled_version(0) is not None


#: Writes numbers to all elements, one after another, each after it has announced it.
WRITER = """
import sys, numpy as np, zarrdask
place, trials = sys.argv[1], int(sys.argv[2])
z = zarrdask.open_array(place, mode="r+")
for number in range(1, trials + 1):
    z[:4, 1] = number
    print(number, flush=True)
    sys.stdin.readline()
"""


def _no_stale_value(tmp_path, layout, trials):
    random = Random(0)
    place = tmp_path / "a.zarr"
    zarrdask.create_array(place, shape=SHAPE, dtype="i4", **LAYOUTS[layout])[...] = VALUES
    z = zarrdask.open_array(place)
    with running(WRITER, place, trials) as writer:
        held = 0
        for number in range(1, trials + 1):
            assert int(writer.stdout.readline()) == number
            time.sleep(random.uniform(0.005, 0.02) if number % 4 == 0 else 0)
            values = z[:6, 1]
            assert list(values) == [number] * 4 + list(VALUES[4:6, 1])
            assert z[2, 1] == number
            held += CHUNKS.nbytes > 0
            writer.tell()
    assert held > trials / 20, "hardly any chunk was cached"


@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_what_another_process_wrote_is_read(tmp_path, monkeypatch, layout):
    monkeypatch.setattr(open_file, "CLOCK_NS", 10**7)
    _no_stale_value(tmp_path, layout, 40)


@pytest.mark.stress
@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_what_another_process_wrote_is_read_each_time(tmp_path, monkeypatch, layout):
    monkeypatch.setattr(open_file, "CLOCK_NS", 10**7)
    _no_stale_value(tmp_path, layout, 500)
