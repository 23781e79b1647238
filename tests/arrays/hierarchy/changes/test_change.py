"""Changes of nodes, and the consolidated metadata above them, by whatever URL they are opened."""

import json
import threading
from contextlib import suppress

import numpy as np
import pytest

import zarrdask
from tests.storage.latency import LatencyStore
from zarrdask.arrays.hierarchy.changes import change
from zarrdask.storage.memory import MemoryStore


@pytest.fixture(params=[2, 3])
def root(request, tmp_path):
    group = zarrdask.create_group(tmp_path / "g", zarr_format=request.param)
    group.create_array("a/x", shape=(4, 4), dtype="i4")[...] = 1
    zarrdask.consolidate_metadata(group)
    return tmp_path / "g"


def consolidated(root):
    try:
        return zarrdask.open_group(root, consolidated=True)
    except zarrdask.errors.MetadataError:
        return None


def test_a_change_by_another_url_drops_them(root):
    assert consolidated(root) is not None
    zarrdask.open_array(root / "a" / "x", mode="r+").resize((2, 4))
    assert consolidated(root) is None
    assert zarrdask.open_group(root)["a/x"].shape == (2, 4)


def test_an_array_that_is_replaced_by_another_url_reads_as_it_is(root):
    other = zarrdask.create_array(root.parent / "f", shape=(4, 4), dtype="f4")
    other[...] = 1.5
    zarrdask.copy(root.parent / "f", root / "a" / "x", overwrite=True)
    np.testing.assert_array_equal(zarrdask.open_group(root)["a/x"][...], 1.5)


def test_they_are_brought_up_to_date_if_that_is_set(root, setting):
    setting({"zarrdask.consolidated-after-change": "update"})
    zarr_format = zarrdask.open_group(root).zarr_format
    zarrdask.create_array(root / "b", shape=3, dtype="i4", zarr_format=zarr_format)
    assert sorted(consolidated(root)) == ["a", "b"]


def test_directories_that_are_no_groups_are_left_alone(tmp_path):
    zarrdask.create_array(tmp_path / "x" / "y", shape=3, dtype="i4")
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["y"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_that_change_meanwhile_are_kept(zarr_format):
    threads = [None]

    def change():
        zarrdask.open_group(store, mode="r+", consolidated=False).attrs["changed"] = 1

    class Slow(MemoryStore):
        def get_many(self, keys, scratch):
            keys = list(keys)
            values = [*super().get_many(keys, scratch)]
            if any(key.startswith("b/") for key in keys) and not threads:
                threads.append(threading.Thread(target=change))
                threads[0].start()
                threads[0].join(0.2)  # it waits until the documents are written
            return iter(values)

    store = Slow()
    group = zarrdask.create_group(store, zarr_format=zarr_format)
    group.create_group("b")
    threads.clear()
    with suppress(zarrdask.errors.MetadataError):  # they may be dropped again by now
        zarrdask.consolidate_metadata(store)
    threads[0].join()
    for consolidated in (False, None):
        assert dict(zarrdask.open_group(store, consolidated=consolidated).attrs) == {"changed": 1}


def test_members_of_an_erased_group_are_removed_from_them(root, setting):
    setting({"zarrdask.consolidated-after-change": "update"})
    group = zarrdask.open_group(root, mode="r+")
    group.create_array("b", shape=3, dtype="i4")
    del group["a"]
    assert "b" in consolidated(root)
    assert "a/x" not in consolidated(root)


def test_a_document_is_read_after_its_lock_is_taken(monkeypatch):
    """A store that reads beforehand, without conditional writes: only the lock excludes others."""
    store = LatencyStore(seconds=0)
    group = zarrdask.create_group(store)
    zarrdask.consolidate_metadata(group)
    document, lock = store.inner.values["zarr.json"], change.lock_node

    def wait_for_another(node, purpose):
        # Another writer holds the lock until it has changed the attributes.
        others = json.loads(document) | {"attributes": {"by": "another"}}
        store.inner.values["zarr.json"] = json.dumps(others).encode()
        return lock(node, purpose)

    monkeypatch.setattr(change, "lock_node", wait_for_another)
    zarrdask.create_array(store, "x", shape=2, dtype="i4")
    assert dict(zarrdask.open_group(store, consolidated=False).attrs) == {"by": "another"}
