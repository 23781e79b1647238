"""Groups that are rewritten."""

import numpy as np
import pytest

import zarrdask
from tests.parallel.rewrite.arrays import Counted, check_group, data_of, keys, quietly
from tests.storage.faults import Faults, FaultyStore
from zarrdask.storage.memory import MemoryStore


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft"])
def test_all_arrays_of_a_group(group, zarr_format):
    target = MemoryStore()
    plan = zarrdask.rechunk(
        group, target, chunks={"a": (24, 2), "deep/c": (12, 3)}, zarr_format=zarr_format
    )
    assert list(plan) == ["a", "b", "deep/c"]
    assert len(plan) == 3
    assert plan.tasks == sum(plan[path].tasks for path in plan)
    assert plan.peak == max(plan[path].peak for path in plan)
    assert "2 groups, 3 arrays" in str(plan)
    assert "deep/c" in plan._repr_html_()
    found = quietly(plan)
    check_group(found, group)
    assert [found[path].chunks for path in plan] == [(24, 2), (7,), (12, 3)]
    assert {node.metadata.zarr_format for _, node in found.walk()} == {zarr_format}
    assert not [key for key in keys(target) if "rewrite" in key]


def test_a_group_by_one_rule_and_by_another_for_the_rest(group):
    found = quietly(zarrdask.rechunk(group, {}, chunks={"b": 10, None: (6, 6)}))
    check_group(found, group)
    assert [found[path].chunks for path in ("a", "b", "deep/c")] == [(6, 6), (10,), (6, 6)]


def test_a_name_that_no_array_has_is_refused(group):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"chunks.*'nosuch'"):
        zarrdask.rechunk(group, {}, chunks={"nosuch": 3})


@pytest.mark.parametrize("options", [{"append": 0}, {"source_region": np.s_[:3]}], ids=str)
def test_a_group_is_rewritten_as_a_whole(group, options):
    with pytest.raises(zarrdask.errors.MetadataError, match="whole"):
        zarrdask.rechunk(group, {}, **options)


def test_an_empty_group():
    group = zarrdask.create_group({}, attributes={"a": 1})
    plan = zarrdask.rechunk(group, MemoryStore())
    assert (plan.tasks, plan.peak, len(plan)) == (0, 0, 0)
    assert quietly(plan).attrs == {"a": 1}


def test_arrays_of_a_group_that_are_done_are_not_done_again(group):
    target = Counted()
    broken = FaultyStore(target, Faults())
    plan = zarrdask.rechunk(group, broken, chunks={"a": (24, 2)}, zarr_format=3)
    set_ = broken.inner.set

    def fails(key, value):
        if key.startswith("deep/c/c/"):
            raise zarrdask.errors.StoreError("on purpose", key=key)
        set_(key, value)

    target.set = fails
    with pytest.raises(zarrdask.errors.StoreError, match="on purpose"):
        quietly(plan)
    assert sorted(zarrdask.open_group(target)) == ["a", "b", "deep"]
    del target.set
    target.taken()
    again = zarrdask.rechunk(group, broken, chunks={"a": (24, 2)}, zarr_format=3)
    check_group(quietly(again), group)
    _, sets, _ = target.taken()
    assert {key.rsplit("/c/")[0] for key in data_of(sets)} == {"deep/c"}
