"""Many regions in one call: the elements, each chunk once, the memory for the result."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests import selections
from tests.counting import CountingStore
from tests.covering import for_each
from tests.documents import named, sharding
from tests.storage.latency import LatencyStore
from zarrdask.errors import CodecError, NodeTypeError, SelectionError

VALUES = np.arange(24 * 20, dtype="i4").reshape(24, 20)
REGIONS = [(slice(0, 7), slice(3, 9)), (slice(2, 7), slice(3, 20)), (5, slice(None, None, -2)), ...]


def array(store=None, **options):
    options = {"chunks": (4, 5), "fill_value": 7} | options
    store = {} if store is None else store
    z = zarrdask.create_array(store, shape=VALUES.shape, dtype="i4", **options)
    z[:20] = VALUES[:20]
    return z


def check(z, regions, found):
    expected = [z[region] for region in regions]
    assert [block.shape for block in found] == [np.shape(values) for values in expected]
    for block, values in zip(found, expected, strict=True):
        np.testing.assert_array_equal(block, values)


@given(st.data())
def test_many_regions_are_what_each_region_is(data):
    z, _ = data.draw(selections.stored_arrays())
    regions = data.draw(st.lists(selections.basic(z.shape), max_size=4))
    check(z, regions, z.read_many(regions))


@for_each(
    "options",
    [
        {},
        {"shards": (8, 20)},
        {"zarr_format": 2, "order": "F"},
        {"chunks": (12, 20), "codecs": [sharding((6, 10), [sharding((3, 5))])]},
        {"codecs": [named("transpose", order=[1, 0]), sharding((5, 2))]},
    ],
)
@for_each("store", [dict, lambda: LatencyStore(seconds=0)])
def test_regions_of_each_layout_and_store(options, store):
    z = array(store(), **options)
    check(z, REGIONS, z.read_many(REGIONS))
    check(z, REGIONS * 3, z.read_many(REGIONS * 3))


def test_elements_that_are_objects():
    z = zarrdask.create_array({}, shape=(6,), dtype="string", chunks=(2,), zarr_format=3)
    z[:4] = list("abcd")
    check(z, [slice(0, 3), slice(1, 6), 2], z.read_many([slice(0, 3), slice(1, 6), 2]))


def test_each_chunk_is_read_once():
    store = CountingStore(zarrdask.storage.MemoryStore())
    z = array(store)
    store.clear()
    z.read_many(REGIONS * 5)
    # Where a chunk is missing, the document is looked for, and whether the array is unfinished.
    others = ("zarr.json", ".zarrdask-unfinished")
    reads = {key: count for key, count in store.reads.items() if key not in others}
    assert {*reads.values()} == {1}
    assert len(reads) == z.nchunks


class Together(LatencyStore):
    """A store whose requests are answered when three of them are in flight."""

    barrier = None

    def get_many(self, keys, scratch):
        if self.barrier:
            self.barrier.wait(timeout=30)
        return super().get_many(keys, scratch)


def test_requests_for_all_arrays_are_in_flight_together():
    store = Together(seconds=0)
    root = zarrdask.create_group(store)
    arrays = {name: root.create_array(name, shape=(4,), dtype="i4") for name in "abc"}
    for z in arrays.values():
        z[...] = np.arange(4)
    store.barrier = threading.Barrier(3)
    found = zarrdask.read_many(arrays, [slice(0, 3), slice(2, 4)])
    assert [[block.tolist() for block in found[name]] for name in "abc"] == [
        [[0, 1, 2], [2, 3]]
    ] * 3


def test_the_result_is_read_into_given_memory():
    z = array()
    regions = [(slice(i, i + 3), 4) for i in range(5)]
    out = np.empty((5, 3), "i4")
    assert z.read_many(regions, out) is out
    check(z, regions, out)
    blocks = [np.empty(3, "i4") for _ in regions]
    assert z.read_many(regions, blocks) is blocks
    check(z, regions, blocks)
    scalars = np.empty(2, "i4")
    assert z.read_many([(0, 1), (1, 1)], scalars).tolist() == VALUES[:2, 1].tolist()


@for_each(
    "out, message",
    [
        (np.empty((2, 3), "i4"), "each region requires memory of its own"),
        (np.empty((1, 4), "i4"), r"out\[0\].*\(4,\) of int32.*\(3,\)"),
        (np.empty((1, 3), "f8"), "float64"),
        ([[0, 0, 0]], "list"),
        (np.broadcast_to(np.int32(0), (1, 3)), "writable"),
        (5, "an array for each region"),
    ],
)
def test_memory_that_does_not_fit_is_an_error(out, message):
    with pytest.raises(SelectionError, match=message):
        array().read_many([(slice(0, 3), 0)], out)


@for_each("region", [[0, 1], (0, 0, 0), 24, {"x": 0}])
def test_a_region_that_is_no_region_is_an_error_with_its_number(region):
    with pytest.raises(SelectionError, match=r"regions\[1\]"):
        array().read_many([0, region])


def test_regions_of_several_arrays_may_come_from_an_iterator():
    z = array()
    found = zarrdask.read_many({"a": z, "b": z}, iter([0, 1]))
    assert [len(blocks) for blocks in found.values()] == [2, 2]
    for blocks in found.values():
        check(z, [0, 1], blocks)


def test_what_is_no_regions_is_an_error():
    z = array()
    for read in (z.read_many, lambda regions: zarrdask.read_many({"a": z}, regions)):
        with pytest.raises(SelectionError, match=r"regions: .*an index for each region"):
            read(5)


def test_what_is_no_array_is_an_error_with_its_name():
    root = zarrdask.create_group({})
    x = root.create_array("x", shape=(6,), dtype="i4")
    root.create_group("below")
    with pytest.raises(NodeTypeError, match=r"arrays\['below'\].*group\.arrays\(\)"):
        zarrdask.read_many(root, [0])
    assert zarrdask.read_many(dict(root.arrays()), [0])["x"] == [0]
    assert zarrdask.read_many(x, [0]) == [0]
    for arrays in ([x], "a.zarr"):
        with pytest.raises(NodeTypeError, match="a mapping of names to arrays"):
            zarrdask.read_many(arrays, [0])


@for_each("out", [{"a": np.empty((1, 20), "i4")}, np.empty((1, 20), "i4"), [1]])
def test_each_array_requires_memory(out):
    with pytest.raises(SelectionError, match=r"out: .*\['a', 'b'\]"):
        zarrdask.read_many({"a": array(), "b": array()}, [0], out)


def test_memory_that_does_not_fit_is_an_error_with_the_name_of_the_array():
    out = {"a": np.empty((1, 20), "i4"), "b": np.empty((1, 20), "f8")}
    with pytest.raises(SelectionError, match=r"b: out\[0\]"):
        zarrdask.read_many({"a": array(), "b": array()}, [0], out)


def test_a_damaged_chunk_is_an_error_with_its_key():
    values = {}
    z = array(values, compressors="gzip")
    values["c/0/1"] = b"damaged"
    with pytest.raises(CodecError, match="c/0/1"):
        z.read_many(REGIONS)


def test_regions_by_names_take_the_axes_that_an_array_has():
    root = zarrdask.create_group({})
    x = root.create_array("x", shape=(6, 4), dtype="i4", dimension_names=("t", "c"))
    y = root.create_array("y", shape=(6,), dtype="i4", dimension_names=("t",))
    x[...], y[...] = np.arange(24).reshape(6, 4), np.arange(6)
    found = zarrdask.read_many(root, [{"t": 2, "c": slice(1, 3)}, {"t": slice(0, 2)}])
    assert [block.tolist() for block in found["x"]] == [[9, 10], [[0, 1, 2, 3], [4, 5, 6, 7]]]
    assert [block.tolist() for block in found["y"]] == [2, [0, 1]]
    with pytest.raises(SelectionError, match="'depth'"):
        zarrdask.read_many({"x": x, "y": y}, [{"depth": 0}])


def test_no_regions_and_no_arrays():
    assert array().read_many([]) == []
    assert zarrdask.read_many({}, [0]) == {}


def _sums(z):
    return [int(block.sum()) for block in z.read_many(REGIONS)]


def test_a_forked_process_reads_many_regions_after_its_parent(tmp_path):
    z = array(tmp_path, shards=(8, 10))
    expected = _sums(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(_sums, [z, z]) == [expected, expected]


def test_a_group_has_the_method_of_an_array():
    group = zarrdask.create_group({})
    for number, name in enumerate("ab"):
        group.create_array(name, shape=4, dtype="i4")[...] = number
    read = group.read_many([slice(2), 3])
    assert {name: [part.tolist() for part in parts] for name, parts in read.items()} == {
        "a": [[0, 0], 0],
        "b": [[1, 1], 1],
    }
    memory = {name: np.empty((1, 4), "i4") for name in "ab"}
    assert group.read_many([...], memory)["b"] is memory["b"]
