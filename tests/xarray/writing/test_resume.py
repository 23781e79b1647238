"""Writes of datasets that record the blocks they have stored, so that they can be resumed."""

from contextlib import suppress
from types import MappingProxyType

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.parallel.graph.writing.test_resume import Computed, Stop, Stopping
from zarrdask.errors import MetadataError, NodeExistsError, StoreError
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import open_zarr, to_zarr

BLOCKS = 12
#: The values of the two Dask variables of the dataset, in blocks of two.
T, P = np.arange(1.0, 13), np.arange(101.0, 113)


def dataset(computed, start=0, shift=0):
    computed.clear()

    def variable(values):
        x = da.from_array(values + shift, chunks=2)
        return "time", x.map_blocks(computed, dtype=values.dtype, meta=values[:0])

    time = np.arange(start, start + 12)
    return xr.Dataset(
        {"t": variable(T), "p": variable(P), "n": ("time", time * 2)},
        {"time": time},
        {"title": f"from {start}"},
    )


def stored(start, stop):
    time = np.arange(start, stop)
    return {"t": np.resize(T, stop - start), "p": np.resize(P, stop - start), "n": time * 2}


class Case:
    start = 0
    options = MappingProxyType({})

    def before(self, store):
        pass

    def write(self, store, computed, **options):
        return to_zarr(dataset(computed, self.start), store, **self.options, **options)

    def check(self, store):
        for options in ({}, {"consolidated": False}):
            with open_zarr(store, chunks=None, **options) as found:
                expected = stored(0, found.sizes["time"])
                assert found.sizes["time"] == self.start + 12
                assert found.title == f"from {self.start if 'region' not in self.options else 0}"
                for name, values in expected.items():
                    np.testing.assert_array_equal(found[name], values)
        assert not [key for key in store.list_prefix("") if "zarrdask" in key]
        assert not zarrdask.verify(store).problems

    def is_complete(self, store):
        try:
            self.check(store)
        except (AssertionError, OSError, KeyError):
            return False
        return True


class New(Case):
    options = MappingProxyType({"mode": "w-"})


class Replaced(Case):
    options = MappingProxyType({"mode": "w"})

    def before(self, store):
        to_zarr(xr.Dataset({"old": ("time", np.arange(4))}), store)


class Append(Case):
    start = 12
    options = MappingProxyType({"append_dim": "time"})

    def before(self, store):
        to_zarr(dataset(Computed()), store)


class Region(Case):
    options = MappingProxyType({"region": "auto"})

    def before(self, store):
        to_zarr(dataset(Computed(), shift=5), store)

    def write(self, store, computed, **options):
        new = dataset(computed).drop_vars("n")
        return to_zarr(new, store, region={"time": slice(0, 12)}, **options)


CASES = [New(), Replaced(), Append(), Region()]


def written(case, store, computed, stop_at=None, **options):
    """Write what a case says; return how many blocks were computed."""
    computed.clear()
    computed.stop_at = stop_at
    try:
        result = case.write(store, computed, resume=True, **options)
        if result is not None:
            result.compute()
    finally:
        computed.stop_at = None
        count = len(computed)
        computed.clear()
    return count


@pytest.fixture(autouse=True)
def one_after_another():
    with dask.config.set({"scheduler": "sync", "zarrdask.fuse-blocks": 0}):
        yield


@pytest.mark.parametrize("compute", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_only_missing_blocks_are_computed(case, compute):
    store, computed = MemoryStore({}), Computed()
    case.before(store)
    for _ in range(2):
        with pytest.raises(Stop):
            written(case, store, computed, 4, compute=compute)
    assert written(case, store, computed, compute=compute) == BLOCKS - 8
    case.check(store)


@pytest.mark.filterwarnings("ignore:.*was interrupted")
@pytest.mark.stress
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_a_write_that_is_killed_anywhere_is_resumed(case, is_done):
    computed, store = Computed(), Stopping({})
    case.before(store)
    store.changes = []
    written(case, store, computed)
    last = len(store.changes)
    # After a change the store is as it is before the next one.
    ends = (1, last // 2, last)
    for number in ends if is_done else (1, 2, 4, last // 2, *range(last - 9, last + 1)):
        store = Stopping({})
        case.before(store)
        store.changes, store.stop_at, store.is_done = [], number, is_done
        with pytest.raises(Stop):
            written(case, store, computed)
        store.stop_at = None
        if not case.is_complete(store):
            count = written(case, store, computed)
            assert count == 0 or number < last - 9
        case.check(store)


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_another_source_is_refused_and_restart_begins_again(case):
    store, computed = MemoryStore({}), Computed()
    case.before(store)
    with pytest.raises(Stop):
        written(case, store, computed, 4)
    before = dict(store.values)
    other = dataset(computed, case.start, shift=1).drop_vars(
        "n" if "region" in case.options else []
    )
    options = {"region": {"time": slice(0, 12)}} if "region" in case.options else case.options
    with pytest.raises(StoreError, match="resume='restart'"):
        to_zarr(other, store, resume=True, **options)
    assert store.values == before
    computed.clear()
    to_zarr(other, store, resume="restart", **options)
    with open_zarr(store, chunks=None) as found:
        np.testing.assert_array_equal(found.t[-12:], T + 1)
    assert not [key for key in store.list_prefix("") if "zarrdask" in key]


def test_an_append_without_it_discards_the_record():
    store, computed, case = MemoryStore({}), Computed(), Append()
    case.before(store)
    with pytest.raises(Stop):
        written(case, store, computed, 4)
    to_zarr(dataset(computed, 12), store, append_dim="time")
    case.check(store)


def test_a_tree_is_resumed():
    store, computed = MemoryStore({}), Computed()

    def write():
        tree = xr.DataTree.from_dict({"/": dataset(computed), "/below": dataset(computed)})
        computed.clear()
        to_zarr(tree, store, resume=True)

    computed.stop_at = 4
    with suppress(Stop):
        write()
    computed.stop_at = None
    write()
    assert len(computed) == BLOCKS - 4
    assert not zarrdask.verify(store).problems


@pytest.mark.slow
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_same_call_does_nothing_when_a_new_dataset_is_complete(tmp_path, zarr_format):
    computed, place = Computed(), tmp_path / "a"

    def write(**changes):
        computed.clear()  # the names of the arrays tell what it holds
        tree = xr.DataTree.from_dict({"/": dataset(computed), "/below": dataset(computed)})
        tree.attrs |= changes
        to_zarr(tree, place, zarr_format=zarr_format, resume=True)
        return len(computed)

    assert write() == BLOCKS  # which both nodes share
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    assert write() == 0
    with dask.config.set({"zarrdask.lock-directory": str(tmp_path / "another machine")}):
        assert write() == BLOCKS  # which both nodes share
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    with pytest.raises(NodeExistsError):
        write(title="another one")
    # Of values that Dask computes, and of values in memory.
    for name in ("t", "n"):
        z = zarrdask.open_array(place, f"below/{name}", mode="r+")
        old = z[...]
        z[2] = 99
        with pytest.raises(NodeExistsError):
            write()
        assert zarrdask.open_array(place, f"below/{name}")[2].max() == 99
        z[...] = old
        write()


def test_metadata_that_come_first_are_refused():
    with pytest.raises(MetadataError, match="commit"):
        to_zarr(dataset(Computed()), MemoryStore({}), resume=True, commit="first")
