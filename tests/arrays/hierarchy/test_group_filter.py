"""Groups that are chosen by patterns of their paths, before anything is opened."""

import pytest

import zarrdask
from tests.counting import CountingStore
from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.errors import MetadataError
from zarrdask.storage.memory import MemoryStore


@pytest.fixture
def store():
    """Volumes with two sweeps each, and an array in every group."""
    inner = MemoryStore()
    zarrdask.create_group(inner)
    for path in ("", "v0", "v0/sweep_0", "v0/sweep_1", "v1", "v1/sweep_0", "v1/sweep_0/deep", "v2"):
        if path:
            zarrdask.create_group(inner, path)
        zarrdask.create_array(inner, f"{path}/x", shape=2, dtype="i4", dimension_names=("t",))
    return CountingStore(inner)


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("/*/sweep_0", ["v0", "v0/sweep_0", "v0/sweep_0/x", "v1", "v1/sweep_0", "v1/sweep_0/x",
                        "v2"]),
        ("v1/sweep_0", ["v1", "v1/sweep_0", "v1/sweep_0/x"]),
        ("v2", ["v2", "v2/x"]),
        ("/", ["x"]),
        ("v1/**", ["v1", "v1/sweep_0", "v1/sweep_0/deep", "v1/sweep_0/deep/x", "v1/sweep_0/x",
                   "v1/x"]),
        ("**/deep", ["v0", "v0/sweep_0", "v0/sweep_1", "v1", "v1/sweep_0", "v1/sweep_0/deep",
                     "v1/sweep_0/deep/x", "v2"]),
        (["v[12]", "none"], ["v1", "v1/x", "v2", "v2/x"]),
        ("none", []),
    ],
)  # fmt: skip
def test_a_walk_visits_chosen_groups_and_those_above(pattern, paths, store):
    assert sorted(path for path, _ in zarrdask.open_group(store).walk(pattern)) == sorted(paths)


def test_a_tree_has_chosen_groups(store):
    tree = str(zarrdask.open_group(store).tree(group_filter="v1/sweep_0"))
    assert "sweep_0" in tree
    assert "v0" not in tree


def test_names_that_follow_from_the_pattern_are_not_listed(store):
    group = zarrdask.open_group(store)
    store.clear()
    walked = [path for path, _ in group.walk("/v1/sweep_0")]
    assert walked[-1] == "v1/sweep_0/x"
    assert list(store.listings) == ["v1/sweep_0/"]
    assert not any(key.startswith(("v0", "v2", "x")) for key in store.reads)


def test_arrays_above_chosen_groups_are_not_read(store):
    group = zarrdask.open_group(store)
    store.clear()
    list(group.walk("/v1/*"))
    assert not store.reads["x/zarr.json"]
    assert not store.reads["v0/sweep_0/zarr.json"]


@pytest.mark.parametrize("pattern", [[], 3.5, [1]])
def test_a_pattern_is_text(pattern):
    with pytest.raises((MetadataError, TypeError)):
        GroupFilter.of(pattern)


def test_copies_have_chosen_groups(store):
    target = MemoryStore()
    zarrdask.copy(store, target, group_filter="v1/sweep_0", scheduler="sync")
    copied = [path for path, _ in zarrdask.open_group(target).walk()]
    assert sorted(copied) == ["v1", "v1/sweep_0", "v1/sweep_0/x"]


def test_inventories_count_chosen_groups(store):
    report = zarrdask.inventory(store, group_filter="/*/sweep_0", scheduler="sync")
    assert sorted(array.path for array in report.arrays) == ["v0/sweep_0/x", "v1/sweep_0/x"]
