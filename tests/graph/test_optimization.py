"""Arrays that read stored arrays are optimised; others cost nothing, and settings stay."""

from contextlib import contextmanager

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrdask
from zarrdask.graph.limits import FuseLimits


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
        assert FuseLimits.current().length(10**6, 8, is_far=True) > 1


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
