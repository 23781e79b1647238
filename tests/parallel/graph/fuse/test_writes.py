"""Fused writes: small blocks that share a task are what they are when each has its own."""

from unittest import mock

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import zarrdask
from tests.storage.latency import LatencyStore
from zarrdask.errors import StoreError
from zarrdask.parallel.graph.fuse import limits
from zarrdask.parallel.graph.fuse.evaluate import write_fused

SHAPE = (8, 12)
BLOCKS = (2, 3)
VALUES = np.arange(1, 97, dtype="f8").reshape(SHAPE)


@pytest.fixture(scope="module", autouse=True)
def three_tasks():
    """Let small arrays of 16 blocks be written by three fused tasks or more."""
    with (
        mock.patch.object(limits, "MIN_TASKS", 3),
        mock.patch.object(limits, "TASKS_PER_THREAD", 1),
        mock.patch.object(limits, "FAR_TASKS_PER_THREAD", 1),
    ):
        yield


def tasks_of(delayed):
    """Return the tasks that are left after Dask's optimisation, and how many are fused."""
    (optimized,) = dask.optimize(delayed)
    tasks = dict(optimized.__dask_graph__())
    number = sum(getattr(task, "func", None) is write_fused for task in tasks.values())
    return len(tasks), number


def stored(values=VALUES, chunks=BLOCKS):
    """Return a Dask array of a stored array, one block for each chunk."""
    store = {}
    zarrdask.to_zarr(da.from_array(values, chunks=chunks), store)
    return zarrdask.from_zarr(store, chunks="stored")


def _numbered(block, block_id):
    return block + block_id[0] - block_id[1]


def _placed(block, block_info):
    return block * block_info[0]["array-location"][0][0]


LEAVES = {
    "stored": stored,
    "memory": lambda: da.from_array(VALUES, chunks=BLOCKS),
    "array-like": lambda: da.from_array(stored().source, chunks=BLOCKS, inline_array=False),
    "random": lambda: da.random.default_rng(3).random(SHAPE, chunks=BLOCKS),
    "constant": lambda: da.ones(SHAPE, chunks=BLOCKS),
    "row": lambda: da.from_array(VALUES[:1], chunks=(1, 3)),
    "random row": lambda: da.random.default_rng(4).random((1, 12), chunks=(1, 3)),
    "number": lambda: da.from_array(np.array(2.5)),
    "transposed": lambda: stored(VALUES.T.copy(), BLOCKS[::-1]).T,
    "reversed": lambda: stored()[::-1, ::-1].rechunk(BLOCKS),
    "joined": lambda: da.concatenate([stored()[:4], LEAVES["random"]()[4:]]),
    "other blocks": lambda: stored(chunks=(3, 5)),
}
OPERATIONS = {
    "block_id": lambda x: x.map_blocks(_numbered, dtype="f8"),
    "block_info": lambda x: x.map_blocks(_placed, dtype="f8"),
    "mean": lambda x: x - x.mean(),
    "overlap": lambda x: x.map_overlap(lambda b: b * 2, depth=1),
    "cumulative": lambda x: x.cumsum(axis=0),
    "twice": lambda x: x + x,
    "cast": lambda x: x.astype("f4"),
    "every other": lambda x: x[:, ::2],
    "joined": lambda x: da.concatenate([x, x + 1]),
    "stacked": lambda x: da.stack([x, x * 2], axis=1),
    "split": lambda x: x.rechunk({0: 1, -1: 2}),
}


@settings(max_examples=settings().max_examples // 2)
@given(
    first=st.sampled_from(sorted(LEAVES.keys() - {"row", "random row", "number"})),
    leaves=st.lists(st.sampled_from(sorted(LEAVES)), max_size=2),
    operations=st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=2),
    shares=st.booleans(),
)
@example(first="memory", leaves=["random"], operations=[], shares=False)
def test_any_graph_is_written_as_it_is_when_nothing_is_fused(first, leaves, operations, shares):
    x = LEAVES[first]()
    for leaf in leaves:
        x = x * LEAVES[leaf]()
    for operation in operations:
        x = OPERATIONS[operation](x)
    members = {"a": x, "b": x + 1} if shares else {"a": x}
    expected = dask.compute(members, scheduler="sync")[0]
    root = zarrdask.create_group({})
    with dask.config.set(scheduler="sync", num_workers=3):
        zarrdask.to_zarr(members, root)
    for name, values in expected.items():
        np.testing.assert_array_equal(root[name][...], values)


def test_only_fused_tasks_reach_the_scheduler():
    with dask.config.set(num_workers=1):
        for leaf in ("stored", "memory", "array-like", "random", "constant", "transposed"):
            x = LEAVES[leaf]().map_blocks(_numbered, dtype="f8") * 2
            count, number = tasks_of(zarrdask.to_zarr(x, {}, compute=False))
            assert number == 4, leaf  # 3 of 5 blocks, and one of 1
            # Beside them, the function of a block, where blocks are stored, the last task, and the
            # source of an array-like.
            assert count <= number + 4, leaf


@pytest.mark.parametrize("setting", ["fuse-size", "fuse-blocks"])
def test_settings_bound_fused_tasks_and_switch_them_off(setting):
    x = stored() + 1
    for value, expected in {0: 0, 1: 0, 3 * (48 if setting == "fuse-size" else 1): 6}.items():
        with dask.config.set({f"zarrdask.{setting}": value, "num_workers": 1}):
            assert tasks_of(zarrdask.to_zarr(x, {}, compute=False))[1] == expected


@pytest.mark.parametrize(
    "options",
    [{"array_optimize": None}, {"optimization.fuse.active": False}, {"zarrdask.fuse": False}],
)
def test_a_graph_that_dask_does_not_fuse_is_not_fused_here(options):
    with dask.config.set(options):
        assert tasks_of(zarrdask.to_zarr(stored() + 1, {}, compute=False))[1] == 0


def test_blocks_of_single_tasks_are_fused_too():
    x = stored()
    y = x[2:] * da.from_array(VALUES[:1], chunks=(1, 3))
    for several in (y, da.stack([y, y + 1]), da.concatenate([x, y]), x.rechunk((2, 6))[:, :, None]):
        count, number = tasks_of(zarrdask.to_zarr(several, {}, compute=False))
        assert 2 < number < 8
        # Beside them are shared inputs: the row, at most.
        assert count <= number + 10


def test_what_two_arrays_share_is_computed_once():
    calls = []

    def count(block):
        calls.append(block.shape)
        return block

    x = stored().map_blocks(count, dtype="f8", meta=np.empty((0, 0)))
    root = zarrdask.create_group({})
    assert tasks_of(zarrdask.to_zarr({"a": x, "b": x + 1}, {}, compute=False))[1] > 2
    members = {"a": x, "b": x + 1, "c": LEAVES["memory"](), "d": x[:, :6].mean(axis=0)}
    with dask.config.set(num_workers=1):
        assert tasks_of(zarrdask.to_zarr(members, root, compute=False))[1] == 4
        zarrdask.to_zarr(members, root, overwrite=True)
    assert len(calls) == 16
    np.testing.assert_array_equal(root["b"][...], VALUES + 1)


@pytest.mark.parametrize("options", [{"compute": False}, {"return_stored": True}, {}])
def test_ways_to_write(options):
    root = zarrdask.create_group({})
    for name, x in {"a": stored() + 1, "b": (stored() + 1).persist()}.items():
        result = zarrdask.to_zarr(x, root, name, **options)
        if options.get("compute") is False:
            result.compute()
        elif options:
            np.testing.assert_array_equal(result.compute(), VALUES + 1)
        np.testing.assert_array_equal(root[name][...], VALUES + 1)
    y = zarrdask.to_zarr(stored() + 2, root, "c", compute=False, return_stored=True)
    np.testing.assert_array_equal(y.persist().compute(), VALUES + 2)
    zarrdask.append(stored() + 3, root, "c")
    np.testing.assert_array_equal(root["c"][8:], VALUES + 3)


def failing(block, block_id):
    if block_id == (1, 2):
        raise ZeroDivisionError("on purpose")
    return block


def test_an_error_names_the_block_and_its_key(tmp_path, scheduler):
    x = (da.from_array(VALUES, chunks=BLOCKS) + 1).map_blocks(failing, dtype="f8")
    with dask.config.set(scheduler=scheduler), pytest.raises(ZeroDivisionError) as caught:
        zarrdask.to_zarr(x, tmp_path, "a")
    notes = "\n".join(caught.value.__notes__)
    assert "block (1, 2), stored as a/c/1/2 in " in notes
    assert "no array was created; run the same call again" in notes


@pytest.mark.parametrize("leaf", ["memory", "reversed"])  # by a function, and by single tasks
def test_blocks_of_a_fused_task_are_stored_together_in_a_far_store(leaf):
    store, x = LatencyStore(seconds=0.05), LEAVES[leaf]()
    with dask.config.set(scheduler="threads", num_workers=1):
        zarrdask.to_zarr(x, store)
    assert store.most > 3
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], x.compute(scheduler="sync"))


@pytest.mark.parametrize("leaf", ["memory", "reversed"])
def test_an_error_of_an_earlier_block_does_not_name_a_later_one(leaf):
    store = LatencyStore()
    original = store.inner.set

    def fail(key, value):
        if key == "c/0/1":
            raise StoreError("no space", key=key)
        original(key, value)

    store.inner.set = fail
    with dask.config.set(num_workers=1), pytest.raises(StoreError, match="c/0/1") as caught:
        zarrdask.to_zarr(LEAVES[leaf](), store)
    notes = "\n".join(caught.value.__notes__)
    assert "raised for block" not in notes
    assert "no array was created; run the same call again" in notes
    assert store.in_flight == 0


def test_what_a_function_in_a_fused_task_writes_itself_is_stored_when_it_returns():
    store = LatencyStore()
    aside = zarrdask.create_array(store, "aside", shape=1, dtype="i4")

    def note(block):
        aside[0] = int(block.max())
        assert aside[0] == block.max()
        return block

    with dask.config.set(scheduler="sync", num_workers=1):
        zarrdask.to_zarr(LEAVES["memory"]().map_blocks(note, dtype="f8"), store, "main")
    assert zarrdask.open_array(store, "main")[-1, -1] == 96


def _fail_once(block, marker, block_id):
    if block_id == (2, 1) and not marker.exists():
        marker.touch()
        raise OSError("on purpose")
    return block


def test_a_fused_task_is_retried_whole(tmp_path, client):
    rng = da.random.default_rng(1)
    x = rng.random(SHAPE, chunks=BLOCKS).map_blocks(
        _fail_once, tmp_path / "failed", dtype="f8", meta=np.empty((0, 0))
    )
    with dask.config.set(scheduler=client), dask.annotate(retries=1):
        zarrdask.to_zarr(x, tmp_path, "a")
    expected = da.random.default_rng(1).random(SHAPE, chunks=BLOCKS).compute(scheduler="sync")
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path, "a")[...], expected)


def test_arrays_that_are_written_beside_others_are_fused_where_they_can_be():
    x, y = stored() + 1, da.from_array(VALUES, chunks=BLOCKS)
    shifted = x[:, 1:].rechunk(BLOCKS)  # each block is computed from two others
    members = {"a": x, "b": x * 2, "c": x.mean() + x, "d": shifted, "e": y, "f": y[::-1] * 2}
    for names, number in {"ab": 8, "abd": 0, "de": 8, "ef": 8, "ce": 4}.items():
        chosen = {name: members[name] for name in names}
        with dask.config.set(num_workers=1):
            assert tasks_of(zarrdask.to_zarr(chosen, {}, compute=False))[1] == number, names


def test_blocks_of_joined_arrays_are_fused():
    def column(count):
        z = zarrdask.create_array({}, shape=(count, 8), dtype="i1", chunks=1)
        return zarrdask.from_zarr(z, chunks="stored")

    with dask.config.set(num_workers=2):
        joined = da.concatenate([column(96), column(48)])
        assert tasks_of(zarrdask.to_zarr(joined, {}, compute=False))[1] == 5
