"""Plans of reads: what they count is what a read does."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.errors import SelectionError
from zarrdask.storage.memory import MappingStore


class Counting(MappingStore):
    """A store that counts the chunks that are read from it; it may be far away."""

    def __init__(self):
        super().__init__({})
        self.keys = []

    def get(self, key):
        if key.startswith("c/"):
            self.keys.append(key)
        return super().get(key)


@pytest.fixture
def store():
    """Return a store with an array in chunks of different sizes along both axes."""
    store = Counting()
    z = zarrdask.create_array(store, shape=(20, 30), dtype="i4", chunks=(6, 7), compressors=[])
    z[...] = np.arange(600).reshape(20, 30)
    store.keys.clear()
    return store


READS = {
    "whole": lambda x: x,
    "slice": lambda x: x[3:9, 10:12],
    "integer": lambda x: x[:, 5],
    "steps": lambda x: x[::8, ::15],
    "reduced": lambda x: x.sum(axis=0),
    "elementwise": lambda x: (x + 1)[5:7] * 2,
    "list": lambda x: x[[1, 17]],
    "twice": lambda x: x[:10].sum() + x[5:].sum(),
    "empty": lambda x: x[4:4],
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("chunks", ["auto", "stored", (5, 30)])
def test_a_plan_counts_what_a_computation_reads(store, name, chunks):
    x = READS[name](zarrdask.from_zarr(store, chunks=chunks))
    store.keys.clear()
    plan = zarrdask.plan_read(x)
    assert store.keys == []
    with dask.config.set(scheduler="sync"):
        x.compute()
    assert plan.requests == len(store.keys)
    assert plan.objects == len({*store.keys})
    assert plan.decoded == len(store.keys) * 6 * 7 * 4
    assert plan.repeated == sum(store.keys.count(key) > 1 for key in {*store.keys})


@pytest.mark.parametrize("index", [(), np.s_[3:9, 10:12], np.s_[..., 5], np.s_[19]])
def test_a_plan_without_dask(store, index):
    z = zarrdask.open_array(store)
    plan = zarrdask.plan_read(z, index)
    values = z[index]
    assert plan.requests == plan.objects == len(store.keys)
    assert plan.needed == values.nbytes
    assert [reads.tasks for reads in plan.arrays] == [1]


def test_an_array_of_dask_around_a_stored_array(store):
    x = da.from_array(zarrdask.open_array(store), chunks=(10, 30))
    plan = zarrdask.plan_read(x, np.s_[:15])
    assert [reads.tasks for reads in plan.arrays] == [2]
    assert plan.repeated == 5


def test_chunks_that_are_not_stored_are_left_out(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=(8, 8), dtype="u1", chunks=2, compressors=())
    z[:4, :3] = 1
    x = zarrdask.from_zarr(z, chunks=(3, 8))
    [reads] = zarrdask.plan_read(x[:, 1:]).arrays
    assert (reads.chunks, reads.missing, reads.objects, reads.decodes) == (4, 12, 4, 6)
    # The first task reads rows 0 to 2, and two columns of them from each of two chunks but one.
    assert (reads.decoded, reads.fetched, reads.needed) == (6 * 4, 6 * 4, 4 * 3)
    assert list(reads.repeated_chunks()) == [(1, 0), (1, 1)]
    assert "chunks    4, by 20 requests; 12 more not stored" in str(reads)
    assert "dotted: 12 not stored" in reads.picture().notes[1]
    [reads] = zarrdask.plan_read(z, np.s_[5:, ::3]).arrays
    assert (reads.chunks, reads.missing, reads.fetched, reads.needed) == (0, 6, 0, 0)


def test_chunks_of_shards_that_are_not_stored_are_left_out():
    z = zarrdask.create_array({}, shape=(7, 8), dtype="u1", chunks=2, shards=4, compressors=())
    z[:6, 2:4] = 1
    [reads] = zarrdask.plan_read(z, np.s_[1:]).arrays
    assert (reads.chunks, reads.missing, reads.objects, reads.fetched) == (3, 13, 2, 12)
    [reads] = zarrdask.plan_read(z, np.s_[4:, 3:]).arrays
    assert (reads.chunks, reads.missing, reads.objects, reads.needed) == (1, 5, 1, 2)


def test_what_is_stored_far_away_is_not_asked_for(store):
    [reads] = zarrdask.plan_read(store).arrays
    assert (reads.missing, reads.fetched, reads.to_dict()["fetched"]) == (None, None, None)


def test_several_arrays_are_planned_together(tmp_path):
    for name in "ab":
        zarrdask.create_array(tmp_path / name, shape=(4,), dtype="f8", chunks=2)[...] = 1
    plan = zarrdask.plan_read(
        zarrdask.from_zarr(tmp_path / "a") + zarrdask.from_zarr(tmp_path / "b")
    )
    assert [reads.location for reads in plan.arrays] == [str(tmp_path / n) for n in "ab"]
    assert (plan.requests, plan.amplification) == (4, 1)
    assert plan.to_dict()["arrays"][1]["chunks"] == 2


def test_the_chunks_that_are_decoded_twice_are_named(store):
    plan = zarrdask.plan_read(zarrdask.from_zarr(store, chunks=(10, 30))[:, :7])
    [reads] = plan.arrays
    assert list(reads.repeated_chunks()) == [(1, 0)]
    assert "1 chunk decoded by more than one task, 1 decode too many: (1, 0) 2x" in str(plan)
    assert "decoded 2 times" in plan.svg()
    assert "2x" in plan._repr_html_()


def test_a_drawing_has_the_chunks_that_are_read(store):
    plan = zarrdask.plan_read(store, np.s_[:6, :7])
    assert plan.svg().count("<title>") == 1
    assert zarrdask.plan_read(store, np.s_[:6]).svg(axes=(1,)).count("<title>") == 5


def test_an_array_without_axes_is_drawn():
    z = zarrdask.create_array({}, shape=(), dtype="f8")
    z[...] = 1
    assert zarrdask.plan_read(z).svg().count("<title>") == 1


def test_what_reads_nothing_is_an_empty_plan():
    plan = zarrdask.plan_read(da.ones(3))
    assert str(plan) == plan._repr_html_() == "no stored array is read"
    assert (plan.arrays, plan.svg(), plan.requests) == ((), "", 0)


def test_only_basic_indices_are_planned(store):
    with pytest.raises(SelectionError, match="only a basic index"):
        zarrdask.plan_read(store, [1, 2])
