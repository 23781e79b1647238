"""Batches of windows: every sample once, each chunk decoded as often as planned, the same again."""

import json
import pickle
from itertools import product

import numpy as np
import pytest

import zarrdask
from tests.arrays.samples.random_cases import random_array
from tests.counting import CountingStore
from tests.covering import for_each, seeds
from tests.storage.latency import LatencyStore
from zarrdask.errors import NodeTypeError, SelectionError, UnsupportedError
from zarrdask.storage.memory import MemoryStore


def numbered(shape=(60, 4), chunks=(5, 4), store=None, **options):
    """An array whose elements are their own index on the first axis."""
    store = {} if store is None else store
    z = zarrdask.create_array(store, shape=shape, dtype="i4", chunks=chunks, **options)
    z[...] = np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    return z


def firsts(batches):
    return [int(sample.flat[0]) for batch in batches for sample in batch]


def windows(values, lengths, strides):
    """Return all windows along the first axes of an ndarray."""
    counts = [
        range(0, size - length + 1, stride)
        for size, length, stride in zip(values.shape, lengths, strides, strict=False)
    ]
    return [
        values[tuple(slice(n, n + k) for n, k in zip(start, lengths, strict=True))]
        for start in product(*counts)
    ]


def check_random_case(seed):
    """Check that batches have all windows of a random array, each once."""
    rng = np.random.default_rng(seed)
    z, values = random_array(rng, min_dims=1)
    ndim = int(rng.integers(1, z.ndim + 1))
    lengths = tuple(int(rng.integers(1, n + 1)) for n in z.shape[:ndim])
    strides = tuple(int(rng.integers(1, 5)) for _ in lengths)
    shuffle = [True, False, "full", 3][rng.integers(4)]
    options = {"window": lengths, "stride": strides, "shuffle": shuffle, "seed": seed}
    options |= {"batch": int(rng.integers(1, 6)), "memory": int(rng.integers(1, 4000))}
    world_size = int(rng.integers(1, 4))
    found = []
    for rank in range(world_size):
        loader = zarrdask.batches(z, rank=rank, world_size=world_size, **options)
        own = [sample for batch in loader for sample in batch]
        assert loader.samples == len(own)
        found += own
    expected = windows(values, lengths, strides)
    if shuffle is False:
        np.testing.assert_array_equal(found, expected)
    assert sorted(sample.tobytes() for sample in found) == sorted(w.tobytes() for w in expected)
    assert {sample.shape for sample in found} == {sample.shape for sample in expected}


@pytest.mark.parametrize("seed", seeds(50))
def test_batches_have_all_windows_of_random_arrays(seed):
    check_random_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 1050, 100))
def test_batches_have_all_windows_of_many_random_arrays(first):
    for seed in range(first, first + 100):
        check_random_case(seed)


@for_each("memory", ["2 KiB", "500 B", 0])
def test_each_chunk_is_decoded_as_often_as_planned(memory):
    store = CountingStore(MemoryStore())
    z = numbered(store=store)
    loader = zarrdask.batches(z, batch=4, memory=memory)
    for _ in range(2):
        planned, store.reads = loader.decodes, store.reads.__class__()
        assert sorted(firsts(loader)) == [*range(60)]
        assert store.reads.total() == planned
    assert loader.chunks == 12
    if memory:
        assert loader.decodes == 12


def test_windows_across_chunks_decode_few_of_them_twice():
    store = CountingStore(MemoryStore())
    z = numbered((2000, 8), (10, 8), store)
    loader = zarrdask.batches(z, window=8, stride=3, batch=2, memory=z.nbytes // 20)
    planned = loader.decodes
    store.reads.clear()
    assert sorted(firsts(loader)) == [*range(0, 1993, 3)]
    assert store.reads.total() == planned <= 1.2 * 200
    assert loader.peak <= z.nbytes // 20


def test_chunks_in_shards_are_read_alone():
    z = numbered((64, 4), (4, 4), shards=(32, 4))
    loader = zarrdask.batches(z, batch=8, memory="1 KiB")
    assert loader.chunks == loader.decodes == 16
    assert sorted(firsts(loader)) == [*range(64)]


def test_several_arrays_stay_aligned():
    x = numbered((40, 6, 6), (8, 3, 6), dimension_names=("t", "y", "x"))
    y = numbered((40,), (7,), dimension_names=("t",))
    for window in (5, (5, 4, 3), {"t": 5, "x": 2}):
        for batch in zarrdask.batches({"x": x, "y": y}, window=window, stride=2, batch=3):
            np.testing.assert_array_equal(batch["x"][:, :, 0, 0], batch["y"])
    assert zarrdask.batches({"x": x, "y": y}, batch=3).shapes == {"x": (3, 6, 6), "y": (3,)}


def test_arrays_of_a_group():
    group = zarrdask.create_group({})
    group.create_array("x", shape=(6, 2), dtype="i4")[...] = 3
    group.create_array("y", shape=(6,), dtype="i4")[...] = 4
    (batch,) = zarrdask.batches(group, batch=6)
    assert (batch["x"].sum(), batch["y"].sum()) == (36, 24)


def test_an_epoch_is_the_same_for_the_same_seed():
    z = numbered()
    loader, same = (zarrdask.batches(z, batch=7, memory="1 KiB", seed=3) for _ in range(2))
    epochs = [firsts(loader) for _ in range(3)]
    assert epochs == [firsts(same) for _ in range(3)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    loader.epoch = 1
    assert firsts(loader) == epochs[1]
    assert firsts(zarrdask.batches(z, batch=7, memory="1 KiB", seed=4)) != epochs[0]


@for_each("store", [MemoryStore, lambda: LatencyStore(seconds=0)])
@for_each("stop", [1, 5, 9])
def test_an_epoch_is_resumed_in_the_middle(stop, store):
    z = numbered(store=store())
    options = {"batch": 7, "memory": "1 KiB", "seed": 3}
    expected = firsts(zarrdask.batches(z, **options))
    loader = zarrdask.batches(z, **options)
    begun = []
    for batch in loader:
        begun += firsts([batch])
        if len(begun) >= 7 * stop:
            break
    state = json.loads(json.dumps(loader.state_dict()))
    other = zarrdask.batches(z, **options)
    other.load_state_dict(state)
    assert begun + (firsts(other) if stop < 9 else []) == expected
    assert other.epoch == 1
    with pytest.raises(SelectionError, match="seed"):
        zarrdask.batches(z, batch=7, memory="1 KiB", seed=4).load_state_dict(state)
    with pytest.raises(SelectionError, match="next"):
        other.load_state_dict(state | {"next": 99})
    with pytest.raises(SelectionError, match="state_dict"):
        other.load_state_dict("state")


def test_an_iteration_that_is_not_finished_begins_anew():
    loader = zarrdask.batches(numbered(), batch=7, seed=3)
    first = next(iter(loader))
    np.testing.assert_array_equal(next(iter(loader)), first)
    assert loader.epoch == 0


def test_batches_are_read_into_memory():
    z = numbered((10, 3), (4, 3))
    out = np.empty((4, 3), "i4")
    loader = zarrdask.batches(z, batch=4, out=out, shuffle=False)
    found = [(batch.base is out or batch is out, batch[:, 0].tolist()) for batch in loader]
    assert found == [(True, [0, 1, 2, 3]), (True, [4, 5, 6, 7]), (True, [8, 9])]
    for wrong, found in (
        (np.empty((4, 2), "i4"), r"\(4, 2\)"),
        (np.empty((4, 3), "f4"), "float32"),
        (np.broadcast_to(out[:1], (4, 3)), "read-only"),
        ([1], "list"),
        ({"x": out}, "dict"),
    ):
        with pytest.raises(SelectionError, match=f"out.*{found}"):
            zarrdask.batches(z, batch=4, out=wrong)
    with pytest.raises(SelectionError, match="memory of its own"):
        zarrdask.batches({"x": z}, batch=4, out={"y": out})


def test_ranks_have_as_many_batches_without_a_last_one():
    z = numbered((23, 2), (5, 2))
    loaders = [
        zarrdask.batches(z, batch=3, rank=rank, world_size=4, drop_last=True) for rank in range(4)
    ]
    samples = [firsts(loader) for loader in loaders]
    assert [len(own) for own in samples] == [3] * 4
    assert len({n for own in samples for n in own}) == 12


def test_more_memory_shuffles_from_more_chunks():
    z = numbered((400, 4), (10, 4))
    loaders = [zarrdask.batches(z, batch=8, memory=n) for n in (1000, 3000, 10**6)]
    assert all(loader.decodes == 40 for loader in loaders)
    spreads = [len({n // 10 for n in firsts([next(iter(loader))])}) for loader in loaders]
    assert spreads[0] < spreads[2]


def test_the_plan_is_printed_before_anything_is_read():
    store = CountingStore(MemoryStore())
    z = numbered(store=store)
    store.reads.clear()
    loader = zarrdask.batches({"x": z}, batch=7, memory="1 KiB", rank=1, world_size=2)
    text = str(loader)
    for part in ("(4,) int32", "30 samples in 5 batches of 7, rank 1 of 2", "times each", "1 KiB"):
        assert part in text
    assert repr(loader) == "<zarrdask.Batches 30 samples in 5 batches>"
    assert "shuffle  no" in str(zarrdask.batches(z, batch=60, shuffle=False))
    assert not store.reads


def test_the_plan_says_when_two_batches_alone_exceed_the_memory():
    z = numbered()
    loader = zarrdask.batches(z, batch=30, memory=500)
    assert loader.peak == 2 * 30 * 16
    text = " ".join(str(loader).split())
    assert "exceed it, so that no chunk is kept" in text
    assert "memory of at least 960 B" in text
    loader = zarrdask.batches(z, batch=30, memory=960)
    assert loader.peak == 960
    assert "exceed" not in str(loader)


def test_batches_are_pickled():
    loader = pickle.loads(pickle.dumps(zarrdask.batches(numbered(store=None), batch=9, seed=1)))
    assert loader.samples == 60


def test_errors_name_the_argument():
    z = numbered(dimension_names=("t", "x"))
    other = zarrdask.create_array({}, shape=(7,), dtype="i4")
    for options, key in [
        ({"batch": 0}, "batch"),
        ({"window": 61}, "window"),
        ({"window": "t"}, "window"),
        ({"window": {"y": 2}}, "window"),
        ({"window": 0}, "window"),
        ({"window": {}}, "window"),
        ({"window": 2, "stride": {"x": 2}}, "stride"),
        ({"shuffle": -2}, "shuffle.*'full'"),
        ({"drop_last": "no"}, "drop_last"),
        ({"seed": -1}, "seed"),
        ({"rank": 2, "world_size": 2}, "rank"),
    ]:
        with pytest.raises(SelectionError, match=key):
            zarrdask.batches(z, **{"batch": 4} | options)
    with pytest.raises(SelectionError, match="differ in their lengths"):
        zarrdask.batches({"a": z, "b": other}, batch=4)
    with pytest.raises(SelectionError, match="no arrays"):
        zarrdask.batches({}, batch=4)
    with pytest.raises(NodeTypeError):
        zarrdask.batches([z], batch=4)
    with pytest.raises(UnsupportedError, match="read_many"):
        zarrdask.batches(z, batch=4)[0]


def test_a_damaged_chunk_is_an_error_that_names_it():
    store = MemoryStore()
    numbered(store=store, compressors="zstd")
    store.set("c/3/0", b"damaged")
    with pytest.raises(zarrdask.ZarrdaskError, match="c/3/0"):
        firsts(zarrdask.batches(zarrdask.open_array(store), batch=9))


def test_an_array_without_the_axis_has_the_same_elements_in_all_windows():
    arrays = {}
    for name, dims, shape in (("a", ("t", "x"), (10, 4)), ("c", ("x",), (4,))):
        array = zarrdask.create_array({}, shape=shape, dtype="i4", chunks=2, dimension_names=dims)
        array[...] = np.arange(array.size).reshape(shape)
        arrays[name] = array
    batches = [*zarrdask.batches(arrays, window={"t": 2}, batch=2, shuffle=False)]
    values = np.concatenate([batch["a"] for batch in batches])
    np.testing.assert_array_equal(values, np.arange(40).reshape(5, 2, 4))
    for batch in batches:
        np.testing.assert_array_equal(batch["c"], [np.arange(4)] * len(batch["a"]))
