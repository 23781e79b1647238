"""rechunk by workers of a cluster that hand each other what they read."""

import gc
import time
from dataclasses import replace
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from distributed import get_client

import zarrdask
from tests.parallel.graph.cases import same
from tests.parallel.rewrite.rechunker import from_afar
from tests.parallel.rewrite.test_rechunk import quietly, stored
from zarrdask.parallel.plan.shuffle import exchanges
from zarrdask.parallel.rewrite import cluster
from zarrdask.parallel.rewrite.cluster import MemberActor
from zarrdask.runtime import progress
from zarrdask.storage.local.local_store import LocalStore

#: The message if there are no workers, or too few.
NEEDS_WORKERS = r"the plan was made for|this plan needs the workers"


RECORD = np.dtype([("a", "<i2"), ("b", "<f4")])
VALUES = np.arange(1, 72 * 30 + 1, dtype="i4").reshape(72, 30)


def planned(place, scheduler, **options):
    """Plan to turn rows into columns, in three boxes."""
    found = zarrdask.rechunk(
        place / "a", place / "b", chunks=(24, 2), scheduler=scheduler, **options
    )
    costs = found.costs._replace(memory=3600, exchanges=True, processes=2)
    (way,) = exchanges(found.grids, costs)
    assert way.exchange.boxes.counts == (3, 1)
    return replace(found, costs=costs, schemes=(way,))


@pytest.fixture
def columns(client, tmp_path):
    """What plans to turn rows into columns."""
    stored(tmp_path / "a", values=VALUES, compressors="gzip")
    return partial(planned, tmp_path, client)


def as_task(place):
    """Rechunk in a task of the cluster."""
    here = get_client()
    quietly(planned(place, here), here)


def members():
    return sum(isinstance(each, MemberActor) for each in gc.get_objects())


def test_rows_become_columns_box_by_box(client, columns, tmp_path):
    array = quietly(columns(), client)
    assert array.chunks == (24, 2)
    same(array[...], VALUES)
    assert sorted(file.name for file in (tmp_path / "b").iterdir()) == ["c", "zarr.json"]
    client.run(gc.collect)
    assert set(client.run(members).values()) == {0}


def test_it_is_chosen_where_what_lies_between_would_go_far(client, tmp_path):
    values = np.arange(2**23).reshape(64, -1)
    stored(tmp_path / "a", values=values, chunks=(1, 2**17), compressors="blosc")
    source, target = (from_afar(tmp_path / name) for name in "ab")
    plan = zarrdask.rechunk(source, target, chunks=(64, 2**11), max_mem="56 MiB", scheduler=client)
    assert plan.scheme.name == "in the cluster"
    assert "workers exchange" in str(plan)
    same(quietly(plan, client)[...], values)


def test_boxes_that_are_done_are_not_done_again(client, columns, tmp_path):
    chunk = tmp_path / "a/c/9/0"
    kept = chunk.read_bytes()
    chunk.write_bytes(b"rubbish")
    with pytest.raises(zarrdask.errors.CodecError) as caught:
        quietly(columns(), client)
    assert caught.value.key.startswith("c/9/0")
    assert not (tmp_path / "b/zarr.json").exists()
    first = tmp_path / "b/c/0/0"
    written = first.stat().st_mtime_ns
    chunk.write_bytes(kept)
    said = []
    array = columns().execute(client, progress=Lines(said))
    same(array[...], VALUES)
    assert first.stat().st_mtime_ns == written
    assert "".join(said).split("\r")[-1].startswith("rechunk: 100%")


class Lines:
    """Where progress is told."""

    def __init__(self, said):
        self.said = said

    def write(self, text):
        self.said.append(text)

    def flush(self):
        """Nothing is kept back."""


def test_another_way_does_not_go_on_with_what_this_one_began(client, columns, tmp_path):
    (tmp_path / "a/c/9/0").write_bytes(b"rubbish")
    with pytest.raises(zarrdask.errors.CodecError):
        quietly(columns(), client)
    other = zarrdask.rechunk(tmp_path / "a", tmp_path / "b", chunks=(24, 2), scheduler=client)
    with pytest.raises(zarrdask.errors.StoreError, match="another write was interrupted"):
        quietly(other, client)


def test_members_that_start_are_not_gathered(client, columns, monkeypatch):
    """Threads share a request that gathers: one whose wait times out would cancel it for all."""
    monkeypatch.setattr(client, "_gather", None)
    same(quietly(columns(), client)[...], VALUES)


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_without_a_cluster_it_is_refused(columns, scheduler):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"scheduler.*distributed client"):
        quietly(columns(), scheduler)


def test_fewer_workers_than_planned_are_refused(client, columns, monkeypatch):
    monkeypatch.setattr(cluster, "REPLACEMENT_SECONDS", 0.1)
    plan = columns()
    plan = replace(plan, costs=plan.costs._replace(processes=3))
    with pytest.raises(zarrdask.errors.StoreError, match=r"fewer workers.*found 2.*expected 3"):
        quietly(plan, client)


@pytest.mark.parametrize("scheduler", ["threads", "client"])
def test_what_can_not_be_done_leaves_what_is_there(client, columns, tmp_path, scheduler):
    """Without a cluster, or with fewer workers; and nothing is in the way of another plan."""
    stored(tmp_path / "b", values=VALUES[:24])
    plan = columns(overwrite=True)
    costs = plan.costs._replace(processes=3)
    with pytest.raises(
        (zarrdask.errors.MetadataError, zarrdask.errors.StoreError), match=NEEDS_WORKERS
    ):
        quietly(replace(plan, costs=costs), client if scheduler == "client" else scheduler)
    same(zarrdask.open_array(tmp_path / "b")[...], VALUES[:24])
    same(quietly(columns(overwrite=True), client)[...], VALUES)


def test_a_group_is_refused_before_what_is_there_goes(client, columns, tmp_path):
    group = zarrdask.create_group(tmp_path / "g")
    stored(group.store, "x", values=VALUES)
    stored(tmp_path / "b", "x", values=VALUES[:24])
    plan = zarrdask.rechunk(
        tmp_path / "g", tmp_path / "b", chunks=(24, 2), scheduler=client, overwrite=True
    )
    (way, *_) = exchanges(plan["x"].grids, plan["x"].costs)
    plan = replace(plan, arrays={"x": replace(plan["x"], schemes=(way,))})
    with pytest.raises(zarrdask.errors.MetadataError, match=NEEDS_WORKERS):
        quietly(plan, "threads")
    same(zarrdask.open_array(tmp_path / "b", "x")[...], VALUES[:24])
    same(quietly(plan, client)["x"][...], VALUES)


def test_it_may_be_a_task_itself(client, columns, tmp_path):
    """Its worker, which has one thread, is needed for it."""

    columns()  # only stores the source
    client.submit(as_task, tmp_path).result(timeout=60)
    same(zarrdask.open_array(tmp_path / "b")[...], VALUES)


def test_a_worker_has_a_task_as_long_as_it_goes_on(client, columns, monkeypatch):
    """Otherwise it may be closed as idle."""
    monkeypatch.setattr(progress, "LOG_INTERVAL", 0)

    def processing(dask_scheduler=None):
        return [len(worker.processing) for worker in dask_scheduler.workers.values()]

    seen = []

    class Looking:
        def write(self, _):
            seen.append(client.run_on_scheduler(processing))

        def flush(self):
            """Nothing is kept back."""

    client.run(slowly)
    try:
        columns().execute(client, progress=Looking())
    finally:
        client.run(at_full_speed)
    assert [1, 1] in seen
    for _ in range(100):
        if client.run_on_scheduler(processing) == [0, 0]:
            break
        time.sleep(0.05)
    assert client.run_on_scheduler(processing) == [0, 0]


def test_part_of_an_array_is_appended(client, columns, tmp_path):
    quietly(columns(), client)
    zarrdask.open_array(tmp_path / "a", mode="r+").append(VALUES[:24], axis=0)
    found = zarrdask.rechunk(tmp_path / "a", tmp_path / "b", append=0, scheduler=client)
    costs = found.costs._replace(memory=3600, exchanges=True)
    (way,) = exchanges(found.grids, costs)
    array = quietly(replace(found, costs=costs, schemes=(way,)), client)
    same(array[...], np.concatenate([VALUES, VALUES[:24]]))


_SET = LocalStore.set


def slowly():
    """Let this process store slowly."""

    def slow(self, key, value):
        time.sleep(0.05)
        _SET(self, key, value)

    LocalStore.set = slow


def at_full_speed():
    LocalStore.set = _SET


def test_nothing_is_stored_after_an_error(client, columns, tmp_path, monkeypatch):
    """Another member may write meanwhile: it has ended when the error comes."""
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.01)
    plan, place = columns(), tmp_path / "b"
    assert plan.scheme.stages[1].tasks > 2 * 3
    (place / "c/0/3").mkdir(parents=True)
    client.run(slowly)
    try:
        with pytest.raises(zarrdask.errors.StoreError, match="c/0/3"):
            quietly(plan, client)
        before = sorted(place.rglob("*"))
        time.sleep(0.3)
        assert sorted(place.rglob("*")) == before
    finally:
        client.run(at_full_speed)


@pytest.mark.parametrize("dtype", ["?", ">i4", "c8", "M8[ns]", "V3", "bfloat16", RECORD], ids=str)
def test_data_types(client, tmp_path, dtype):
    items = np.dtype(getattr(ml_dtypes, str(dtype), dtype)).itemsize
    rng = np.random.default_rng(0)
    array = zarrdask.create_array(tmp_path / "a", shape=(12, 8), dtype=dtype, chunks=(1, 8))
    raw = rng.integers(0, 2, (12, 8, items), "u1")
    array[...] = raw.view(array.dtype)[..., 0]
    found = zarrdask.rechunk(tmp_path / "a", tmp_path / "b", chunks=(12, 1), scheduler=client)
    (way, *_) = exchanges(found.grids, found.costs)
    target = quietly(replace(found, schemes=(way,)), client)
    assert target.dtype == array.dtype
    assert target[...].tobytes() == array[...].tobytes()


def test_strings_have_no_such_way(client, tmp_path):
    values = np.array(["a", "bb", "ccc"] * 8, dtype=np.dtypes.StringDType()).reshape(12, 2)
    array = zarrdask.create_array(tmp_path / "a", shape=(12, 2), dtype="string", chunks=(1, 2))
    array[...] = values
    plan = zarrdask.rechunk(
        tmp_path / "a", tmp_path / "b", chunks=(12, 1), scheduler=client, max_mem=2000
    )
    assert {scheme.name for scheme in plan.schemes} == {"one pass"}
