"""Overlapping regions and appends at once: nothing is lost without an error."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.parallel.graph.test_regressions import (
    OLD,
    RUNS,
    SlowStore,
    old,
    threads,  # noqa: F401
)
from tests.parallel.graph.test_shared_units import layouts
from tests.parallel.graph.writes import append_elsewhere
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.parallel.execution import locks as graph_locks

pytestmark = pytest.mark.stress


def at_once(array, parts):
    """Write all parts (a region, and values), each in a graph and a thread of its own."""

    def write(part):
        region, values = part
        zarrdask.to_zarr(da.from_array(values, chunks=3), array, region=region)

    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(write, parts))


@layouts
def test_of_regions_that_overlap_one_is_there(layout):
    for seed in range(10):
        array = old(SlowStore(seed), **layout)
        first, second = np.full((8, 10), -1.0), np.full((8, 10), -2.0)
        parts = [(np.s_[0:8, :], first), (np.s_[4:12, :], second)]
        at_once(array, parts)
        found = array[...]
        assert (found[:4] == -1).all()
        assert (found[8:] == -2).all()
        assert set(found[4:8].flat) <= {-1, -2}


@pytest.mark.parametrize("part", [np.s_[1:3, 5:8], np.s_[4:6, 3:10]], ids=str)
def test_a_part_that_overlaps_a_whole_unit_leaves_the_rest_of_it(part):
    for seed in range(RUNS):
        array = old(SlowStore(seed), chunks=(6, 5))
        at_once(array, [(np.s_[:], OLD * 0 - 1), (part, OLD[part] * 0 - 2)])
        found = array[...]
        assert set(found[part].flat) <= {-1, -2}
        found[part] = -1
        np.testing.assert_array_equal(found, OLD * 0 - 1)


# ---- append


def test_an_append_and_a_region_of_one_graph_share_a_unit():
    for seed in range(RUNS):
        array = old(SlowStore(seed), chunks=(5, 4))
        more = zarrdask.append(da.full((6, 10), -1.0, chunks=3), array, compute=False)
        last = da.full((2, 10), -2.0, chunks=3)
        region = zarrdask.to_zarr(last, array, region=np.s_[10:12], compute=False)
        dask.compute(more, region)
        found = zarrdask.open_array(array.store)[...]
        expected = np.concatenate([OLD[:10], np.full((2, 10), -2), np.full((6, 10), -1)])
        np.testing.assert_array_equal(found, expected)


def more(value, length):
    return np.full((length, 10), float(value))


def check_appended(store, rows, errors):
    """Check that of several that append, each one's values are there, or it has an error."""
    found = zarrdask.open_array(store)[...]
    np.testing.assert_array_equal(found[:12], OLD)
    there = [n for value, n in rows.items() if (found[12:] == value).sum() == 10 * n]
    assert len(there) + len(errors) == len(rows), "values were lost, and nobody was told"
    assert len(found) == 12 + sum(there)


rows_of_two = pytest.mark.parametrize("rows", [{-1: 3, -2: 3}, {-1: 3, -2: 7}], ids=str)


@rows_of_two
def test_two_appends_of_one_graph_are_not_lost(rows):
    for seed in range(10):
        array, errors = old(SlowStore(seed), chunks=(5, 4)), []
        tasks = []
        for value, n in rows.items():
            try:
                x = da.from_array(more(value, n), chunks=3)
                tasks.append(zarrdask.append(x, array, compute=False))
            except zarrdask.ZarrdaskError as error:
                errors.append(error)
        try:
            dask.compute(*tasks)
        except zarrdask.ZarrdaskError as error:
            errors.append(error)
        check_appended(array.store, rows, errors)


@rows_of_two
@pytest.mark.parametrize("lazy", [False, True])
def test_two_appends_at_once_are_not_lost(rows, lazy):
    def append(value, length):
        values = more(value, length)
        try:
            array = zarrdask.open_array(store, mode="r+")
            if lazy:
                zarrdask.append(da.from_array(values, chunks=3), array)
            else:
                array.append(values)
        except zarrdask.ZarrdaskError as error:
            errors.append(error)

    for seed in range(10):
        store, errors = SlowStore(seed), []
        old(store, chunks=(5, 4))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(append, rows, rows.values()))
        check_appended(store, rows, errors)


# ---- appends that are computed later


def asked(array, value, length, chunks=3):
    return zarrdask.append(da.full((length, 10), value, chunks=chunks), array, compute=False)


def check_rows(array, *rows):
    expected = [OLD, *(more(value, length) for value, length in rows)]
    found = zarrdask.open_array(array.store)[...]
    np.testing.assert_array_equal(found, np.concatenate(expected))


@pytest.fixture(params=["memory", "files"])
def array(request, tmp_path):
    return old(SlowStore() if request.param == "memory" else str(tmp_path / "a"), chunks=(5, 4))


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_of_appends_that_were_asked_for_together_one_is_done(array, scheduler):
    tasks = [asked(array, -1, 3), asked(array, -2, 3)]
    with pytest.raises(zarrdask.errors.StoreError, match="resized the array"):
        dask.compute(*tasks, scheduler=scheduler)
    found = zarrdask.open_array(array.store)[...]
    assert found.shape == (15, 10)
    assert (found[12:] == -1).all() or (found[12:] == -2).all()


@rows_of_two
def test_of_appends_that_are_computed_at_once_one_is_done(rows):
    def compute(task):
        try:
            task.compute(scheduler="threads")
        except zarrdask.errors.StoreError as error:
            errors.append(error)

    for seed in range(10):
        errors, array = [], old(SlowStore(seed), chunks=(5, 4))
        tasks = [asked(array, value, length) for value, length in rows.items()]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(compute, tasks))
        assert len(errors) == 1
        check_appended(array.store, rows, errors)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_appends_that_are_asked_for_and_computed_one_after_the_other(array, scheduler):
    for value in (-1, -2):
        asked(array, value, 3).compute(scheduler=scheduler)
    check_rows(array, (-1, 3), (-2, 3))


def test_an_append_in_another_process(tmp_path):
    array = old(str(tmp_path / "a"), chunks=(5, 4))
    asked(array, -1, 7).compute(scheduler="processes", num_workers=1)
    check_rows(array, (-1, 7))


def test_an_append_that_was_optimised_or_is_part_of_another_graph(array):
    dask.optimize(asked(array, -1, 3))[0].compute()
    dask.delayed(lambda done: done)(asked(array, -2, 7)).compute()
    check_rows(array, (-1, 3), (-2, 7))


@pytest.mark.parametrize("how", ["pool", "executor", "workers"])
def test_an_append_does_not_wait_for_the_thread_that_it_takes(array, how):
    with ThreadPoolExecutor(1) as pool:
        options = {"pool": {"pool": pool}, "executor": {"scheduler": pool}}
        with dask.config.set(**options.get(how, {"num_workers": 1})):
            asked(array, -1, 3).compute()
    check_rows(array, (-1, 3))


def test_not_if_the_array_has_another_shape_by_then(array):
    first, second = asked(array, -1, 3), asked(array, -2, 3)
    first.compute()
    for late in (first, second):
        with pytest.raises(zarrdask.errors.StoreError, match="resized the array concurrently"):
            late.compute()
    check_rows(array, (-1, 3))
    zarrdask.open_array(array.store, mode="r+").resize(OLD.shape)
    second.compute()
    check_rows(array, (-2, 3))


def test_an_append_that_is_computed_too_late_leaves_what_another_appended():
    array = old(SlowStore(), chunks=(5, 4))
    late = asked(array, -2, 7)
    zarrdask.open_array(array.store, mode="r+").append(more(-1, 3))
    with pytest.raises(zarrdask.errors.StoreError, match="resized the array concurrently"):
        late.compute()
    check_rows(array, (-1, 3))


def test_an_append_that_fails_leaves_what_another_appended_meanwhile():
    array = old(SlowStore(), chunks=(5, 4))

    def meanwhile(block):
        if block.size and len(zarrdask.open_array(array.store)) == 12:
            append_elsewhere(more(-1, 3), array.store)
        return block

    x = da.from_array(more(-2, 7), chunks=-1).map_blocks(meanwhile, meta=np.empty((0, 0)))
    with pytest.raises(zarrdask.ZarrdaskError):
        zarrdask.append(x, array)
    check_rows(array, (-1, 3))


# ---- the shape has one writer


def test_a_resize_waits_for_an_append():
    array = old(SlowStore(), chunks=(5, 4))
    begun, waited = threading.Event(), []

    def slow(block):
        begun.set()
        thread.join(0.2)
        waited.append(thread.is_alive())
        return block

    def work():
        begun.wait(60)
        zarrdask.open_array(array.store, mode="r+").resize((4, 10))

    thread = threading.Thread(target=work)
    thread.start()
    x = da.full((3, 10), -1.0, chunks=-1).map_blocks(slow, meta=np.empty((0, 0)))
    zarrdask.append(x, array)
    thread.join(60)
    assert waited == [True]
    np.testing.assert_array_equal(zarrdask.open_array(array.store)[...], OLD[:4])


def test_attributes_need_not_wait_for_an_append():
    array = old(SlowStore(), chunks=(5, 4))

    def note(block):
        array.attrs["seen"] = True
        return block

    x = da.full((3, 10), -1.0, chunks=-1).map_blocks(note, meta=np.empty((0, 0)))
    zarrdask.append(x, zarrdask.open_array(array.store, mode="r+"))
    found = zarrdask.open_array(array.store)
    assert (found.shape, dict(found.attrs)) == ((15, 10), {"seen": True})


def test_attributes_and_shapes_that_are_changed_at_once():
    for seed in range(RUNS):
        array = old(SlowStore(seed), chunks=(5, 4))
        with ThreadPoolExecutor(2) as pool:
            noted = pool.submit(zarrdask.open_array(array.store, mode="r+").attrs.update, unit="K")
            array.append(more(-1, 3))
            noted.result()
        check_rows(array, (-1, 3))
        assert dict(zarrdask.open_array(array.store).attrs) == {"unit": "K"}


def test_an_array_that_was_opened_tolerantly_is_appended_to_under_a_strict_setting(setting):
    array = old(SlowStore(), chunks=(5, 4), zarr_format=2)
    document = array.store.get(".zarray")
    array.store.set(".zarray", document.replace(b'"filters": null', b'"filters": []'))
    with pytest.raises(zarrdask.ZarrdaskError):
        zarrdask.open_array(array.store, strict=True)
    array = zarrdask.open_array(array.store, mode="r+")
    setting({"zarrdask.strict": True})
    array.append(more(-1, 3))
    zarrdask.append(da.from_array(more(-2, 2)), array)
    asked(array, -3, 2).compute()
    setting({"zarrdask.strict": False})
    check_rows(array, (-1, 3), (-2, 2), (-3, 2))


def _appends(place, value):
    for _ in range(5):
        zarrdask.open_array(place, mode="r+").append(more(value, 2))


def test_appends_of_several_processes(tmp_path):
    array = old(str(tmp_path / "a"), chunks=(5, 4))
    context = get_context("spawn")
    processes = [
        context.Process(target=_appends, args=(str(tmp_path / "a"), value)) for value in (-1, -2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    found = zarrdask.open_array(array.store)[...]
    assert found.shape == (32, 10)
    np.testing.assert_array_equal(found[:12], OLD)
    assert [(found[12:] == value).sum() for value in (-1, -2)] == [100, 100]


def test_machines_of_a_cluster_append_one_after_the_other(monkeypatch):
    held = []

    @contextmanager
    def lock(name):
        held.append(name)
        yield

    monkeypatch.setattr(graph_locks, "cluster_shape_lock", lock)
    monkeypatch.setattr(graph_locks, "client_addresses", lambda: ["tcp://10.0.0.7:8786"])
    array = old(SlowStore(), chunks=(5, 4))
    zarrdask.append(da.from_array(more(-1, 3)), array)
    asked(array, -2, 3).compute()
    assert held == [f"{chunks_of(array).canonical_location}shape/"] * 2
    monkeypatch.setattr(graph_locks, "client_addresses", lambda: ["tcp://127.0.0.1:8786"])
    zarrdask.append(da.from_array(more(-3, 3)), array)
    assert len(held) == 2


def test_the_lock_of_a_shape_is_none_of_a_unit():
    array = zarrdask.create_array({}, shape=(), dtype="i4")
    with array.node_path.lock("shape"):
        array[...] = 5
        zarrdask.open_array(array.store, mode="r+").attrs["a"] = 1
    assert array[...] == 5
