"""`open_datatree` of some groups of a hierarchy."""

import pytest
import xarray as xr

import zarrdask
from tests.counting import CountingStore
from tests.xarray.counting import RoundsStore
from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.formats.metadata import detect
from zarrdask.storage.memory import MemoryStore


@pytest.fixture
def store():
    inner = MemoryStore()
    zarrdask.create_group(inner)
    for volume in range(3):
        for sweep in range(2 if volume else 1):
            path = f"v{volume}/sweep_{sweep}"
            zarrdask.create_group(inner, path)
            zarrdask.create_array(inner, f"{path}/x", shape=2, dtype="i4", dimension_names=("t",))
    return CountingStore(inner)


@pytest.mark.parametrize("consolidated", [False, True])
def test_only_chosen_groups_are_opened(consolidated, store):
    if consolidated:
        zarrdask.consolidate_metadata(store)
    store.clear()
    tree = xr.open_datatree(store, engine="zarrdask", group_filter="/*/sweep_1")
    assert sorted(tree.groups) == ["/", "/v1", "/v1/sweep_1", "/v2", "/v2/sweep_1"]
    assert "x" in tree["v1/sweep_1"].variables
    assert not any("sweep_0" in key for key in store.reads)


def test_a_path_without_patterns_needs_no_listing_above(store):
    store.clear()
    tree = xr.open_datatree(store, engine="zarrdask", group_filter="/v2/sweep_0")
    assert sorted(tree.groups) == ["/", "/v2", "/v2/sweep_0"]
    assert list(store.listings) == ["v2/sweep_0/"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_patterns_lead_to_is_requested_together(zarr_format):
    values = {}
    zarrdask.create_group(values, zarr_format=zarr_format)
    for path in ("a/s0", "a/s1", "b/s0", "b/s1"):
        group = zarrdask.create_group(values, path)
        group.create_array("x", shape=2, dtype="i4", dimension_names=("x",))[...] = [3, 4]
    store = RoundsStore(values, together=["list_dir", "get_many"])
    groups = xr.open_groups(store, engine="zarrdask", group_filter="/*/s0", zarr_format=zarr_format)
    assert [*groups] == ["/", "/a", "/b", "/a/s0", "/b/s0"]
    assert groups["/b/s0"].x.sum() == 7
    # The first group and its members' names; groups, and the names of their members; the
    # documents of the arrays, concurrently for each group; the coordinates.
    rounds = [sorted(what[:1]) for kind, what in store.calls if kind == "list_dir"]
    assert sorted(rounds) == [[""], ["a/s0/"], ["b/s0/"]]
    many = [what for kind, what in store.calls if kind == "get_many"]
    assert {key.rpartition("/")[0] for key in many[1]} == {"a", "b", "a/s0", "b/s0"}
    assert len(many) == 5


def test_a_pattern_that_leads_to_many_groups_lists_none_that_may_not_exist():
    values = {}
    zarrdask.create_group(values)
    for number in range(70):
        zarrdask.create_group(values, f"v{number}")
    zarrdask.create_array(values, "v7/s/x", shape=2, dtype="i4", dimension_names=("x",))
    store = RoundsStore(values)
    groups = xr.open_groups(store, engine="zarrdask", group_filter="/*/s")
    assert [*groups] == ["/", "/v7", "/v7/s"]
    assert [what for kind, what in store.calls if kind == "list_dir"] == [[""], ["v7/s/"]]


def test_a_walk_reads_ahead_what_patterns_lead_to():
    values = {}
    for path in ("a/s0", "a/s1", "b/s0"):
        zarrdask.create_array(values, f"{path}/x", shape=2, dtype="i4")
    store = RoundsStore(values)
    root = zarrdask.open_group(store).node_path
    store.calls.clear()
    walked = [path for path, _ in root.walk(chosen=GroupFilter.of("/*/s0"))]
    assert sorted(walked) == ["a", "a/s0", "a/s0/x", "b", "b/s0", "b/s0/x"]
    many = [what for kind, what in store.calls if kind == "get_many"]
    assert len(many) == 3


def test_arrays_that_differ_in_attributes_share_the_rest():
    store = {}
    for name in ("a", "b", "c"):
        zarrdask.create_array(
            *(store, f"{name}/x"),
            shape=3,
            dtype="f4",
            dimension_names=("t",),
            fill_value=-1 if name == "c" else 0,
            attributes={"scan": name, "range": [0, 1]},
        )
    group, known = zarrdask.open_group(store), {}
    members = {
        name: dict(group[name].node_path.children(known=known))["x"] for name in ("a", "b", "c")
    }
    assert members["a"].pipeline is members["b"].pipeline
    for name, metadata in members.items():
        alone = zarrdask.open_array(store, f"{name}/x").metadata
        assert metadata == alone
        assert metadata.documents == alone.documents
    groups = xr.open_groups(store, engine="zarrdask")
    groups["/a"]["x"].attrs["range"].append(2)
    assert [groups[f"/{name}"]["x"].attrs["range"] for name in "ab"] == [[0, 1, 2], [0, 1]]


def test_equal_arrays_of_a_tree_have_attributes_of_their_own(monkeypatch):
    store = {}
    for path in ("a", "b", "c"):
        group = zarrdask.create_group(store, path)
        for name, attributes in (("flat", {"units": "K"}), ("nested", {"range": [0, 1]})):
            group.create_array(
                name, shape=3, dtype="f4", dimension_names=("x",), attributes=attributes
            )[...] = len(path)
    parsed = []
    parse = detect.parse
    monkeypatch.setattr(detect, "parse", lambda *each: parsed.append(each) or parse(*each))
    groups = xr.open_groups(store, engine="zarrdask")
    # A document that occurs again is not parsed again, unless it has lists, which users may change.
    assert sum(b'"units"' in bytes(each[0]["zarr.json"] or b"") for each in parsed) == 1
    groups["/a"]["flat"].attrs["units"] = "C"
    groups["/a"]["nested"].attrs["range"].append(2)
    assert groups["/b"]["flat"].attrs == {"units": "K"}
    assert groups["/b"]["nested"].attrs == {"range": [0, 1]}
    assert groups["/c"]["flat"].sum() == 3
