"""Values that writers on several machines change at the same time."""

import json
from dataclasses import replace

import dask
import dask.array
import numpy as np
import pytest
import xarray

import zarrdask
import zarrdask.xarray
from tests.storage.locks.swapping import Swapping
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.locks import leases
from zarrdask.storage.locks.unchanged import until_unchanged
from zarrdask.storage.wrapper import WrappedStore


class Elsewhere(Swapping):
    """The same values as another machine reaches them, which knows no locks of this process."""

    url = "elsewhere"


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(leases.Lease, "RENEWAL", 0.01)
    monkeypatch.setattr(leases.Lease, "EXPIRY", 0.5)
    return Swapping()


def test_a_value_that_another_writer_changed_is_read_again(store):
    others = iter((b"1", b"2"))
    store.set("k", b"0")

    def change(view):
        value = view.get("k")
        store.set("k", next(others, value))
        view.set("k", value + b"+")
        return value

    assert until_unchanged(store, change) == b"2"
    assert store.get("k") == b"2+"


@pytest.mark.parametrize("times", [1, 2])
def test_what_is_stored_depends_on_the_first_value_that_was_read(times, store):
    """A value is read or stored twice in one change, and another writer changes it in between."""
    others = iter((b"1",))
    store.set("k", b"0")

    def change(view):
        value = view.get("k")
        if times == 2:
            view.set("k", value + b"-")
        store.set("k", next(others, store.get("k")))
        view.get("k")
        view.set("k", value + b"+")

    until_unchanged(store, change)
    assert store.get("k") == b"1+"


@pytest.mark.parametrize(
    ("changed", "change"),
    [
        ("x", lambda root: root["x"].attrs.update(a=1)),
        ("x", lambda root: root["x"].append([1, 2])),
        ("x", lambda root: root["x"].resize(1)),
        ("", lambda root: root.attrs.update(a=1)),
        ("", lambda root: root["x"].attrs.update(a=1)),  # drops the consolidated metadata
    ],
)
def test_documents_keep_what_another_machine_changes_meanwhile(store, changed, change):
    root = zarrdask.create_group(store)
    root.create_array("x", shape=2, dtype="i4").attrs["old"] = 0
    zarrdask.consolidate_metadata(store)

    def others():
        key = f"{changed}/zarr.json".strip("/")
        document = json.loads(store.get(key))
        document.setdefault("attributes", {})["theirs"] = 2
        store.set(key, json.dumps(document).encode())

    root = zarrdask.open_group(store, mode="r+")
    store.others = others
    change(root)
    assert store.others is None
    now = zarrdask.open_group(store)
    assert now[changed].attrs["theirs"] == 2 if changed else now.attrs["theirs"] == 2
    assert now["x"].attrs["old"] == 0
    assert (now["x"].shape, *now["x"].attrs, *now.attrs) != ((2,), "old", "theirs")  # both did
    assert "consolidated_metadata" not in json.loads(store.get("zarr.json"))


def test_a_repeated_change_keeps_consolidated_metadata_that_it_is_to_update(store, monkeypatch):
    zarrdask.create_group(store).create_array("x", shape=2, dtype="i4")
    zarrdask.consolidate_metadata(store)
    swap, keys = store.swap, []

    def swap_at_second_attempt(key, value, tag):
        keys.append(key)
        is_first = key == "x/zarr.json" and keys.count(key) == 1
        return not is_first and swap(key, value, tag)

    monkeypatch.setattr(store, "swap", swap_at_second_attempt)
    with dask.config.set({"zarrdask.consolidated-after-change": "update"}):
        zarrdask.open_array(store, "x", mode="r+").attrs["a"] = 1
    assert keys.count("x/zarr.json") == 2
    root = zarrdask.open_group(store, consolidated=True)
    assert root["x"].attrs.asdict() == {"a": 1}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_keep_what_another_machine_adds_meanwhile(store, zarr_format):
    root = zarrdask.create_group(store, zarr_format=zarr_format)
    root.create_array("x", shape=2, dtype="i4")
    zarrdask.consolidate_metadata(store)

    def others():
        theirs = Elsewhere(store.values)
        zarrdask.create_array(theirs, "theirs", shape=1, dtype="i4", zarr_format=zarr_format)
        zarrdask.consolidate_metadata(theirs)

    store.others = others
    xarray.Dataset({"ours": ("a", [2])}, attrs={"by": "us"}).zarrdask.to_zarr(store, mode="a")
    assert store.others is None
    now = zarrdask.open_group(store, consolidated=True)
    assert (sorted(now), dict(now.attrs)) == (["ours", "theirs", "x"], {"by": "us"})


def test_an_append_requests_nothing_twice(monkeypatch):
    monkeypatch.setattr(
        "zarrdask.arrays.hierarchy.changes.append.clock", lambda: 0.0
    )  # it checks once a second
    store = Swapping()
    zarrdask.create_group(store).create_array("x", shape=2, dtype="i4", chunks=2)
    requests = []

    class Recording(WrappedStore):
        @property
        def capabilities(self):
            return replace(super().capabilities, shared=True)

        def get_many(self, keys, scratch):
            keys = list(keys)
            requests.extend(("get", key) for key in keys)
            return self.inner.get_many(keys, scratch)

        def get_tagged(self, key):
            requests.append(("get", key))
            return self.inner.get_tagged(key)

        def swap(self, key, value, tag):
            requests.append(("swap", key))
            return self.inner.swap(key, value, tag)

    z = zarrdask.open_array(Recording(store), "x", mode="r+")
    append_dask = lambda x: zarrdask.append(dask.array.from_array(x), z)  # noqa: E731
    for append in (z.append, append_dask):
        requests.clear()
        append(np.array([3, 4], "i4"))
        # The document is read with the lease, and with the tag for the new shape.
        assert requests == [
            ("swap", "x/.zarrdask-rewrite/lease"),
            *[("get", "x/zarr.json")] * 2,
            ("get", "zarr.json"),
            ("swap", "x/zarr.json"),
            # Another writer may have consolidated the metadata above it at the same time.
            ("get", "zarr.json"),
        ]
    assert [*z[...]] == [0, 0, 3, 4, 3, 4]


@pytest.mark.parametrize("after", ["drop", "update"])
def test_a_new_node_keeps_what_others_change_in_the_group_above_it(after, setting):
    setting({"zarrdask.consolidated-after-change": after})

    class Far(Swapping):
        capabilities = replace(Swapping.capabilities, costs=REMOTE_COSTS)

        def get(self, key):
            value = super().get(key)
            if key.endswith("plan.json") and self.others is not None:  # the last one read ahead
                others, self.others = self.others, None
                others()
            return value

    def others():
        zarrdask.open_group(store, mode="r+", consolidated=False).attrs["others"] = 1
        zarrdask.consolidate_metadata(store)

    store = Far()
    zarrdask.create_group(store)
    zarrdask.consolidate_metadata(store)
    store.others = others
    zarrdask.create_array(store, "a", shape=3, dtype="i4")
    assert store.others is None
    group = zarrdask.open_group(store)
    assert (dict(group.attrs), [*group]) == ({"others": 1}, ["a"])
