"""Writes that record the blocks they have stored, so that the same call writes the missing ones."""

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.parallel.graph import resumed
from tests.storage.unlisted import UnlistedStore
from zarrdask.arrays.hierarchy.changes.append import AppendedArray
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
    UnsupportedError,
)
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(1, 12 * 10 + 1, dtype="i4").reshape(12, 10)
BLOCKS = 6 * 5


class Stop(BaseException):
    """The end of the process, in a test."""


class Computed(list):
    """The blocks that are computed; `stop_at` is the number of those before the process ends."""

    stop_at = None

    def __dask_tokenize__(self):
        return "blocks of a test"

    def __call__(self, block):
        if len(self) == self.stop_at:
            raise Stop
        self.append(block)
        return block


def array(computed, values=VALUES):
    x = da.from_array(values, chunks=(2, 2))
    return x.map_blocks(computed, dtype=values.dtype, meta=values[:0, :0])


def interrupted(place, computed, after, **options):
    """Write until some blocks are computed; return the notes of the error."""
    computed.clear()
    computed.stop_at = after
    with pytest.raises(Stop) as caught:
        zarrdask.to_zarr(array(computed), place, resume=True, **options)
    computed.stop_at = None
    computed.clear()
    return caught.value.__notes__


def files(place):
    return sorted(str(p.relative_to(place)) for p in Path(place).rglob("*") if p.is_file())


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.mark.parametrize("fuse_blocks", [0, 4])
@pytest.mark.parametrize("options", [{}, {"shards": (2, 2), "chunks": (1, 2)}, {"zarr_format": 2}])
def test_only_missing_blocks_are_computed(tmp_path, fuse_blocks, options):
    computed, place = Computed(), tmp_path / "a"
    with dask.config.set({"zarrdask.fuse-blocks": fuse_blocks}):
        notes = interrupted(place, computed, 13, **options)
        assert "the same call with resume=True writes the missing blocks" in notes[-1]
        with pytest.raises(zarrdask.errors.NodeNotFoundError):
            zarrdask.open_array(place)
        zarrdask.to_zarr(array(computed), place, resume=True, **options)
    repeated = max(fuse_blocks - 1, 0)  # those of the fused task that was not finished
    assert BLOCKS - 13 <= len(computed) <= BLOCKS - 13 + repeated
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES)
    whole = tmp_path / "whole"
    zarrdask.to_zarr(array(computed), whole, **options)
    assert files(place) == files(whole)


def test_it_may_be_interrupted_again_and_again(tmp_path):
    computed, place = Computed(), tmp_path / "a"
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        for _ in range(4):
            interrupted(place, computed, 6)
        zarrdask.to_zarr(array(computed), place, resume=True)
    assert len(computed) == BLOCKS - 24
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES)


@pytest.mark.parametrize("commit", ["first", "last"])
@pytest.mark.parametrize("compute", [True, False])
def test_a_write_without_resume_replaces_what_was_interrupted(tmp_path, commit, compute):
    interrupted(tmp_path / "a", Computed(), 6)
    later = zarrdask.to_zarr(array(Computed()), tmp_path / "a", commit=commit, compute=compute)
    if later is not None:
        later.compute()
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "a")[...], VALUES)
    assert not any("zarrdask" in name for name in files(tmp_path / "a"))


def test_nothing_is_computed_if_only_the_document_is_missing(tmp_path, monkeypatch):
    computed, place = Computed(), tmp_path / "a"
    with monkeypatch.context() as patch:
        patch.setattr("zarrdask.arrays.hierarchy.changes.new_array.create_after_chunks", None)
        with pytest.raises(TypeError):
            zarrdask.to_zarr(array(computed), place, resume=True)
    computed.clear()
    zarrdask.to_zarr(array(computed), place, resume=True)
    assert not computed
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES)


class Stopping(MemoryStore):
    """A store at whose n-th change the process ends, before or after it."""

    stop_at, is_done = None, False

    def __init__(self, values):
        super().__init__(values)
        self.changes = []

    def _change(self, key, change):
        self.changes.append(key)
        stops = len(self.changes) == self.stop_at
        result = None if stops and not self.is_done else change()
        if stops:
            raise Stop
        return result

    def set(self, key, value):
        self._change(key, lambda: super(Stopping, self).set(key, value))

    def create(self, key, value):
        return self._change(key, lambda: super(Stopping, self).create(key, value))

    def erase(self, key):
        self._change(f"-{key}", lambda: super(Stopping, self).erase(key))


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_write_that_is_killed_while_it_ends_computes_nothing_again(overwrite, is_done):
    computed, values = Computed(), VALUES[:4, :4]

    def write(stop_at):
        store = Stopping({})
        if overwrite:
            zarrdask.to_zarr(array(computed, values + 1), store)
        store.changes, store.stop_at, store.is_done = [], stop_at, is_done
        computed.clear()
        try:
            zarrdask.to_zarr(array(computed, values), store, resume=True, overwrite=overwrite)
        finally:
            store.stop_at = None
            computed.clear()
            stores.append(store)

    stores = []
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        write(None)
        changes = stores[-1].changes
        stored = max(n for n, key in enumerate(changes, 1) if key.startswith("c/"))
        for number in range(stored + 2, len(changes) + 1):
            with pytest.raises(Stop):
                write(number)
            with suppress(NodeExistsError):
                zarrdask.to_zarr(array(computed, values), stores[-1], resume=True)
            assert not computed
            np.testing.assert_array_equal(zarrdask.open_array(stores[-1])[...], values)
            assert not [key for key in stores[-1].list_prefix("") if "zarrdask" in key]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ("source", "name of the Dask array"),
        ("options", "metadata of the target"),
        ("blocks", "name of the Dask array, chunks or data type of the Dask array"),
        ("settings", "zarrdask.block-size or zarrdask.write-empty-chunks"),
    ],
)
def test_another_write_is_refused_and_overwrite_begins_again(tmp_path, change, differs):
    computed, place = Computed(), tmp_path / "a"
    interrupted(place, computed, 13, chunks=(2, 2))
    x, options = array(computed), {"chunks": (2, 2)}
    if change == "source":
        x = array(computed, VALUES + 1)
    elif change == "options":
        options["fill_value"] = 7
    elif change == "blocks":
        x = x.rechunk((4, 2))
    before = files(place)
    is_set = {"zarrdask.write-empty-chunks": change == "settings"}
    refused = pytest.raises(StoreError, match=rf"what differs: {differs}\).*overwrite=True")
    with refused as caught, dask.config.set(is_set):
        zarrdask.to_zarr(x, place, resume=True, **options)
    assert files(place) == before
    assert "nothing has changed" in caught.value.__notes__[-1]
    names = (x.name, array(computed).name) if x.name != array(computed).name else (None, None)
    assert (caught.value.found, caught.value.expected) == names
    zarrdask.to_zarr(x, place, resume=True, overwrite=True, **options)
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], x.compute())
    assert not [name for name in files(place) if "zarrdask" in name]


def test_an_array_that_exists_is_not_replaced_unless_that_is_asked_for(tmp_path):
    computed, place = Computed(), tmp_path / "a"
    zarrdask.to_zarr(array(computed, VALUES + 1), place)
    with pytest.raises(NodeExistsError):
        zarrdask.to_zarr(array(computed), place, resume=True)
    interrupted(place, computed, 13, overwrite=True)
    zarrdask.to_zarr(array(computed), place, resume=True, overwrite=True)
    assert len(computed) < BLOCKS
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES)


def whole_write(place, computed, **options):
    """Write an array in a group, and two others by one call; return how many were computed."""
    computed.clear()  # the names of the arrays tell what it holds
    one, other = (array(computed, VALUES[:4, :4] + n) for n in range(2))
    options = {"resume": True, "compressors": ()} | options
    zarrdask.to_zarr(one, place, "a", **options)
    several = {"b": other, "c/d": da.zeros(3)}
    zarrdask.to_zarr(several, place, **options)
    return len(computed)


def content(place):
    """Return what files hold, and whether they were written again."""
    paths = [Path(place) / name for name in files(place)]
    return [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in paths]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}, {"shards": "auto"}])
def test_the_same_call_does_nothing_when_the_write_is_complete(tmp_path, options):
    computed, place = Computed(), tmp_path / "a"
    zarrdask.create_group(place, zarr_format=options.get("zarr_format", 3))
    count = whole_write(place, computed, **options)
    before = content(place)
    assert whole_write(place, computed, **options) == 0
    with dask.config.set({"zarrdask.lock-directory": str(tmp_path / "another machine")}):
        assert whole_write(place, computed, **options) == count
        computed.clear()
        later = zarrdask.to_zarr(
            array(computed, VALUES[:4, :4]),
            place, "a", resume=True, compute=False, compressors=(), **options,
        )  # fmt: skip
        later.compute()
    assert content(place) == before


CHANGES = {
    "element": lambda z: z.__setitem__((3, 3), 7),
    "elements that are no more stored": lambda z: z.__setitem__(..., 0),
    "attribute": lambda z: z.attrs.update(units="m"),
    "region": lambda z: z.erase(np.s_[:2]),
    "another write": lambda z: zarrdask.to_zarr(da.from_array(VALUES[:4, :4] * 2), z),
}


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_was_changed_since_is_not_taken_for_complete(tmp_path, change, is_known):
    computed = Computed()
    for name in ("a", "b"):
        place = tmp_path / name
        zarrdask.create_group(place)
        whole_write(place, computed)
        CHANGES[change](zarrdask.open_array(place, name, mode="r+"))
        before, folder = content(place), None if is_known else str(tmp_path / "another machine")
        with (
            dask.config.set({"zarrdask.lock-directory": folder}),
            pytest.raises(NodeExistsError),
        ):
            whole_write(place, computed)
        assert content(place) == before


def test_a_write_without_resume_begins_again(tmp_path):
    computed, place = Computed(), tmp_path / "a"
    interrupted(place, computed, 13)
    zarrdask.to_zarr(array(computed, VALUES + 1), place)
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES + 1)
    assert not [name for name in files(place) if "zarrdask" in name]


def test_a_damaged_record_of_blocks_is_written_again(tmp_path):
    computed, place = Computed(), tmp_path / "a"
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        interrupted(place, computed, 13)
        for number, name in enumerate(name for name in files(place) if "/blocks/" in name):
            if number < 3:
                (place / name).write_bytes([b"", b"[[[0,2", b"7"][number])
        zarrdask.to_zarr(array(computed), place, resume=True)
    assert len(computed) == BLOCKS - 10
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES)


def test_a_record_whose_chunks_were_removed_counts_as_none(tmp_path):
    computed, place = Computed(), tmp_path / "a"
    interrupted(place, computed, 13)
    shutil.rmtree(place / "c")
    zarrdask.to_zarr(array(computed), place, resume=True)
    assert len(computed) == BLOCKS
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES)


@pytest.mark.parametrize("removed", ["c", ".zarrdask-rewrite/plan.json"])
def test_blocks_of_a_run_that_can_not_be_resumed_are_not_taken_for_those_of_the_next(
    tmp_path, removed
):
    computed, place = Computed(), tmp_path / "a"
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        interrupted(place, computed, 13)
        (shutil.rmtree if removed == "c" else os.unlink)(place / removed)
        interrupted(place, computed, 4)
        zarrdask.to_zarr(array(computed), place, resume=True)
    assert len(computed) == BLOCKS - 4
    np.testing.assert_array_equal(zarrdask.open_array(place)[...], VALUES)


class Refusing(MemoryStore):
    """A store with latency that refuses some values, while others are in flight."""

    capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS)
    refused = ()

    def set(self, key, value):
        if key in self.refused:
            raise StoreError("refused", key=key)
        super().set(key, value)


def test_blocks_in_flight_are_recorded_when_they_are_stored():
    store, computed = Refusing({}), Computed()
    store.refused = ("c/3/3",)
    with dask.config.set({"zarrdask.fuse-blocks": 8}):
        with pytest.raises(StoreError, match="refused"):
            zarrdask.to_zarr(array(computed), store, resume=True)
        stored = [key for key in store.list_prefix("") if key.startswith("c/")]
        store.refused = ()
        computed.clear()
        zarrdask.to_zarr(array(computed), store, resume=True)
    assert BLOCKS - len(stored) <= len(computed) < BLOCKS
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], VALUES)


def test_workers_in_other_processes_record_their_blocks(tmp_path):
    x = da.from_array(VALUES, chunks=(2, 2)) + 1
    zarrdask.create_group(tmp_path)
    with dask.config.set(scheduler="processes", num_workers=2):
        zarrdask.to_zarr(x, tmp_path, "a", resume=True)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path, "a")[...], VALUES + 1)


class Case:
    """A write to nodes that may exist: what is there before, the call, and what it leaves."""

    def before(self, store):
        zarrdask.create_group(store)
        z = zarrdask.create_array(store, "a", shape=(12, 10), chunks=(2, 2), dtype="i4")
        z[...] = 1000

    def read(self, store):
        return zarrdask.open_array(store, "a")[...]

    def is_complete(self, store):
        if any("zarrdask" in key for key in store.list_prefix("")):
            return False
        try:
            return np.array_equal(self.read(store), self.expected)
        except NodeNotFoundError:
            return False


class Append(Case):
    expected = np.concatenate([np.full((12, 10), 1000), VALUES])

    def write(self, store, x, **options):
        return zarrdask.append(x, store, "a", **options)


class Region(Case):
    expected = np.concatenate([VALUES, np.full((3, 10), 1000)])

    def before(self, store):
        zarrdask.create_group(store)
        z = zarrdask.create_array(store, "a", shape=(15, 10), chunks=(2, 2), dtype="i4")
        z[...] = 1000

    def write(self, store, x, **options):
        return zarrdask.to_zarr(x, store, "a", region=np.s_[:12], **options)


class Open(Case):
    expected = VALUES

    def write(self, store, x, **options):
        return zarrdask.to_zarr(x, zarrdask.open_array(store, "a", mode="r+"), **options)


class Several(Case):
    expected = np.concatenate([VALUES[:6], VALUES[6:] * 2])

    def before(self, store):
        zarrdask.create_group(store)

    def write(self, store, x, **options):
        return zarrdask.to_zarr({"a": x[:6], "g/b": x[6:] * 2}, store, **options)

    def read(self, store):
        arrays = [zarrdask.open_array(store, name)[...] for name in ("a", "g/b")]
        return np.concatenate(arrays)


class SeveralOverwritten(Several):
    def before(self, store):
        zarrdask.create_array(store, "a", shape=(6, 10), dtype="i4", chunks=(2, 2))[...] = 7

    def write(self, store, x, **options):
        return super().write(store, x, overwrite=True, **options)


CASES = [Append(), Region(), Open(), Several(), SeveralOverwritten()]


def written(case, store, computed, stop_at=None, **options):
    """Write what a case says; return how many blocks were computed."""
    computed.clear()
    x = array(computed)
    computed.stop_at = stop_at
    try:
        result = case.write(store, x, resume=options.pop("resume", True), **options)
        if result is not None:
            result.compute()
    finally:
        computed.stop_at = None
        count = len(computed)
        computed.clear()
    return count


def check(case, store):
    np.testing.assert_array_equal(case.read(store), case.expected)
    assert not [key for key in store.list_prefix("") if "zarrdask" in key]
    assert not zarrdask.verify(store).problems


@pytest.mark.parametrize("compute", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_other_writes_compute_only_missing_blocks(case, compute):
    store, computed = MemoryStore({}), Computed()
    case.before(store)
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        for _ in range(2):
            with pytest.raises(Stop):
                written(case, store, computed, 7, compute=compute)
        assert written(case, store, computed, compute=compute) == BLOCKS - 14
    check(case, store)


@pytest.mark.stress
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_other_writes_that_are_killed_anywhere_compute_nothing_twice(case, is_done):
    computed, store = Computed(), Stopping({})
    case.before(store)
    store.changes = []
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        written(case, store, computed)
        last = len(store.changes)
        # After a change the store is as it is before the next one.
        ends = (1, last // 2, last)
        numbers = ends if is_done else (*range(1, 8), last // 2, *range(last - 8, last + 1))
        for number in numbers:
            store = Stopping({})
            case.before(store)
            store.changes, store.stop_at, store.is_done = [], number, is_done
            with pytest.raises(Stop):
                written(case, store, computed)
            stored = {key for key in store.changes if "/c/" in key and key[0] != "-"}
            store.stop_at = None
            if not case.is_complete(store):
                count = written(case, store, computed)
                # That of the block whose chunk or record could not be stored may be repeated.
                assert count <= BLOCKS - len(stored) + 1
            check(case, store)


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_other_writes_refuse_another_source_and_restart_begins_again(case):
    store, computed = MemoryStore({}), Computed()
    case.before(store)
    with pytest.raises(Stop) as caught:
        written(case, store, computed, 7)
    assert "the same call with resume=True writes the missing blocks" in caught.value.__notes__[-1]
    before = dict(store.values)
    with pytest.raises(StoreError, match="resume='restart'") as caught:
        case.write(store, array(computed, VALUES + 1), resume=True)
    assert store.values == before
    assert "nothing has changed" in caught.value.__notes__[-1]
    computed.clear()
    case.write(store, array(computed, VALUES + 1), resume="restart")
    assert len(computed) == BLOCKS
    assert not [key for key in store.list_prefix("") if "zarrdask" in key]


def test_an_append_that_another_one_has_followed_begins_again():
    store, computed, case = MemoryStore({}), Computed(), Append()
    case.before(store)
    with pytest.raises(Stop):
        written(case, store, computed, 7)
    zarrdask.append(np.full((12, 10), 5), store, "a")
    assert written(case, store, computed) == BLOCKS
    expected = np.concatenate([np.full((12, 10), 1000), np.full((12, 10), 5), VALUES])
    np.testing.assert_array_equal(case.read(store), expected)


def _append_less(z):
    zarrdask.append(np.full((1, 10), 5), z)


@pytest.mark.parametrize("change", [lambda z: None, _append_less, lambda z: z.resize((9, 10))])
def test_values_of_an_interrupted_append_do_not_appear_when_the_array_grows(change):
    store, computed, case = MemoryStore({}), Computed(), Append()
    case.before(store)
    with pytest.raises(Stop):
        written(case, store, computed, 20)
    z = zarrdask.open_array(store, "a", mode="r+")
    change(z)
    old = z[...]
    z.resize((40, 10))
    np.testing.assert_array_equal(z[: len(old)], old)
    assert (z[len(old) :] == z.fill_value).all()
    assert not [key for key in store.list_prefix("") if "zarrdask" in key]


def test_an_append_whose_values_another_one_replaced_begins_again(monkeypatch):
    store, computed, case = Stopping({}), Computed(), Append()
    case.before(store)
    with pytest.raises(Stop):
        written(case, store, computed, 7)
    other = array(computed, VALUES + 1)
    computed.stop_at = 5
    with monkeypatch.context() as patch:
        patch.setattr(AppendedArray, "abort", lambda self: "")  # as if the process were killed
        with pytest.raises(Stop):
            zarrdask.append(other, store, "a")
    computed.stop_at = None
    assert written(case, store, computed) == BLOCKS
    np.testing.assert_array_equal(case.read(store), case.expected)


def test_a_region_leaves_no_directories(tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=(12, 10), chunks=(2, 2), dtype="i4")
    zarrdask.to_zarr(array(Computed()), z, resume=True)
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"c", "zarr.json"}


def test_two_regions_are_resumed_independently():
    store, computed = MemoryStore({}), Computed()
    z = zarrdask.create_array(store, shape=(24, 10), chunks=(2, 2), dtype="i4")
    for start in (0, 12):
        computed.clear()
        computed.stop_at = 7
        with pytest.raises(Stop):
            zarrdask.to_zarr(array(computed), z, region=np.s_[start : start + 12], resume=True)
    computed.stop_at = None
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        for start in (0, 12):
            computed.clear()
            x = array(computed)
            zarrdask.to_zarr(x, z, region=np.s_[start : start + 12], resume=True)
            assert len(computed) == BLOCKS - 7
    np.testing.assert_array_equal(z[...], np.concatenate([VALUES, VALUES]))


def test_blocks_of_a_region_that_another_writer_has_changed_meanwhile_are_written_again(tmp_path):
    computed, values = Computed(), VALUES.copy()
    values[4:8, 2:4] = 0  # the fill value: nothing is stored
    z = zarrdask.create_array(tmp_path, shape=(16, 10), chunks=(2, 2), dtype="i4")

    def write():
        computed.clear()
        zarrdask.to_zarr(array(computed, values), z, region=np.s_[4:], resume=True)

    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        for _ in range(2):
            computed.stop_at = 14
            with pytest.raises(Stop):
                write()
        computed.stop_at = None
        z[10:11, 9:] = -1
        changed = tmp_path / "c/5/4"
        later = changed.stat().st_mtime + 1
        os.utime(changed, (later, later))
        z.erase(np.s_[12:16, 6:8])
        write()
    assert len(computed) == BLOCKS - 28 + 3
    np.testing.assert_array_equal(z[4:], values)


@pytest.mark.parametrize("change", [lambda z: z.resize((3, 10)), lambda z: z.erase(np.s_[3:])])
def test_what_was_erased_meanwhile_is_written_again(change):
    store, computed, case = MemoryStore({}), Computed(), Region()
    case.before(store)
    with pytest.raises(Stop):
        written(case, store, computed, 20)
    z = zarrdask.open_array(store, "a", mode="r+")
    change(z)
    z.resize((15, 10))
    assert written(case, store, computed) == BLOCKS
    np.testing.assert_array_equal(case.read(store)[:12], VALUES)


def test_what_can_not_be_resumed_is_refused(tmp_path):
    x = da.from_array(VALUES, chunks=(2, 2))
    zarrdask.to_zarr(x, tmp_path / "a")
    stored = zarrdask.open_array(tmp_path / "a", mode="r+")
    for arguments, options in [
        ((zarrdask.from_zarr(stored)[::-1], stored), {}),
        ((x, tmp_path / "b"), {"compute": False, "return_stored": True}),
        ((x, UnlistedStore()), {}),
        (({"a": x}, UnlistedStore()), {}),
    ]:
        with pytest.raises(UnsupportedError, match="resume"):
            zarrdask.to_zarr(*arguments, resume=True, **options)
    for value in ("again", 1, None):
        with pytest.raises(MetadataError, match="'restart'"):
            zarrdask.to_zarr(x, tmp_path / "b", resume=value)
    assert not (tmp_path / "b").exists()


def test_a_killed_write_is_resumed(tmp_path):
    resumed.kill_until_done(tmp_path, "new", tmp_path / "a.zarr", None, {}, 0)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(14))  # each verb, with and without fused tasks
def test_a_write_that_is_killed_anywhere_is_resumed(tmp_path, seed):
    verb = resumed.VERBS[seed % len(resumed.VERBS)]
    resumed.kill_until_done(tmp_path, verb, tmp_path / "a.zarr", None, {}, seed)


@pytest.mark.stress
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [0, 6])
def test_a_write_whose_workers_are_killed_is_resumed(tmp_path, seed):
    verb = resumed.VERBS[seed]
    resumed.kill_until_done(tmp_path, verb, tmp_path / "a.zarr", None, {}, seed, "cluster")
