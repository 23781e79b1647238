"""from_zarr(skip_missing=True): the same values, and one task for all equal missing blocks."""

from decimal import Decimal
from functools import partial
from itertools import cycle

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from dask._task_spec import DataNode, Task, TaskRef
from dask.array.optimization import optimize
from dask.highlevelgraph import HighLevelGraph

import zarrdask
from tests.axes import axis_of
from tests.covering import for_each
from tests.parallel.graph.counting import CountingStore
from tests.parallel.graph.equal import Equal
from zarrdask.parallel.graph.missing_blocks import blocks_with_data
from zarrdask.storage.base import Store

LAYOUTS = {
    "chunks": {"chunks": (4, 5)},
    "shards": {"chunks": (2, 5), "shards": (4, 10)},
    "uneven": {"chunks": ((3, 9, 1, 7), (5, 10, 7))},
    "v2": {"chunks": (4, 5), "zarr_format": 2},
}


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="sync"):
        yield


def sparse(dtype="f8", fill_value=2, **options):
    """Return a store, and the values: most chunks are missing."""
    store = CountingStore()
    options = options or LAYOUTS["chunks"]
    z = zarrdask.create_array(store, shape=(20, 22), dtype=dtype, fill_value=fill_value, **options)
    z[1, 2] = z[9:11, 12:] = z[19, 21] = 7
    values = z[...]
    store.reads.clear()
    return store, values


CHAINS = {
    "blocks": lambda x: x,
    "chain": lambda x: (x + 1).map_blocks(np.sqrt),
    "mean": lambda x: x.mean(),
    "axis": lambda x: x.sum(axis=1),
    "twice": lambda x: da.where(x > 3, x, 0).max(axis=0),
    "turned": lambda x: x.T + x.sum(axis=1),
    "crossed": lambda x: x[:, :20] @ x.T[:20],
    "shifted": lambda x: x[1:] - x[:-1],
    "rechunked": lambda x: x.rechunk((7, 22)).std(axis=1),
    "numbered": lambda x: x.map_blocks(lambda b, block_id: b + block_id[0], dtype=x.dtype),
    "fancy": lambda x: x[[3, 1, 19], ::-2],
    "cumulative": lambda x: da.cumsum(x, axis=0),
}


@for_each("layout, chunks", zip(LAYOUTS.values(), cycle(["stored", (3, 5)])))
def test_the_values_are_those_without_it(layout, chunks):
    store, values = sparse(**layout)
    x = zarrdask.from_zarr(store, chunks=chunks, skip_missing=True)
    plain = zarrdask.from_zarr(store, chunks=chunks)
    assert x.chunks == plain.chunks
    np.testing.assert_array_equal(x, values)
    # Each chain with one layout.
    for name in list(CHAINS)[list(LAYOUTS.values()).index(layout) :: len(LAYOUTS)]:
        expected, found = dask.compute(CHAINS[name](plain), CHAINS[name](x))
        np.testing.assert_array_equal(found, expected, err_msg=name)


@for_each("index", [np.s_[3:], np.s_[::7, 4], np.s_[::-1, None], np.s_[19, 21]])
def test_slices_and_regions_skip_missing_blocks_too(index):
    store, values = sparse()
    x = zarrdask.from_zarr(store, chunks="stored", skip_missing=True)
    y = zarrdask.from_zarr(store, chunks="stored", skip_missing=True, region=index)
    for part in (x[index], y, cloudpickle.loads(cloudpickle.dumps(x))[index]):
        np.testing.assert_array_equal(part, values[index])


@for_each(
    ("dtype", "fill_value"), [("f4", np.nan), ("U3", "abc"), ("M8[s]", "2000-01-01"), (str, "x")]
)
def test_missing_blocks_have_the_fill_value(dtype, fill_value):
    z = zarrdask.create_array({}, shape=6, dtype=dtype, chunks=2, fill_value=fill_value)
    z[2] = z[3]
    x = zarrdask.from_zarr(z, chunks="stored", skip_missing=True)
    np.testing.assert_array_equal(x.compute(), z[...])
    assert x.compute().dtype == z.dtype


@pytest.mark.parametrize("shape", [(), (0,), (0, 3)])
def test_arrays_without_axes_or_elements(shape):
    z = zarrdask.create_array({}, shape=shape, dtype="i4", fill_value=4)
    x = zarrdask.from_zarr(z, skip_missing=True)
    np.testing.assert_array_equal(x + 1, np.full(shape, 5))


@pytest.mark.parametrize("change", [lambda x: x, lambda x: x.rechunk(8), lambda x: x.T + 1])
def test_a_function_can_not_change_a_block_that_others_share(change):
    def numbered(block, block_id):
        block += block_id[0]
        return block

    z = zarrdask.create_array({}, shape=(16, 16), dtype="f8", chunks=4, fill_value=1)
    x = zarrdask.from_zarr(z, chunks="stored", skip_missing=True)
    blocks = change(x).persist().map_blocks(numbered, dtype="f8", meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="read-only"):
        blocks.compute()
    with pytest.raises(ValueError, match="read-only"):
        x.rechunk(8).map_blocks(numbered, dtype="f8", meta=np.empty((0, 0))).compute()


def test_a_function_can_change_its_block():
    def double(block):
        block *= 2
        return block

    store, values = sparse()
    x = zarrdask.from_zarr(store, chunks="stored", skip_missing=True).rechunk((8, 10))
    doubled = x.map_blocks(double, dtype="f8", meta=np.empty((0, 0)))
    np.testing.assert_array_equal(doubled.compute(), values * 2)


def test_functions_are_called_once_for_missing_blocks_of_a_shape():
    store, values = sparse()
    shapes = []

    def double(block):
        shapes.append((block.shape, block.flags.writeable, block.strides))
        return block * 2

    x = zarrdask.from_zarr(store, chunks="stored", skip_missing=True)
    y = x.map_blocks(double, dtype=x.dtype, meta=np.empty((0, 0)))
    np.testing.assert_array_equal(y, values * 2)
    missing = [(shape, writeable) for shape, writeable, strides in shapes if strides == (0, 0)]
    assert sorted(missing) == [((4, 2), False), ((4, 5), False)]
    assert len(shapes) == len(missing) + 5
    assert store.keys_read() == ["c/0/0", "c/2/2", "c/2/3", "c/2/4", "c/4/4"]


EQUAL = {
    "numbers": (0.0, -0.0, 0, False, np.float32(-0.0), 0j, -0j),
    "days": (np.timedelta64(1, "D"), np.timedelta64(24, "h")),
    "decimals": (Decimal("1.0"), Decimal("1.00")),
    "sets": (frozenset([0.0]), frozenset([-0.0]), frozenset([0])),
    "objects": (Equal(1), Equal(2)),
    "tuples": ((0.0,), (-0.0,), (0,), (False,), (Equal(1),), (Equal(2),)),
    "lists": ([0.0], [-0.0], [[0]], [[False]], [(1,)], [[1]]),
    "dicts": ({"a": 0.0}, {"a": -0.0}, {0: 1}, {False: 1}),
    "slices": (slice(0, 1), slice(False, 1), slice(0, 1.0)),
    "dtypes": (np.dtype("i4"), np.dtype("i4", metadata={"a": 1})),
    "signs": (np.nan, -np.nan, float("nan")),
}


def missing_blocks():
    """Return an array of three missing blocks of the same shape."""
    z = zarrdask.create_array({}, shape=(6,), dtype="f8", chunks=2, fill_value=1)
    return zarrdask.from_zarr(z, skip_missing=True, chunks="stored")


def computed(x, tasks):
    """Compute an array of tasks that need another array, one for each block."""
    graph = HighLevelGraph.from_collections("y", tasks, [x])
    return da.Array(graph, "y", ((2,) * len(tasks),), dtype="f8").compute()


@pytest.mark.parametrize("make", [lambda *task: task, partial(Task, None)], ids=["tuple", "Task"])
@pytest.mark.parametrize("kind", EQUAL)
def test_equal_arguments_that_differ_make_tasks_of_their_own(kind, make):
    x, seen = missing_blocks(), []

    def see(block, value):
        seen.append(value)
        return block

    values = EQUAL[kind] * 2
    tasks = {("y", n): make(see, TaskRef((x.name, 0)), value) for n, value in enumerate(values)}
    np.testing.assert_array_equal(computed(x, tasks), np.ones(2 * len(values)))
    assert {*map(repr, seen)} == {*map(repr, values)}
    assert len(seen) >= len(EQUAL[kind])


def test_arguments_by_name_and_keys_as_values_make_tasks_of_their_own():
    x, seen = missing_blocks(), []

    def see(block, *args, **kwargs):
        seen.append((args, kwargs))
        return block

    block = TaskRef((x.name, 0))
    arguments = [
        (("a", 1), {}),
        ((), {"a": 1}),
        *((((x.name, n),), {}) for n in range(3)),
        *(((DataNode(None, (x.name, n)),), {}) for n in range(3)),
    ]
    tasks = {
        ("y", n): Task(("y", n), see, block, *args, **kwargs)
        for n, (args, kwargs) in enumerate(arguments)
    }
    computed(x, tasks)
    expected = [(("a", 1), {}), ((), {"a": 1}), *((((x.name, n),), {}) for n in range(3))]
    assert all(each in seen for each in expected)


@for_each(
    "argument",
    [
        lambda total: [total],
        lambda total: [[total], 2],
        lambda total: (total, 1),
        lambda total: {"a": [total]},
    ],
)
@pytest.mark.parametrize("finish", [lambda x: x, lambda x: x.sum(), lambda x: x[:3] + 1])
def test_arguments_may_hold_dask_scalars(argument, finish):
    store, _ = sparse()

    def add(block, value):
        while not np.isscalar(value):
            value = value["a"] if isinstance(value, dict) else value[0]
        return block + value

    def total(x):
        return finish(x.map_blocks(add, argument(x.sum()), dtype="f8"))

    x, plain = (zarrdask.from_zarr(store, chunks="stored", skip_missing=m) for m in (True, False))
    np.testing.assert_array_equal(total(x), total(plain))
    target = {}
    zarrdask.to_zarr(da.atleast_1d(total(x)), target)
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], np.atleast_1d(total(plain)))


@for_each(
    ("change", "fill_value"),
    [
        (lambda x: x, 0),
        (lambda x: x + 1, 1),
        (lambda x: x.T, 0),
        (lambda x: np.where(x > 3, x, 0), 0),
    ],
)
def test_missing_blocks_are_not_written(change, fill_value):
    z = zarrdask.create_array({}, shape=(150, 100), dtype="i4", chunks=5)
    z[3, 4] = z[100, 50] = 7
    z[17, 18] = 0
    shapes = []

    def seen(block):
        shapes.append(block.shape)
        return block

    x = change(zarrdask.from_zarr(z, chunks="stored", skip_missing=True))
    y = x.map_blocks(seen, dtype="i4", meta=np.empty((0, 0), "i4"))
    store = {}
    zarrdask.to_zarr(y, store, chunks=5, fill_value=fill_value)
    new = zarrdask.open_array(store, mode="r+")
    np.testing.assert_array_equal(new[...], change(z[...]))
    assert new.nchunks_stored() == 2
    assert len(shapes) < x.npartitions / 10
    # Into an array that has values, all blocks are written.
    new[...] = -1
    zarrdask.to_zarr(y, new)
    np.testing.assert_array_equal(new[...], change(z[...]))


def test_missing_blocks_replace_what_was_stored_meanwhile_or_left():
    x = zarrdask.from_zarr(
        zarrdask.create_array({}, shape=(300,), chunks=1, dtype="i4"),
        chunks="stored",
        skip_missing=True,
    )
    store = {}
    later = zarrdask.to_zarr(x, store, fill_value=0, compute=False)
    array = zarrdask.open_array(store, mode="r+")
    array[...] = 1
    later.compute()
    assert not array[...].any()
    # Chunks without documents are left by a write that was to appear when complete.
    array[...] = 1
    del store["zarr.json"]
    zarrdask.to_zarr(x, store, fill_value=0, commit="last")
    assert not array[...].any()


def test_few_tasks_are_left_of_a_reduction():
    z = zarrdask.create_array({}, shape=(100, 100), dtype="f4", chunks=5)
    z[3, 4] = z[50, 75] = 1
    x = zarrdask.from_zarr(z, chunks="stored", skip_missing=True)
    assert x.npartitions == 400
    (mean,) = dask.optimize(x.mean())
    assert len(mean.dask) < 60
    assert mean.compute() == pytest.approx(2e-4)
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        assert len(dask.optimize(x.mean())[0].dask) < 60
        assert len(dask.optimize(zarrdask.from_zarr(z, chunks="stored").mean())[0].dask) > 400


def test_persisted_blocks_share_memory():
    store, values = sparse()
    kept = zarrdask.from_zarr(store, chunks="stored", skip_missing=True).persist()
    np.testing.assert_array_equal(kept, values)
    blocks = dict(kept.dask)
    assert blocks[kept.name, 0, 1] is blocks[kept.name, 1, 1]


def test_the_name_follows_what_is_stored():
    store, _ = sparse()
    z = zarrdask.open_array(store, mode="r+")
    first = zarrdask.from_zarr(z, skip_missing=True)
    assert zarrdask.from_zarr(z, skip_missing=True).name == first.name
    z[4, 21] = 3
    second = zarrdask.from_zarr(z, skip_missing=True)
    assert second.name != first.name
    assert second[4, 21].compute() == 3


def test_the_optimisation_of_the_user_stays():
    store, values = sparse()
    x = zarrdask.from_zarr(store, skip_missing=True, chunks="stored") + 1
    assert "array_optimize" not in dask.config.config
    for chosen in (
        {"array_optimize": optimize},
        {"array_optimize": False},
        {"zarrdask.fuse": False},
    ):
        with dask.config.set(chosen):
            assert len(dask.optimize(x)[0].dask) >= x.npartitions
            np.testing.assert_array_equal(x, values + 1)


def test_a_store_that_can_not_be_listed_is_an_error():
    class Unlistable(Store):
        url = "unlistable"

        def get(self, key):
            return values.get(key)

    values = {}
    zarrdask.create_array(values, shape=4, dtype="i4")
    with pytest.raises(zarrdask.errors.UnsupportedError, match="listed"):
        zarrdask.from_zarr(Unlistable(), skip_missing=True)


def test_blocks_between_units():
    is_stored = np.array([False, True, False, False])
    # |0 1 2|3 4 5|6 7 8|9 10 11|, and blocks of a region with a step.
    found = blocks_with_data(is_stored, (axis_of(3),), (slice(1, 12, 2),), ((1, 1, 1, 0, 3),))
    assert found.tolist() == [False, True, True, False, False]
    edges = np.array([0, 2, 7, 12])
    found = blocks_with_data(is_stored[:3], (axis_of(edges),), (slice(0, 12, 1),), ((2, 1, 4, 5),))
    assert found.tolist() == [False, True, True, False]


def test_a_single_missing_block_can_be_changed_once_it_is_computed():
    z = zarrdask.create_array({}, shape=(4, 4), dtype="f4", chunks=4)
    values = zarrdask.from_zarr(z, skip_missing=True).compute()
    values[0, 0] = 1
    assert values.sum() == 1
