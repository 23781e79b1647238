"""The setting `zarrdask.manifests`: writers of an array keep its manifest up to date."""

from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import covering, for_each
from zarrdask.arrays.hierarchy.stored_manifest import current_digests
from zarrdask.errors import StoreError
from zarrdask.storage.local.local_store import LocalStore
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
    with dask.config.set({"zarrdask.manifests": False}):
        array[0] = 99
    assert len(zarrdask.verify(array, manifest=True).changed) == 1
    array[1] = 99
    assert is_kept(array)


@for_each("zarr_format", [2, 3, "v3-draft"])
@pytest.mark.slow
def test_every_change_of_an_open_array_is_noted(tmp_path, zarr_format):
    place = tmp_path / f"{zarr_format}"
    array = zarrdask.create_array(place, shape=20, chunks=4, dtype="i4", zarr_format=zarr_format)
    changes = [
        lambda: None,
        lambda: array.__setitem__(..., 1),
        lambda: array.__setitem__(slice(3, 5), 2),
        lambda: array.__setitem__([1, 9], 0),
        lambda: array.append([7, 8, 9]),
        lambda: array.resize(10),
        lambda: array.resize(16),
        lambda: array.erase(slice(0, 6)),
        lambda: array.attrs.update(x=1),
    ]
    for change in changes:
        change()
        assert is_kept(array)
    assert array[6:12].tolist() == [1, 1, 1, 0, 0, 0]


@for_each("options", [{}, {"commit": "last"}, {"overwrite": True}, {"resume": True}])
@pytest.mark.slow
def test_a_write_that_is_computed_later_has_a_manifest(tmp_path, options):
    place = tmp_path / f"{[*options]}"
    if "overwrite" in options:
        zarrdask.create_array(place, shape=99, dtype="i8")
    later = zarrdask.to_zarr(values(), place, compute=False, **options)
    if not options:
        assert is_kept(place)
        zarrdask.open_array(place, mode="r+")[4:8] = 5
        assert is_kept(place)
    dask.compute(later)
    assert is_kept(place)
    dask.compute(zarrdask.append(values(), place, compute=False))
    later = zarrdask.to_zarr(values(), place, region=np.s_[1:13], compute=False)
    dask.compute(later)
    assert is_kept(place)
    assert zarrdask.open_array(place)[...].tolist()[:13] == [1, *range(1, 13)]


def test_a_new_array_that_was_resumed_has_no_manifest(tmp_path, setting):
    setting({"zarrdask.fuse-blocks": 0})
    fails = [True]

    def fail(block, block_id):
        if fails and block_id == (0,):  # It comes last.
            raise ValueError("no values")
        return block

    x = values().map_blocks(fail, dtype="i8", name="x")
    with pytest.raises(ValueError, match="no values"):
        zarrdask.to_zarr(x, tmp_path, resume=True)
    fails.clear()
    zarrdask.to_zarr(x, tmp_path, resume=True)
    with pytest.raises(StoreError, match="no manifest"):
        zarrdask.verify(tmp_path, manifest=True)
    zarrdask.manifest(tmp_path, keep=True)
    zarrdask.to_zarr(x, tmp_path, resume=True)  # It is complete, and nothing is stored.
    assert is_kept(tmp_path)


def test_versions_of_files_are_known_at_once(tmp_path):
    zarrdask.to_zarr(values(), tmp_path)
    assert known(tmp_path) >= {"c/0", "c/1", "c/2"}
    with dask.config.set({"zarrdask.manifests": False}):
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
    with client.as_current():
        for options in ({"overwrite": True}, {"overwrite": True, "commit": "last"}):
            client.compute(
                zarrdask.to_zarr(values(40), tmp_path, compute=False, **options)
            ).result()
            assert is_kept(tmp_path)
        later = zarrdask.to_zarr(values(40), tmp_path.with_name("new"), compute=False)
        result = client.persist(later)
        del later
        client.gather(client.compute(result))
        client.compute(
            zarrdask.append(values(40), tmp_path.with_name("new"), compute=False)
        ).result()
    assert is_kept(tmp_path.with_name("new"))


@pytest.mark.slow
def test_the_last_task_may_run_in_another_process(tmp_path):
    later = zarrdask.to_zarr(values(40), tmp_path, compute=False)
    dask.compute(later, scheduler="processes", num_workers=2)
    assert is_kept(tmp_path)


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


@pytest.mark.slow
@for_each("is_local", [False, True])
def test_objects_that_another_writer_has_replaced_meanwhile_are_noted_as_they_are(
    tmp_path, monkeypatch, is_local
):
    others = []

    def then_others(store):
        def method(self, key, value):
            store(self, key, value)
            if "c/" in key and others:
                others.pop()()

        return method

    class Dict(dict):
        __setitem__ = then_others(dict.__setitem__)

    monkeypatch.setattr(LocalStore, "replace", then_others(LocalStore.replace))
    place = tmp_path if is_local else Dict()

    def write(region):
        zarrdask.to_zarr(da.full(12, 7, chunks=4)[region], place, region=region)

    def write_and_append():
        write(np.s_[0:8])
        zarrdask.append(values(4), place)

    others = [write_and_append]
    zarrdask.to_zarr(values(), place)
    assert is_kept(place)
    others = [lambda: write(np.s_[0:12])]
    zarrdask.to_zarr(values(), place, region=np.s_[0:12])
    assert is_kept(place)
    others = [lambda: zarrdask.open_array(place, mode="r+").resize(4)]
    zarrdask.open_array(place, mode="r+")[...] = 5
    assert is_kept(place)
    assert not others
