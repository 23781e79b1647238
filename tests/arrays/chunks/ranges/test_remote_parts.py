"""Parts of large chunks in remote stores: as few bytes as pay, of one version, as NumPy selects."""

import dask
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zarrdask
from tests import selections
from tests.arrays.chunks.remote import (
    CHUNKS,
    LAYOUTS,
    NOISE,
    SHAPE,
    VALUES,
    Remote,
    blosc,
    patch_sizes,
    stored,
)
from tests.covering import for_each
from tests.storage.latency import FarStore
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES
from zarrdask.arrays.chunks.read import read_regions
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import CodecError
from zarrdask.formats.byte_ranges import Part
from zarrdask.runtime import in_flight
from zarrdask.storage.cache.cache_directory import CacheDirectory
from zarrdask.storage.cache.disk_cache import DiskCachedStore
from zarrdask.storage.memory import MemoryStore


class WithoutRanges(Remote):
    """A server that answers each request for a range by the whole value."""

    def get_part(self, key, start, length, tag=None):
        part = super().get_part(key, 0, 2**30, tag)
        return part and Part(part.value, len(part.value), part.tag)


@pytest.fixture(autouse=True)
def small_chunks_in_parts(monkeypatch):
    with patch_sizes(monkeypatch):
        yield


def chunk_of(values, **options):
    store = Remote()
    stored(store, values, **options)
    return store.inner.values["c/0/0/0"]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """Arrays by the properties of their chunks and the kind of their store."""
    made = {}

    def get(name, kind):
        if (name, kind) not in made:
            store = kind() if kind is not None else tmp_path_factory.mktemp("array")
            z = zarrdask.create_array(
                store, shape=SHAPE, chunks=CHUNKS, dtype="f4", **LAYOUTS[name]
            )
            z[...] = VALUES
            made[name, kind] = z
        return made[name, kind]

    return get


picks = selections.basic(SHAPE, newaxis=False)
narrow = st.tuples(*(st.integers(0, n - 1).map(lambda a: slice(a, a + 2)) for n in SHAPE))
positions = st.tuples(*(st.lists(st.integers(0, n - 1), min_size=1, max_size=3) for n in SHAPE))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Remote, WithoutRanges, FarStore, MemoryStore, None])
@pytest.mark.parametrize("name", LAYOUTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(index=st.one_of(picks, narrow), rows=positions)
def test_every_selection_is_that_of_numpy(arrays, name, kind, index, rows):
    z = arrays(name, kind)
    np.testing.assert_array_equal(z[index], VALUES[index])
    np.testing.assert_array_equal(z.oindex[rows], VALUES[np.ix_(*rows)])
    points = tuple(np.resize(each, 3) for each in rows)
    np.testing.assert_array_equal(z.vindex[points], VALUES[points])


def sent(store, read):
    """Return what is read, the number of requests and of rounds, and the bytes."""
    store.clear()
    values = read()
    return values, len(store.calls), store.rounds, store.fetched


def test_rows_of_uncompressed_chunks_take_one_round():
    store = Remote(seconds=0.05)
    z = stored(store, compressors=[])
    values, requests, rounds, size = sent(store, lambda: z[3:60, 4:7, 10])
    np.testing.assert_array_equal(values, VALUES[3:60, 4:7, 10])
    # 45 rows of one chunk, and 12 of another, each of 10 + 2 * 40 elements before and between.
    assert (requests, size) == (45 + 12, (45 + 12) * (2 * 40 + 1) * 4)
    assert rounds <= 2


def test_ranges_that_are_near_each_other_are_one_request():
    store = Remote()
    z = stored(store, compressors=[])
    with dask.config.set({"zarrdask.coalesce-gap": 8000}):
        values, requests, _, size = sent(store, lambda: z[0:48:12, 4, 10])
    np.testing.assert_array_equal(values, VALUES[0:48:12, 4, 10])
    assert (requests, size) == (4, 16)
    with dask.config.set({"zarrdask.coalesce-gap": 2**20}):
        assert sent(store, lambda: z[0:48:12, 4, 10])[1] == 1


def test_blocks_of_compressed_chunks_take_two_rounds_and_then_one():
    store = Remote()
    z = stored(store, compressors=[blosc()])
    chunk = len(store.inner.values["c/0/0/0"])
    values, requests, rounds, size = sent(store, lambda: z[20, 4, 10:14])
    np.testing.assert_array_equal(values, VALUES[20, 4, 10:14])
    assert (requests, rounds) == (2, 2)
    assert size < chunk / 4
    values, requests, rounds, again = sent(store, lambda: z[40, 4, 10:14])
    np.testing.assert_array_equal(values, VALUES[40, 4, 10:14])
    assert (requests, rounds) == (1, 1)
    assert again <= size - 2**12


def test_the_first_bytes_suffice_for_a_small_chunk_and_for_its_first_block():
    store = Remote()
    z = stored(store, np.zeros_like(VALUES), compressors=[blosc()])
    z[...] = 1
    assert sent(store, lambda: z[20, 4, 10:14])[1] == 1
    z[...] = np.zeros_like(VALUES)
    z[40:] = NOISE[40:]
    values, requests, _, _ = sent(store, lambda: z[0, 4, 10:14])
    assert (values.tolist(), requests) == ([0.0] * 4, 1)


def test_a_chunk_of_which_most_is_needed_is_one_request():
    store = Remote()
    z = stored(store, compressors=[])
    assert sent(store, lambda: z[:30, :, :40])[1:3] == (1, 1)


def test_whole_chunks_and_parts_are_requested_together():
    store = Remote(seconds=0.05)
    z = stored(store, compressors=[blosc()])
    values, requests, rounds, _ = sent(store, lambda: z[46:, :, 38:])
    np.testing.assert_array_equal(values, VALUES[46:, :, 38:])
    assert rounds <= 3
    assert requests <= 8


def test_missing_chunks_are_the_fill_value():
    for compressors in ([], [blosc()]):
        store = Remote()
        options = {"shape": SHAPE, "chunks": CHUNKS, "dtype": "f4", "fill_value": 7}
        z = zarrdask.create_array(store, compressors=compressors, **options)
        assert (z[3, 4] == 7).all()
        assert (z[3:9, 4:5, 0] == 7).all()


def test_without_etags_chunks_are_read_whole():
    for compressors in ([], [blosc()]):
        store = Remote()
        z = stored(store, compressors=compressors)
        store.has_tags = False
        np.testing.assert_array_equal(z[3:9, 4:7, 10], VALUES[3:9, 4:7, 10])
        assert [call for call in store.calls if call == "get" or call == "get_range"]


@pytest.mark.slow
@for_each("codec", [None, blosc(), blosc(clevel=0)])
@for_each("cut_at", [0, 3, 20, 5000, -1, None])
def test_a_value_of_another_length_is_an_error(codec, cut_at):
    store = Remote()
    z = stored(store, compressors=[codec] if codec else [])
    data = store.inner.values["c/0/0/0"]
    store.inner.values["c/0/0/0"] = data + b"0" if cut_at is None else data[:cut_at]
    with pytest.raises(CodecError, match="c/0/0/0"):
        z[3, 4, 5:7]


@pytest.mark.parametrize("is_erased", [False, True])
@pytest.mark.parametrize("name", ["raw", pytest.param("zstd", marks=pytest.mark.slow)])
def test_a_chunk_that_is_replaced_between_requests_is_of_one_version(name, is_erased):
    """Another writer replaces the chunk after each of the requests for its parts, in turn."""
    index = np.s_[0:48:12, 4, 10:14]
    store = Remote()
    z = stored(store, VALUES, **LAYOUTS[name])
    sent(store, lambda: z[index])
    count = len(store.ranges)
    assert count >= 3
    other = chunk_of(NOISE, **LAYOUTS[name])
    after = np.zeros_like(VALUES) if is_erased else NOISE

    def replace():
        store.inner.set("c/0/0/0", other)

    def erase():
        store.inner.erase("c/0/0/0")

    for number in range(1, count + 1):
        for is_known in (False, True):
            z[...] = VALUES
            INDEXES.clear()
            if is_known:
                z[index]
            store.then = erase if is_erased else replace
            store.clear()
            store.number = number
            found = z[index]
            store.number = -1
            assert any(np.array_equal(found, each[index]) for each in (VALUES, after))
            np.testing.assert_array_equal(z[index], after[index])


def test_a_cached_head_of_a_chunk_that_was_replaced_is_not_used():
    store = Remote()
    z = stored(store, compressors=[blosc()])
    z[20, 4, 10:14]
    z[...] = NOISE
    np.testing.assert_array_equal(z[20, 4, 10:14], NOISE[20, 4, 10:14])
    np.testing.assert_array_equal(z[21, 4, 10:14], NOISE[21, 4, 10:14])


def test_large_chunks_are_read_in_ranges_where_all_is_needed():
    for compressors in ([], [blosc()]):
        store = Remote()
        z = stored(store, compressors=compressors)
        with dask.config.set({"zarrdask.range-size": 2**14}):
            np.testing.assert_array_equal(z[46:, :, 38:], VALUES[46:, :, 38:])
            np.testing.assert_array_equal(z[3, 4], VALUES[3, 4])
            np.testing.assert_array_equal(z[:48, 4:9], VALUES[:48, 4:9])


def test_blocks_that_are_read_ahead_take_parts_of_chunks():
    store = Remote()
    x = zarrdask.from_zarr(stored(store, compressors=[]), chunks=(35, 50, 60))
    found, _, _, size = sent(store, lambda: x[:, 7, 9].sum().compute(scheduler="sync"))
    assert found == VALUES[:, 7, 9].sum()
    assert size < VALUES.nbytes / 4


def test_a_chunk_in_the_cache_on_the_local_disk_serves_its_parts(tmp_path):
    store = Remote()
    stored(store, compressors=[])
    cache = CacheDirectory.below(str(tmp_path), 2**24)
    z = zarrdask.open_array(DiskCachedStore(store, cache))
    np.testing.assert_array_equal(z[3:9, 4, 10], VALUES[3:9, 4, 10])
    offline = zarrdask.open_array(DiskCachedStore(store, cache, offline=True))
    np.testing.assert_array_equal(offline[20, 7:9, 10:30], VALUES[20, 7:9, 10:30])


class Damaging(Remote):
    """A store that damages one of the parts on the way."""

    def get_part(self, key, start, length, tag=None):
        part = super().get_part(key, start, length, tag)
        if len(self.ranges) == self.number:
            return part._replace(value=bytes(len(part.value)))
        return part


@pytest.mark.parametrize("number", [1, 2])
def test_a_part_that_is_damaged_on_the_way_is_read_again_with_all_of_the_chunk(number):
    store = Damaging()
    z = stored(store, compressors=[blosc()])
    store.number = number
    np.testing.assert_array_equal(z[20, 4, 10:14], VALUES[20, 4, 10:14])
    np.testing.assert_array_equal(z[21, 4, 10:14], VALUES[21, 4, 10:14])


@pytest.mark.slow
def test_few_chunks_are_held_while_others_are_requested(monkeypatch):
    monkeypatch.setattr(in_flight, "MAX_BYTES_IN_FLIGHT", 2**15)
    store = Remote()
    z = stored(store, np.ones((300, 200, 200), "f4"), (1, 200, 200), compressors=[blosc()])
    store.clear()
    regions = [(slice(i, i + 1, 1), slice(3, 5, 1), slice(3, 5, 1)) for i in range(300)]
    counts = [len(store.calls) for _ in read_regions(chunks_of(z), regions)]
    # Each of these chunks is as small as its first bytes.
    assert counts[0] < 200
    assert counts[-1] == 300
