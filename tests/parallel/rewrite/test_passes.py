"""The tasks of a rewrite, one by one: what they read, where it goes, in which parts."""

import gc
import pickle
import threading
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.axes import axis_of
from tests.covering import for_each
from tests.storage.faults import Faults, FaultyStore
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import CodecError, StoreError
from zarrdask.formats.indexing.regions import moved, slabs, tiles, within
from zarrdask.formats.indexing.selection import region_shape
from zarrdask.parallel.execution.workspace import release
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.parallel.plan.strategies import Costs, Stage
from zarrdask.parallel.rewrite.passes import ArrayTiles, PackedRegions, Pass
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(1, 12 * 10 + 1, dtype="i4").reshape(12, 10)


def cutting(*axes):
    """Return regions of (length, size) along each axis."""
    return Cutting.of([axis_of(*axis) for axis in axes])


def stage(regions, threads=1, slab=99, at_once=1, moves=None):
    """Return a stage whose tasks read this many bytes at a time."""
    costs = Costs(8 * slab * at_once, at_once=at_once)
    return Stage(regions, "source", "target", 0, 0, 0, 0, threads, costs, moves)


def work(regions, source, target, dtype, *options):
    """Return a pass; the options are those of `stage`."""
    return Pass(stage(regions, *options), source, target, dtype)


def tiles_from(array, start, **options):
    """Return the tiles of an array from an element on."""
    ends = zip(start, array.shape, strict=True)
    return ArrayTiles(
        ArrayRegion(chunks_of(array), tuple(slice(a, b, 1) for a, b in ends)), **options
    )


def stored(values=VALUES, store=None, start=(0, 0), **options):
    store = MemoryStore() if store is None else store
    options = {"chunks": (3, 4), "compressors": ()} | options
    array = zarrdask.create_array(store, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return tiles_from(array, start, beyond="fill")


def empty(shape=VALUES.shape, dtype="i4", **options):
    """Return an array that nothing was written to."""
    options = {"chunks": (4, 3)} | options
    return zarrdask.create_array(MemoryStore(), shape=shape, dtype=dtype, **options)


def done(do):
    """Do all tasks of a pass, and return what they return."""
    return [do(number) for number in range(do.regions.size)]


# --------------------------------------------------------------------------------------------
# Parts


@st.composite
def cut_axes(draw):
    """An axis: its chunks, a slice of it, and where that begins among the chunks."""
    size = draw(st.integers(1, 30))
    start = draw(st.integers(0, size - 1))
    stop = draw(st.integers(start + 1, size))
    by = draw(st.integers(0, 5))
    if draw(st.booleans()):
        return draw(st.integers(1, 12)), slice(start, stop, 1), by
    inner = draw(st.sets(st.integers(1, size + 9), max_size=6))
    return np.array(sorted({0, *inner, size + 10})), slice(start, stop, 1), by


@given(st.lists(cut_axes(), max_size=3), st.integers(0, 200), st.integers(1, 100))
def test_tiles_are_whole_chunks_and_have_each_element_once(drawn, limit, least):
    axes, region, start = zip(*drawn, strict=True) if drawn else ((), (), ())
    count = np.zeros([pick.stop for pick in region], int)
    for tile in tiles(region, [*map(axis_of, axes)], start, limit, least):
        count[tile] += 1
        chunks = 1
        for axis, pick, whole, by in zip(axes, tile, region, start, strict=True):
            ends = range(0, 100, axis) if isinstance(axis, int) else axis.tolist()
            inner = [end - by for end in ends]
            assert pick.start == whole.start or pick.start in inner
            assert pick.stop == whole.stop or pick.stop in inner
            chunks *= 1 + sum(pick.start < end < pick.stop for end in inner)
        if chunks > 1:
            assert count[tile].size <= limit
            assert chunks * least <= limit
    assert (count[region] == 1).all()
    assert count.sum() == np.prod(region_shape(region))


def test_far_away_chunks_of_which_little_is_wanted_count_as_a_whole():
    region, axes = (slice(0, 8, 1), slice(0, 1, 1)), (axis_of(1), axis_of(100))
    assert len(list(tiles(region, axes, (0, 0), 8))) == 1
    assert len(list(tiles(region, axes, (0, 0), 8, min_chunk_size=100))) == 8
    assert len(list(tiles(region, axes, (0, 0), 400, min_chunk_size=100))) == 2


def test_tiles_join_the_last_axes_first():
    found = list(tiles((slice(0, 4, 1), slice(0, 8, 1)), (axis_of(1), axis_of(2)), (0, 0), 8))
    assert found == [(slice(n, n + 1, 1), slice(0, 8, 1)) for n in range(4)]


@given(st.lists(st.integers(0, 6), max_size=4).map(tuple), st.integers(0, 50))
def test_slabs_lie_one_after_another(shape, limit):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = [numbers[part].ravel() for part in slabs(shape, limit)]
    assert all(part.size <= max(limit, 1) for part in found)
    np.testing.assert_array_equal(np.concatenate([[], *found]), numbers.ravel())


def test_a_region_as_seen_from_elsewhere():
    part = (slice(3, 5, 1), slice(7, 9, 1))
    assert moved(part, (10, 20)) == (slice(13, 15, 1), slice(27, 29, 1))
    assert within(part, (slice(2, 9, 1), slice(7, 12, 1))) == (slice(1, 3, 1), slice(0, 2, 1))


# --------------------------------------------------------------------------------------------
# One pass


@for_each("threads", [1, 3])
@for_each("slab", [1, 50, 10**6])
def test_a_pass_from_chunks_to_chunks(threads, slab):
    target = empty()
    regions = cutting((8, 12), (6, 10))
    do = work(regions, stored(), tiles_from(target, (0, 0)), VALUES.dtype, threads, slab)
    assert done(do) == [4, 4, 2, 2]
    np.testing.assert_array_equal(target[...], VALUES)


def test_a_part_goes_to_another_place():
    target = empty((20, 20))
    source = stored(start=(2, 1))
    do = work(cutting((4, 8), (3, 6)), source, tiles_from(target, (4, 9)), VALUES.dtype, 1, 99)
    done(do)
    expected = np.zeros((20, 20), "i4")
    expected[4:12, 9:15] = VALUES[2:10, 1:7]
    np.testing.assert_array_equal(target[...], expected)


def test_values_become_those_of_the_target():
    target = empty(dtype="f8")
    done(
        work(
            cutting((12, 12), (10, 10)),
            stored(),
            tiles_from(target, (0, 0)),
            VALUES.dtype,
            1,
            9,
        )
    )
    np.testing.assert_array_equal(target[...], VALUES.astype("f8"))


@pytest.mark.parametrize("stores", [False, True])
def test_units_of_the_fill_value_are_stored_if_one_asks(stores):
    target = empty()
    source = stored(np.zeros_like(VALUES))
    to = tiles_from(target, (0, 0), empty=stores)
    count = sum(done(work(cutting((12, 12), (10, 10)), source, to, VALUES.dtype, 1, 9)))
    assert count == target.nchunks_stored() == (12 if stores else 0)


def test_an_array_without_axes():
    target = empty((), chunks=())
    source = stored(np.array(7, "i4"), start=(), chunks=())
    done(work(cutting(), source, tiles_from(target, ()), np.dtype("i4"), 1, 9))
    assert target[...] == 7


# --------------------------------------------------------------------------------------------
# Packed


def packed(owners, readers, store=None):
    return PackedRegions(MemoryStore() if store is None else store, "temp/", owners, readers)


@st.composite
def shapes_and_cuts(draw):
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    made = []
    for _ in range(2):
        axes = []
        for size in shape:
            inner = draw(st.sets(st.integers(1, size), max_size=3))
            axes.append(np.array(sorted({0, *inner, size})))
        made.append(Cutting(tuple(axes)))
    return shape, *made


@given(shapes_and_cuts(), st.integers(1, 60), st.integers(1, 3))
def test_what_one_pass_packs_the_next_one_reads(drawn, slab, threads):
    shape, owners, readers = drawn
    values = np.arange(1, np.prod(shape) + 1, dtype="i2").reshape(shape)
    between, zeros = packed(owners, readers), (0,) * len(shape)
    source = stored(values, start=zeros, chunks=2)
    target = empty(shape, "i2", chunks=tuple(map(_lengths, readers.edges)))
    assert set(done(work(owners, source, between, values.dtype, threads, slab))) == {1}
    to = tiles_from(target, zeros)
    done(work(readers, between, to, values.dtype, threads, slab))
    np.testing.assert_array_equal(target[...], values)
    sizes = [len(between.store.get(key)) for key in between.store.list_prefix("temp/")]
    assert sum(sizes) == values.nbytes
    assert len(sizes) == owners.size


def _lengths(edges):
    return tuple(b - a for a, b in pairwise(edges.tolist()))


@given(shapes_and_cuts())
def test_pieces_lie_one_after_another_in_c_order(drawn):
    shape, owners, readers = drawn
    values = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    between = packed(owners, readers)
    done(
        work(owners, stored(values, start=(0,) * len(shape), chunks=3), between, values.dtype, 1, 8)
    )
    for number in range(owners.size):
        pieces = [values[part].ravel() for _, part in readers.overlapping(owners.region(number))]
        data = between.store.get(between.key(owners.index(number)))
        np.testing.assert_array_equal(np.frombuffer(data, "u2"), np.concatenate(pieces))


@for_each("harm", [lambda _: None, lambda data: data[:-1], lambda _: b""])
@for_each("threads", [1, 2])
def test_an_object_that_is_gone_or_cut_off_is_named(harm, threads):
    owners, readers = cutting((6, 12), (10, 10)), cutting((12, 12), (5, 10))
    between = packed(owners, readers)
    done(work(owners, stored(), between, VALUES.dtype, 1, 100))
    key = "temp/1.0"
    data = harm(between.store.get(key))
    between.store.erase(key) if data is None else between.store.set(key, data)
    target = tiles_from(empty(), (0, 0))
    with pytest.raises(StoreError, match="restart=True") as caught:
        done(work(readers, between, target, VALUES.dtype, threads, 100))
    assert caught.value.key == key


def test_one_part_of_an_object_is_requested_at_a_time():
    asked = []

    class Far(FaultyStore):
        def get_ranges(self, key, ranges, scratch):
            asked.extend(length for _, length in ranges)
            return super().get_ranges(key, ranges, scratch)

        def get_range(self, key, start, length):
            asked.append(length)
            return super().get_range(key, start, length)

    between = packed(
        cutting((12, 12), (10, 10)), cutting((12, 12), (5, 10)), Far(MemoryStore(), Faults())
    )
    done(work(between.owners, stored(), between, VALUES.dtype, 1, 1000))
    target = empty()
    done(work(between.readers, between, tiles_from(target, (0, 0)), VALUES.dtype, 1, 40))
    assert len(asked) == 12
    assert max(asked) <= 40
    np.testing.assert_array_equal(target[...], VALUES)


# --------------------------------------------------------------------------------------------
# Moving


@for_each("threads", [1, 4])
@for_each(
    ("before", "after", "way"),
    [
        ({}, {}, "units"),
        ({}, {"shards": (6, 8)}, "inner"),
        ({"shards": (6, 8)}, {}, "inner"),
        ({"shards": (6, 8)}, {"shards": (12, 4)}, "inner"),
    ],
)
def test_encoded_bytes_are_moved(before, after, way, threads):
    source = stored(**before)
    target = empty(**{"chunks": (3, 4), "compressors": ()} | after)
    regions = (
        cutting((6, 12), (8, 10)) if after.get("shards") != (12, 4) else cutting((12, 12), (4, 10))
    )
    do = work(regions, source, tiles_from(target, (0, 0)), VALUES.dtype, threads, 9, 1, way)
    count = sum(done(do))
    assert count == len([*target.store.list_prefix("c/")])
    np.testing.assert_array_equal(target[...], VALUES)


# --------------------------------------------------------------------------------------------
# How tasks are run


def test_no_more_run_at_a_time_than_may():
    running, most, lock = [], [], threading.Lock()

    class Watched(MemoryStore):
        def set(self, key, value):
            with lock:
                running.append(key)
                most.append(len(running))
            event.wait(0.01)
            with lock:
                running.remove(key)
            super().set(key, value)

    event = threading.Event()
    owners = cutting((1, 12), (10, 10))
    between = packed(owners, cutting((12, 12), (10, 10)), Watched())
    do = work(owners, stored(), between, VALUES.dtype, 1, 100, 2)
    threads = [threading.Thread(target=do, args=(n,)) for n in range(owners.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 12
    assert max(most) == 2


def test_an_error_in_a_thread_comes_back():
    source = stored(compressors="gzip")
    source.region.stored.store.set("c/1/1", b"rubbish")
    do = work(
        cutting((12, 12), (10, 10)),
        source,
        tiles_from(empty(), (0, 0)),
        VALUES.dtype,
        3,
        9,
    )
    with pytest.raises(CodecError, match="c/1/1"):
        done(do)


def test_they_pickle(tmp_path):
    source = stored(store=LocalStore(str(tmp_path)))
    regions = cutting((12, 12), (10, 10))
    between = packed(regions, regions, source.region.stored.store)
    do = pickle.loads(pickle.dumps(work(regions, source, between, VALUES.dtype, 1, 100)))
    assert done(do) == [1]
    np.testing.assert_array_equal(
        np.frombuffer(between.store.get("temp/0.0"), "i4"), VALUES.ravel()
    )


def test_memory_is_given_back():
    owners = cutting((1024, 1024), (1024, 1024))
    array = zarrdask.create_array({}, shape=(1024, 1024), dtype="f8", chunks=(64, 1024))
    source = tiles_from(array, (0, 0))
    do = work(owners, source, packed(owners, owners), array.dtype, 1, 100)
    release()
    tracemalloc.start()
    try:
        done(do)
        kept = tracemalloc.get_traced_memory()[0]
        release()
        gc.collect()
        # All that is little beside the region, be it of this test or of another one.
        assert tracemalloc.get_traced_memory()[0] < kept - array.nbytes / 2
    finally:
        tracemalloc.stop()
