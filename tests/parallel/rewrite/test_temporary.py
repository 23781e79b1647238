"""Temporary places: they exist as long as they are used, or their process runs."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref

import dask
import dask.array as da
import pytest

import zarrdask
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError, UnsupportedError
from zarrdask.parallel.rewrite.temporary import LIFETIME, TemporaryPrefix
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.local.atomic import machine_token
from zarrdask.storage.memory import MemoryStore


class ReadOnlyStore(Store):
    """A store that nothing can be written to."""

    capabilities = Capabilities(writable=False)
    url = "nowhere"

    def get(self, key):
        return None


#: Larger than the numbers of processes.
NO_PROCESS = 2**30
CREATE = """
import sys
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.parallel.rewrite.temporary import TemporaryPrefix
place = TemporaryPrefix.create(locate_node(sys.argv[1], None, None))
place.store.set(place.prefix + "a", b"1")
print(*place.store.list_dir(".zarrdask-temporary/")[1])
"""


@pytest.fixture
def root(tmp_path):
    """The directory in which places are made."""
    return locate_node(tmp_path, None, None)


def names(root):
    """Return the names of the places, after all that are being erased are."""
    folders = folder_names(root)
    return [
        name
        for folder in folders
        for name in root.store.list_dir(f".zarrdask-temporary/{folder}/")[1]
    ]


def folder_names(root):
    """Return the names of the folders of processes, after all places that are being erased are."""
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "zarrdask-erase":
            thread.join()
    return root.store.list_dir(".zarrdask-temporary/")[1]


def used(root):
    """Return a place with an object."""
    place = TemporaryPrefix.create(root)
    place.store.set(f"{place.prefix}0/a", b"1")
    return place


def test_a_place_exists_as_long_as_it_is_used(root):
    place, other = used(root), used(root)
    copy = pickle.loads(pickle.dumps(place))
    assert (copy.store, copy.prefix) == (place.store, place.prefix)
    del copy
    assert len(names(root)) == 2
    del place
    assert [other.name] == names(root)
    del other
    assert names(root) == []


def test_it_exists_as_long_as_anything_that_is_computed_from_it(root):
    z = zarrdask.create_array({}, shape=(8, 6), dtype="i4", chunks=(1, 6), fill_value=1)
    x = zarrdask.from_zarr(z, chunks=(1, 6))
    y = zarrdask.rechunked(x + 1, (8, 2), temp=root.store, max_mem=500)
    total = (y[:, :2] * 2).sum()
    del y
    assert int(total.compute(scheduler="sync")) == 8 * 2 * 2 * 2
    assert len(names(root)) == 1
    del total
    assert names(root) == []


def test_a_process_erases_its_own_at_exit_and_those_of_dead_processes(root):
    left = f"{machine_token()}-{NO_PROCESS:x}-{int(time.time()):x}-ab"
    root.store.set(f".zarrdask-temporary/{left}/a", b"1")
    command = [sys.executable, "-c", CREATE, root.store.url]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    [own] = run.stdout.split()
    assert own != left
    assert folder_names(root) == []


def test_those_of_other_machines_are_erased_when_they_are_old(root):
    now = int(time.time())
    old, young = (f"{'0' * 16}-1-{now - age:x}-ab" for age in (LIFETIME + 60, LIFETIME - 3600))
    alive = f"{machine_token()}-{os.getpid():x}-{now - 2 * LIFETIME:x}-ab"
    for name in (old, young, alive, "else"):
        root.store.set(f".zarrdask-temporary/{name}/a", b"1")
    place = TemporaryPrefix.create(root)
    assert {*folder_names(root)} == {young, alive, "else", place.folder.split("/")[1]}


def test_each_day_has_its_own_folder_so_that_it_does_not_look_abandoned(root, monkeypatch):
    first, now = used(root), time.time()
    assert used(root).folder == first.folder
    monkeypatch.setattr(time, "time", lambda: now + 24 * 3600)
    assert used(root).folder != first.folder


COPY = """
import pickle, sys
import dask.array as da
import zarrdask
y = zarrdask.rechunked(da.ones((8, 6), chunks=(1, 6)), (8, 2), temp=sys.argv[1], max_mem=500)
with open(sys.argv[2], "wb") as file:
    pickle.dump(y.sum(), file)
"""


def test_a_copy_can_be_computed_while_the_process_of_the_original_runs(root):
    y = zarrdask.rechunked(da.ones((8, 6), chunks=(1, 6)), (8, 2), temp=root.store, max_mem=500)
    copy = pickle.loads(pickle.dumps(y.sum()))
    del y
    assert names(root) == []
    assert copy.compute(scheduler="sync") == 48
    assert len(names(root)) == 1


def test_a_copy_that_is_computed_after_that_process_has_ended_is_an_error_and_leaves_nothing(
    root, tmp_path
):
    subprocess.run([sys.executable, "-c", COPY, root.store.url, tmp_path / "y"], check=True)
    copy = pickle.loads((tmp_path / "y").read_bytes())
    with pytest.raises(StoreError, match="that called it has ended"):
        copy.compute(scheduler="sync")
    assert folder_names(root) == []


def test_stores_in_memory_are_not_kept_alive():
    store = MemoryStore()
    reference, place = weakref.ref(store), TemporaryPrefix.create(NodePath(store, ""))
    place.store.set(place.prefix + "a", b"1")
    del place
    assert folder_names(NodePath(store, "")) == []
    del store
    gc.collect()
    assert reference() is None


def test_a_store_that_can_not_be_written_is_refused():
    with pytest.raises(UnsupportedError, match="temporary objects need"):
        TemporaryPrefix.create(NodePath(ReadOnlyStore(), ""))


@pytest.mark.skipif(os.name == "nt", reason="directories have no modes")
def test_by_default_it_is_a_directory_of_this_user(tmp_path, monkeypatch):
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        place = TemporaryPrefix.create(None)
        [directory] = tmp_path.iterdir()
        assert directory.stat().st_mode & 0o077 == 0
        assert place.store.url == str(directory)
        directory.chmod(0o777)
        with pytest.raises(PermissionError, match="other users may write"):
            TemporaryPrefix.create(None)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a system without numbers of users")
def test_each_user_has_a_folder_for_temporary_places(tmp_path):
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        place = TemporaryPrefix.create(None)
    assert os.listdir(tmp_path) == [f"zarrdask-temporary-{os.geteuid()}"]
    del place
