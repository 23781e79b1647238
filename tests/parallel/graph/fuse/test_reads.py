"""Fused reads: the same values, from fewer tasks."""

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from dask._task_spec import _execute_subgraph
from dask.array.optimization import optimize
from dask.highlevelgraph import HighLevelGraph
from hypothesis import example, given, settings
from hypothesis import strategies as st

import zarrdask
from tests.parallel.graph.fuse.stored import SHAPE, VALUES, stored
from tests.storage.latency import FarStore
from zarrdask.parallel.graph.fuse.evaluate import run_fused

pytestmark = pytest.mark.usefixtures("three_tasks")


def sparse():
    z = zarrdask.create_array({}, shape=SHAPE, dtype="f8", chunks=2, fill_value=0.1)
    z[:5, 3:4] = VALUES[:5, 3:4]
    return zarrdask.from_zarr(z, chunks="stored", skip_missing=True)


LEAVES = {
    "stored": stored,
    "far": lambda: stored(FarStore(seconds=0)),
    "sparse": sparse,
    "transposed": lambda: stored(values=VALUES.T.copy()).T,
    "halves": lambda: da.concatenate([stored(values=half) for half in np.split(VALUES, 2)]),
    "random": lambda: da.random.default_rng(3).random(SHAPE, chunks=2),
    "memory": lambda: da.from_array(VALUES, chunks=2),
    "row": lambda: da.from_array(VALUES[:1], chunks=(1, 2)),
    "number": lambda: stored().max(),
    "persisted": lambda: stored().persist(scheduler="sync"),
}


OPERATIONS = {
    "doubled": lambda x: x * 2,
    "numbered": lambda x: x.map_blocks(lambda b, block_id: b + block_id[0], dtype="f8"),
    "sliced": lambda x: x[..., ::2],
    "turned": lambda x: x.T,
    "merged": lambda x: x.rechunk(4),
    "split": lambda x: x.rechunk((3, 1)),
    "centred": lambda x: x - x.mean(),
    "joined": lambda x: da.concatenate([x, x[:2]]),
    "stacked": lambda x: da.stack([x, x + 1]).mean(axis=0),
    "summed": lambda x: x.sum(axis=0, keepdims=True),
    "cumulative": lambda x: x.cumsum(axis=1),
}


REDUCTIONS = {
    "mean": lambda x: x.mean(),
    "sum": lambda x: x.sum(axis=1),
    "max": lambda x: x.max(axis=0, keepdims=True),
    "std": lambda x: x.std(axis=0, split_every=2),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(axis=-1),
    "topk": lambda x: da.topk(x, 2, axis=0),
    "some": lambda x: x.sum(axis=0)[:1],
    "all": lambda x: x,
}


@settings(max_examples=settings().max_examples // 2)
@given(
    leaves=st.lists(st.sampled_from(sorted(LEAVES)), max_size=2),
    operations=st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=2),
    reductions=st.lists(st.sampled_from(sorted(REDUCTIONS)), min_size=1, max_size=2),
)
@example(leaves=[], operations=["centred"], reductions=["argmax"])
@example(leaves=["stored"], operations=["centred"], reductions=["mean", "std"])
def test_any_graph_has_the_same_values_as_when_nothing_is_fused(leaves, operations, reductions):
    x = stored()
    for leaf in leaves:
        x = x * LEAVES[leaf]()
    for operation in operations:
        x = OPERATIONS[operation](x)
    results = [REDUCTIONS[name](x) for name in reductions]
    with dask.config.set(scheduler="sync", num_workers=1):
        with dask.config.set(array_optimize=optimize):
            expected = dask.compute(*results)
        found = dask.compute(*results)
        kept = dask.persist(*results)
    for one, other, blocks, result in zip(found, expected, kept, results, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(blocks.compute(scheduler="sync"), other)
        assert blocks.chunks == result.chunks


def tasks_of(x):
    """Return the number of tasks after Dask's optimisation, and how many of them are fused."""
    with dask.config.set(num_workers=1):
        tasks = dict(dask.optimize(x)[0].dask)
    return len(tasks), sum(map(_fused, tasks.values()))


def _fused(task):
    # Dask may have fused the task with the only task that needs it.
    if getattr(task, "func", None) is _execute_subgraph:
        return sum(map(_fused, task.args[0].values()))
    return getattr(task, "func", None) is run_fused


@pytest.mark.parametrize("reduction", sorted(REDUCTIONS.keys() - {"some", "all"}))
@pytest.mark.parametrize("change", ["doubled", "numbered"])
def test_only_fused_tasks_read_blocks(reduction, change):
    x = OPERATIONS[change](stored())
    count, number = tasks_of(REDUCTIONS[reduction](x))
    assert 3 <= number <= 12
    # Beside them are what they have in common, and what joins their results.
    assert count <= 2 * number + 2
    assert tasks_of(REDUCTIONS[reduction](x + LEAVES["memory"]()))[1] == number


@pytest.mark.parametrize("reduction", sorted(REDUCTIONS.keys() - {"some", "all"}))
@pytest.mark.parametrize("join", [da.concatenate, da.stack])
def test_only_fused_tasks_read_blocks_of_arrays_that_are_joined(reduction, join):
    x = OPERATIONS["doubled"](join([stored(), stored() + 1]))
    count, number = tasks_of(REDUCTIONS[reduction](x))
    assert 3 <= number <= 24
    assert count <= 2 * number + 4


def test_blocks_that_are_merged_are_read_by_one_task():
    assert tasks_of((stored() + 1).rechunk((2, 4))) == (12 + 1, 12)


@pytest.mark.parametrize("add", [lambda x: x, lambda x: x + x.max(), lambda x: x * stored()])
def test_blocks_that_are_too_large_to_be_fused_have_tasks_of_their_own(add):
    x = add(stored() + 1).mean(axis=0)
    block_bytes = 2 * 2 * 8
    options = {"zarrdask.fuse-size": block_bytes, "scheduler": "sync", "num_workers": 1}
    with dask.config.set(options):
        keys = {key for key in dict(dask.optimize(x)[0].dask) if isinstance(key, tuple)}
        found = x.compute()
    with dask.config.set(array_optimize=optimize, scheduler="sync"):
        expected = x.compute()
    assert len(keys) > 12
    np.testing.assert_array_equal(found, expected)


def test_what_else_is_needed_has_tasks_of_its_own():
    x = stored()
    assert tasks_of(x)[1] == tasks_of(x + 1)[1] == 0
    assert tasks_of(da.ones(SHAPE, chunks=2).sum())[1] == 0
    with dask.annotate(priority=1):
        assert tasks_of(x.sum())[1] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"zarrdask.fuse-size": 0},
        {"zarrdask.fuse-blocks": 1},
        {"array_optimize": optimize},
        {"optimization.fuse.active": False},
        {"zarrdask.fuse": False},
    ],
)
def test_settings_that_switch_it_off(options):
    with dask.config.set(options):
        assert tasks_of(stored().sum())[1] == 0


def test_the_configuration_can_still_be_sent_to_other_machines():
    sparse().sum().compute(scheduler="sync")
    assert dask.config.serialize(dask.config.config)


def test_a_cluster_computes_fused_tasks(tmp_path, client):
    x = stored(tmp_path)
    with dask.config.set(scheduler=client):
        np.testing.assert_array_equal((x + 1).max(axis=0).compute(), (VALUES + 1).max(axis=0))
        assert x.mean().persist().compute() == pytest.approx(VALUES.mean())
        both = dask.compute(x.mean(), x.std())
        assert both == (pytest.approx(VALUES.mean()), pytest.approx(VALUES.std()))


def test_a_scheduler_elsewhere_fuses_as_the_user_has_set():
    y, z = stored().sum(), stored().max()
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        sent = cloudpickle.dumps(y.__dask_optimize__)
    assert len(cloudpickle.loads(sent)(y.dask, y.__dask_keys__())) > 24
    # Results with equal functions are optimised together.
    assert y.__dask_optimize__ == z.__dask_optimize__ != cloudpickle.loads(sent)


def test_results_are_optimised_together_whatever_they_read():
    calls = []

    def counted(block):
        calls.append(block)
        return block + 1

    x = stored()
    other = da.zeros(SHAPE, chunks=2).map_blocks(counted, dtype="f8", meta=np.empty((0, 0)))
    totals = dask.compute((x + other).sum(), other.sum(), scheduler="sync")
    assert totals == (pytest.approx(VALUES.sum() + VALUES.size), VALUES.size)
    assert len(calls) == other.npartitions


def test_results_that_share_blocks_read_each_once_and_are_left_to_dask():
    seen = []

    def count(block):
        seen.append(block.shape)
        return block

    x = stored().map_blocks(count, dtype="f8", meta=np.empty((0, 0)))
    y = x + stored()
    cases = (
        (x.min(), x.max()),
        (x.sum(axis=0), y.max(axis=0)),
        (x.mean(axis=0), x.max(axis=1, split_every=8)),
        (x.mean(), x),
    )
    for results in cases:
        seen.clear()
        with dask.config.set(scheduler="sync", num_workers=1):
            with dask.config.set(array_optimize=optimize):
                expected = dask.compute(*results)
            assert len(seen) == 24
            seen.clear()
            for found, values in zip(dask.compute(*results), expected, strict=True):
                np.testing.assert_array_equal(found, values)
            graph = HighLevelGraph.merge(*(each.dask for each in results))
            keys = [each.__dask_keys__() for each in results]
            tasks = results[0].__dask_optimize__(graph, keys)
        assert len(seen) == 24
        assert not sum(map(_fused, dict(tasks).values()))


def test_results_of_two_arrays_that_each_need_one_of_the_other():
    x, y = stored(), stored(values=VALUES[::-1].copy())
    results = [x.min(), (x - y.mean()).max(), y.min(), (y - x.mean()).max()]
    with dask.config.set(scheduler="sync", num_workers=1):
        with dask.config.set(array_optimize=optimize):
            expected = dask.compute(*results)
        assert dask.compute(*results) == expected
