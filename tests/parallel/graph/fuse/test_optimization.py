"""Arrays that read stored arrays are optimised; others cost nothing, and settings stay."""

from collections import Counter
from contextlib import contextmanager
from decimal import Decimal

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from dask.array.optimization import optimize
from distributed import Client, LocalCluster

import zarrdask
from tests.parallel.graph.equal import Equal
from tests.parallel.graph.fuse.test_limits import REMOTE
from zarrdask.parallel.graph.fuse import limits
from zarrdask.parallel.graph.fuse.limits import FuseLimits


def stored(store=None):
    store = {} if store is None else store
    zarrdask.to_zarr(da.arange(600, chunks=2), store)
    return zarrdask.from_zarr(store, chunks="stored")


def test_arrays_that_read_nothing_do_not_look_up_limits(monkeypatch):
    x = stored()

    def fail():
        raise ZeroDivisionError("limits")

    monkeypatch.setattr(FuseLimits, "current", fail)
    plain = da.ones(600, chunks=2).sum()
    assert x.__dask_optimize__ == plain.__dask_optimize__
    assert plain.compute(scheduler="sync") == 600
    with pytest.raises(ZeroDivisionError, match="limits"):
        x.sum().compute(scheduler="sync")


@contextmanager
def cluster(workers):
    """Yield the client of a cluster in this process, whose workers have three threads each."""
    options = {"threads_per_worker": 3, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(n_workers=workers, **options) as started, Client(started) as client:
        yield client


def test_a_cluster_is_not_asked_for_its_workers(monkeypatch):
    x = stored()
    with cluster(workers=1) as client:
        monkeypatch.setattr(client, "scheduler_info", None)
        assert FuseLimits.current().threads == 3
        assert cloudpickle.loads(cloudpickle.dumps(x.__dask_optimize__)).limits.threads == 3
        assert da.ones(6, chunks=2).sum().compute() == 6
        assert x.sum().compute() == 300 * 599


def test_a_cluster_may_have_no_workers_yet():
    with cluster(workers=0):
        assert FuseLimits.current().length(10**6, 8, [REMOTE]) > 1


def test_no_call_changes_the_settings(monkeypatch):
    store, changed = {}, []
    x, original = stored(store), dask.config.set

    class Recorded(original):
        def __init__(self, arg=None, *args, **kwargs):
            changed.extend(key for key in (arg or {}) if key.startswith("zarrdask"))
            super().__init__(arg, *args, **kwargs)

    monkeypatch.setattr(dask.config, "set", Recorded)
    zarrdask.plan_read(x + 1)
    zarrdask.to_zarr(x[::-1] + 1, {})
    zarrdask.to_zarr(x[:4] + 1, zarrdask.open_array(store, mode="r+"), region=np.s_[4:8])
    assert changed == []


# ---- hostile graphs: as without the optimisation

SHAPE = (8, 12)
VALUES = np.random.default_rng(7).random(SHAPE)


#: Arguments that are equal but not the same.
PAIRS = [
    (Decimal("1.0"), Decimal("1.00")),
    (np.timedelta64(1, "D"), np.timedelta64(24, "h")),
    (0.0, -0.0),
    ((0,), (False,)),
    (Equal(1), Equal(2)),
    ([0.0], [-0.0]),
]


class Functions:
    """Functions that keep a record of their calls."""

    def __init__(self):
        self.calls = []

    def told(self, block, value=None):
        text = str(value.value if isinstance(value, Equal) else value)
        self.calls.append(text)
        return block + len(text) + (np.signbit(value) if isinstance(value, float) else 0)

    def added(self, block, value, sign=1):
        self.calls.append("added")
        while not np.isscalar(value):
            value = next(iter(value.values())) if isinstance(value, dict) else value[0]
        return block + sign * value

    def numbered(self, block, block_id):
        self.calls.append("numbered")
        return block * (1 + block_id[-1])

    def placed(self, block, block_info):
        self.calls.append("placed")
        return block + block_info[0]["array-location"][0][0]

    def changed(self, block):
        self.calls.append("changed")
        block *= 2
        return block

    def failing(self, block, block_id):
        if block_id[0] == 2:
            raise ZeroDivisionError(f"block {block_id[0]}")
        return block


def mapped(x, function, *args, **kwargs):
    return x.map_blocks(function, *args, dtype=x.dtype, meta=np.empty((0,) * x.ndim), **kwargs)


def equal_arguments(x, to, rng):
    one, other = PAIRS[rng.integers(len(PAIRS))]
    return da.concatenate([mapped(x, to.told, one), mapped(x, to.told, other)])


#: Changes of a Dask array, given `Functions` and a random generator.
CHANGES = {
    "equal": equal_arguments,
    "list": lambda x, to, _: mapped(x, to.added, [x.sum(), 1]),
    "nested": lambda x, to, _: mapped(x, to.added, [[x.max()], 2]),
    "dict": lambda x, to, _: mapped(x, to.added, value={"a": [x.min()]}, sign=-1),
    "numbered": lambda x, to, _: mapped(x, to.numbered),
    "placed": lambda x, to, _: mapped(x, to.placed),
    "changed": lambda x, to, _: mapped(x + 1, to.changed),
    "annotated": lambda x, to, _: annotated(x, to),
    "told": lambda x, to, _: mapped(x, to.told),
    "cast": lambda x, to, _: x.astype("f4").astype("f8"),
    "merged": lambda x, to, _: x.rechunk(4),
    "sliced": lambda x, to, _: x[1:],
    "failing": lambda x, to, _: mapped(x, to.failing),
}


def annotated(x, to):
    with dask.annotate(priority=3):
        return mapped(x, to.told, 5)


#: What is computed of a Dask array.
RESULTS = {
    "all": lambda x: x,
    "sum": lambda x: x.sum(axis=0),
    "max": lambda x: x.max(),
    "argmin": lambda x: x.argmin(axis=1),
    "delayed": lambda x: dask.delayed(np.sort)(x, axis=None),
    "delayed sum": lambda x: dask.delayed(float)(x.sum()),
    "nested": lambda x: dask.delayed(lambda held: held["a"][0].sum())({"a": [x]}),
    "blocks": lambda x: dask.delayed(len)([*x.sum(axis=1).to_delayed()]),
}


def leaf(kind):
    z = zarrdask.create_array({}, shape=SHAPE, dtype="f8", chunks=2, fill_value=0.5)
    if kind == "sparse":
        z[:3, 4:9] = VALUES[:3, 4:9]
    else:
        z[...] = VALUES
    return zarrdask.from_zarr(z, chunks="stored", skip_missing=kind == "sparse")


def outcome(seed, *, is_default):
    """Return the results of a random computation, or the error, and the calls of functions."""
    rng, to = np.random.default_rng(seed), Functions()
    kind = ("stored", "sparse")[rng.integers(2)]
    settings = {} if is_default else {"array_optimize": optimize}
    with dask.config.set(scheduler="sync", num_workers=1, **settings):
        x = leaf(kind)
        names = rng.choice([*CHANGES], int(rng.integers(1, 4))).tolist()
        for name in names:
            x = CHANGES[name](x, to, rng)
        chosen = rng.choice([*RESULTS], int(rng.integers(1, 4)), replace=False).tolist()
        results = [RESULTS[name](x) for name in chosen]
        optimizes = bool(rng.random() < 0.7)
        case = f"seed {seed}: {kind} {names} {chosen} optimize_graph={optimizes}"
        to.calls.clear()
        try:
            found = dask.compute(*results, optimize_graph=optimizes)
        except ZeroDivisionError as error:
            return case, repr(error), None
    return case, found, sorted(to.calls)


def outcome_by_dask(seed):
    """Return what a random computation gives without the optimisation."""
    while True:
        try:
            return outcome(seed, is_default=False)
        except ValueError as error:
            # Dask itself loses a task of arrays nested in arguments, depending on the names of
            # tasks, which are random here.
            if not str(error).startswith("Missing dependency finalize-"):
                raise


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(16), id="core"),
        pytest.param(range(16, 64), id="stress", marks=pytest.mark.stress),
    ],
)
def test_hostile_graphs_give_what_they_give_without_the_optimisation(seeds, monkeypatch):
    monkeypatch.setattr(limits, "MIN_TASKS", 3)
    monkeypatch.setattr(limits, "TASKS_PER_THREAD", 1)
    for seed in seeds:
        case, expected, calls = outcome_by_dask(seed)
        _, found, own = outcome(seed, is_default=True)
        if isinstance(expected, str):
            assert found == expected, case
            continue
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=case)
            assert np.asarray(one).dtype == np.asarray(other).dtype, case
        if "stored" in case:
            assert own == calls, case
        else:
            assert not Counter(own) - Counter(calls), case
