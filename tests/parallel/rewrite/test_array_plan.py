"""Rewrites that are cut short, beside others who change source or target meanwhile."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zarrdask
from tests.parallel.rewrite.cut_short import CutShort, cut_short
from zarrdask.arrays.hierarchy.changes import journal
from zarrdask.arrays.hierarchy.changes.append import AppendedArray
from zarrdask.parallel.rewrite import destination
from zarrdask.parallel.rewrite.passes import Pass

VALUES = np.arange(64 * 64).reshape(64, 64)


@pytest.fixture
def source(tmp_path):
    array = zarrdask.create_array(tmp_path / "a", shape=(64, 64), dtype="i4", chunks=(8, 64))
    array[...] = VALUES
    return array


def columns(source, target, **options):
    return zarrdask.rechunk(
        source, target, chunks=(64, 8), max_mem=10_000, scheduler="sync", **options
    )


def finish(plan, **options):
    return plan.execute("sync", progress=False, **options)


def names(place):
    return sorted(path.name for path in place.iterdir())


@pytest.mark.parametrize("restart", [False, True])
def test_an_array_that_was_made_meanwhile_stays(source, tmp_path, monkeypatch, restart):
    cut_short(columns(source, tmp_path / "b"), monkeypatch)
    theirs = zarrdask.create_array(tmp_path / "b", shape=(64, 64), dtype="i4", chunks=(64, 8))
    assert not theirs[...].any()  # nothing of what was begun
    theirs[...] = -1
    with pytest.raises(zarrdask.errors.NodeExistsError):
        finish(columns(source, tmp_path / "b"), restart=restart)
    assert (theirs[...] == -1).all()


def test_what_was_cut_short_at_the_very_end_is_not_taken_for_the_next(
    source, tmp_path, monkeypatch
):
    def cut(*_, **__):
        raise CutShort

    with monkeypatch.context() as patch:
        patch.setattr(destination.Destination, "commit", cut)
        with pytest.raises(CutShort):
            finish(columns(source, tmp_path / "b"))
    # The same plan is complete but for its document. A plan that replaces the array is another run.
    found = finish(columns(source, tmp_path / "b"))
    np.testing.assert_array_equal(found[...], VALUES)
    source[...] = VALUES + 1000
    found = finish(columns(source, tmp_path / "b", overwrite=True))
    np.testing.assert_array_equal(found[...], VALUES + 1000)


def test_the_array_is_returned_even_if_the_record_is_due(source, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "WRITE_INTERVAL", 0)
    np.testing.assert_array_equal(finish(columns(source, tmp_path / "b"))[...], VALUES)
    region = np.s_[:8]
    longer = zarrdask.rechunk(source, tmp_path / "b", append=0, source_region=region)
    assert finish(longer).shape == (72, 64)


def test_of_two_at_once_one_does_it_and_nothing_is_left(source, tmp_path):
    def run(_):
        try:
            return finish(columns(source, tmp_path / "b"))
        except zarrdask.errors.NodeExistsError:
            return None

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, range(2)))
    assert any(found)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "b")[...], VALUES)
    assert names(tmp_path / "b") == ["c", "zarr.json"]


def test_a_source_that_was_changed_is_refused(source, tmp_path):
    plan = columns(source, tmp_path / "b")
    source.attrs["units"] = "K"  # that makes no difference
    source.resize((16, 64))
    with pytest.raises(zarrdask.errors.StoreError, match="plan it again"):
        finish(plan)
    assert not (tmp_path / "b").exists()


def test_an_array_that_grows_and_was_shrunk_meanwhile_gets_all_again(source, tmp_path, monkeypatch):
    target = zarrdask.create_array(tmp_path / "b", shape=(20, 64), dtype="i4", chunks=(10, 32))
    target[...] = VALUES[:20]

    def more():
        return zarrdask.rechunk(source, tmp_path / "b", append=0, max_mem=7000, scheduler="sync")

    cut_short(more(), monkeypatch, tasks=2)
    target.resize((5, 64))
    target.resize((20, 64))
    found = finish(more())
    np.testing.assert_array_equal(found[20:], VALUES[20:])


def test_what_was_added_is_not_added_twice(source, tmp_path, monkeypatch):
    target = zarrdask.create_array(tmp_path / "b", shape=(3, 64), dtype="i4", chunks=(10, 32))
    target[...] = VALUES[:3]

    def more(**options):
        return zarrdask.rechunk(source, tmp_path / "b", append=0, **options)

    grow = AppendedArray.grow

    def cut(*args, **options):
        grow(*args, **options)
        raise CutShort

    with monkeypatch.context() as patch:
        patch.setattr(AppendedArray, "grow", cut)
        with pytest.raises(CutShort):
            finish(more())
    # The record says that this run is over, so the next one is not taken for it.
    for _ in range(2):
        np.testing.assert_array_equal(finish(more())[...], VALUES)
    assert names(tmp_path / "b") == ["c", "zarr.json"]
    longer = finish(more(source_region=np.s_[:20]))
    np.testing.assert_array_equal(longer[...], [*VALUES, *VALUES[:20]])


@pytest.mark.parametrize("tasks", [3, 9])
def test_an_append_in_several_passes_repeats_none_of_its_tasks(tmp_path, monkeypatch, tasks):
    rows = zarrdask.create_array(tmp_path / "a", shape=(64, 64), dtype="i4", chunks=(1, 64))
    rows[...] = VALUES
    target = zarrdask.create_array(tmp_path / "b", shape=(64, 64), dtype="i4", chunks=(64, 1))
    target[...] = -VALUES

    def more():
        return zarrdask.rechunk(rows, target, append=0, source_region=..., max_mem=3000)

    stages = more().scheme.stages
    assert len(stages) == 2
    cut_short(more(), monkeypatch, tasks)
    done, call = [], Pass.__call__

    def count(self, number, *bytes_counter):
        done.append(number)
        return call(self, number, *bytes_counter)

    monkeypatch.setattr(Pass, "__call__", count)
    np.testing.assert_array_equal(finish(more())[...], [*-VALUES, *VALUES])
    assert len(done) == sum(stage.tasks for stage in stages) - tasks
    assert names(tmp_path / "b") == ["c", "zarr.json"]


@pytest.mark.parametrize("verb", [zarrdask.copy, zarrdask.rechunk])
def test_a_group_that_was_opened_for_reading_is_not_written_to(source, tmp_path, verb):
    zarrdask.create_group(tmp_path / "g")
    with pytest.raises(zarrdask.errors.ReadOnlyError):
        verb(source, zarrdask.open_group(tmp_path / "g"), overwrite=True)
    assert names(tmp_path / "g") == ["zarr.json"]


class TestGroup:
    @pytest.fixture
    def group(self, tmp_path):
        root = zarrdask.create_group(tmp_path / "g")
        for name in ("x", "y"):
            root.create_array(name, shape=(64, 64), dtype="i4", chunks=(8, 64))[...] = VALUES
        return root

    def test_what_else_is_there_stays_when_it_begins_anew(self, group, tmp_path, monkeypatch):
        target = tmp_path / "h"
        other = zarrdask.create_array(target / "other", shape=3, dtype="i4")
        other[...] = 5
        (target / "notes.txt").write_text("mine")
        cut_short(columns(group, target), monkeypatch)
        found = finish(columns(group, target), restart=True)
        np.testing.assert_array_equal(found["y"][...], VALUES)
        assert names(target) == ["notes.txt", "other", "x", "y", "zarr.json"]
        assert (other[...] == 5).all()

    def test_consolidated_metadata_have_all_arrays(self, group, tmp_path):
        zarrdask.consolidate_metadata(tmp_path / "g")
        finish(columns(zarrdask.open_group(tmp_path / "g"), tmp_path / "h"))
        assert list(zarrdask.open_group(tmp_path / "h", consolidated=True)) == ["x", "y"]

    @pytest.mark.parametrize("shape", [3, (64, 64)])
    def test_an_array_that_was_made_meanwhile_stays(self, group, tmp_path, monkeypatch, shape):
        cut_short(columns(group, tmp_path / "h"), monkeypatch)
        chunks = "auto" if shape == 3 else (64, 8)
        theirs = zarrdask.create_array(tmp_path / "h" / "y", shape=shape, dtype="i4", chunks=chunks)
        theirs[...] = 1
        with pytest.raises(zarrdask.errors.NodeExistsError):
            finish(columns(group, tmp_path / "h"))
        assert (theirs[...] == 1).all()

    def test_a_run_that_is_cut_short_between_arrays_goes_on(self, group, tmp_path, monkeypatch):
        target = tmp_path / "h"
        tasks = columns(group["x"], tmp_path / "one").tasks
        cut_short(columns(group, target), monkeypatch, tasks=tasks)
        done = (target / "x" / "zarr.json").stat().st_mtime_ns
        found = finish(columns(group, target))
        assert (target / "x" / "zarr.json").stat().st_mtime_ns == done
        for name in ("x", "y"):
            np.testing.assert_array_equal(found[name][...], VALUES)
        assert names(target) == ["x", "y", "zarr.json"]

    def test_an_array_that_was_removed_meanwhile_is_rewritten_again(
        self, group, tmp_path, monkeypatch
    ):
        target = tmp_path / "h"
        tasks = columns(group["x"], tmp_path / "one").tasks
        cut_short(columns(group, target), monkeypatch, tasks=tasks)
        del zarrdask.open_group(target, mode="r+")["x"]
        found = finish(columns(group, target))
        np.testing.assert_array_equal(found["x"][...], VALUES)

    @pytest.mark.parametrize("name", ["x", "y"])
    def test_a_restart_discards_complete_arrays(self, group, tmp_path, monkeypatch, name):
        target = tmp_path / "h"
        tasks = columns(group["x"], tmp_path / "one").tasks
        cut_short(columns(group, target), monkeypatch, tasks=tasks)
        other = zarrdask.create_group(tmp_path / "other")
        other.create_array(name, shape=(64, 64), dtype="i4", chunks=(8, 64))[...] = 1
        found = finish(columns(other, target), restart=True)
        assert (found[name][...] == 1).all()
        assert names(target) == [name, "zarr.json"]

    def test_it_may_take_the_place_of_an_array(self, group, source, tmp_path):
        found = finish(columns(group, tmp_path / "a", overwrite=True))
        np.testing.assert_array_equal(found["y"][...], VALUES)


def test_a_new_array_of_the_draft_shows_nothing_of_what_was_cut_short(source, monkeypatch):
    target = {}
    cut_short(columns(source, target, zarr_format="v3-draft"), monkeypatch)
    array = zarrdask.create_array(
        target, shape=(64, 64), dtype="i4", chunks=(64, 8), zarr_format="v3-draft"
    )
    assert array.nchunks_stored() == 0
