"""The setting `zarrdask.manifests`: `to_zarr` and `append` keep the manifest of an array."""

from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import covering
from zarrdask.arrays.hierarchy.stored_manifest import current_digests
from zarrdask.errors import StoreError
from zarrdask.storage.snapshots.digests import digest_of
from zarrdask.tools.verification.object_listing import list_node


@pytest.fixture(autouse=True)
def on(setting):
    setting({"zarrdask.manifests": True, "scheduler": "sync"})


def values(length=12):
    return da.arange(1, length + 1, chunks=4)


def is_kept(place):
    """Whether the manifest names all objects as they are."""
    return zarrdask.verify(place, manifest=True).ok


def known(place):
    """Return the keys of the objects whose digests are known, all of which are true."""
    node = zarrdask.open(place).node_path
    digests = current_digests(node.stored_manifest().entries, list_node(node))
    assert all(digest_of(node.store.get(k), d.partition(":")[0]) == d for k, d in digests.items())
    return {*digests}


@covering(
    options=[{}, {"shards": 8, "chunks": 2}, {"commit": "last"}, {"overwrite": True}],
    zarr_format=[2, 3, "v3-draft"],
)
def test_a_new_array_has_a_manifest_that_later_writes_keep(tmp_path, options, zarr_format):
    if "shards" in options:
        zarr_format = 3
    if "overwrite" in options:
        zarrdask.create_array(tmp_path / "g", "a", shape=99, dtype="i8", zarr_format=zarr_format)
    place = tmp_path / "g"
    zarrdask.to_zarr(values(), place, "a", zarr_format=zarr_format, **options)
    array = zarrdask.open_array(place, "a", mode="r+")
    assert is_kept(array)
    zarrdask.append(values(7), array)
    assert is_kept(array)
    zarrdask.to_zarr(values(5), array, region=np.s_[2:7])
    assert is_kept(array)
    zarrdask.to_zarr(da.zeros(4, chunks=4, dtype="i8"), array, region=np.s_[8:12])
    assert is_kept(array)
    array[0] = 99
    assert len(zarrdask.verify(array, manifest=True).changed) == 1


def test_versions_of_files_are_known_at_once(tmp_path):
    zarrdask.to_zarr(values(), tmp_path)
    assert known(tmp_path) >= {"c/0", "c/1", "c/2"}
    zarrdask.open_array(tmp_path, mode="r+")[0] = 99
    assert "c/0" not in known(tmp_path)


def test_without_the_setting_no_manifest_is_stored(setting):
    setting({"zarrdask.manifests": False})
    zarrdask.to_zarr(values(), store := {})
    setting({"zarrdask.manifests": True})
    zarrdask.append(values(), store)  # It has no digests of the other chunks.
    with pytest.raises(StoreError, match="no manifest"):
        zarrdask.verify(store, manifest=True)


def test_a_write_that_fails_leaves_the_old_manifest(tmp_path):
    zarrdask.to_zarr(values(), tmp_path)

    def fail(block):
        raise ValueError("no values")

    with pytest.raises(ValueError, match="no values"):
        zarrdask.append(values().map_blocks(fail, dtype="i8"), tmp_path)
    assert is_kept(tmp_path)


@pytest.mark.slow
def test_tasks_of_a_cluster_return_the_digests(client, tmp_path):
    zarrdask.to_zarr(values(40), tmp_path)
    zarrdask.append(values(40), tmp_path)
    assert is_kept(tmp_path)
    assert len(known(tmp_path)) >= 20


@pytest.mark.stress
def test_writers_of_regions_at_once_lose_no_entry(tmp_path):
    zarrdask.to_zarr(values(80), tmp_path)
    for _ in range(10):
        with ThreadPoolExecutor(4) as pool:
            for call in [
                pool.submit(zarrdask.to_zarr, values(20), tmp_path, region=np.s_[n : n + 20])
                for n in range(0, 80, 20)
            ]:
                call.result()
        assert is_kept(tmp_path)
