"""An array that is gone is an error, not the fill value."""

import pickle
import shutil
from functools import partial

import dask.array as da
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.latency import LatencyStore
from zarrdask.errors import NodeNotFoundError
from zarrdask.storage.memory import MemoryStore

LAYOUTS = {
    "plain": {"chunks": (2, 2)},
    "sharded": {"chunks": (2, 2), "shards": (4, 4)},
    "uneven": {"chunks": ((2, 4, 2), (4, 4))},
    "v2": {"chunks": (2, 2), "zarr_format": 2},
}
READS = [
    lambda z: z[...],
    lambda z: z[0, 0],
    lambda z: z.oindex[[0, 5], [1, 2]],
    lambda z: z.read_many([0, (slice(0, 3), 7)]),
    lambda z: zarrdask.from_zarr(z).sum().compute(scheduler="sync"),
    lambda z: pickle.loads(pickle.dumps(z))[...],
    lambda z: pickle.loads(pickle.dumps(zarrdask.from_zarr(z)))[:3].compute(scheduler="sync"),
]


@for_each("layout", [*LAYOUTS])
def test_an_array_whose_directory_was_removed_is_an_error(tmp_path, layout):
    path = tmp_path / "a.zarr"
    zarrdask.create_array(path, shape=(8, 8), dtype="i4", **LAYOUTS[layout])[...] = 7
    z = zarrdask.open_array(path)
    x = zarrdask.from_zarr(path)
    shutil.rmtree(path)
    for read in [*READS, lambda _: x.compute(scheduler="sync")]:
        with pytest.raises(NodeNotFoundError, match=r"a\.zarr: the array was removed .* opened"):
            read(z)


def test_a_missing_chunk_of_an_array_that_exists_is_the_fill_value(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=(8, 8), dtype="i4", fill_value=3, chunks=(2, 2))
    for each in (z, zarrdask.open_array(tmp_path)):
        assert (each[...] == 3).all()
        assert (zarrdask.from_zarr(each).compute(scheduler="sync") == 3).all()
        assert (pickle.loads(pickle.dumps(each))[:3] == 3).all()


def test_an_array_that_is_in_consolidated_metadata_only_is_there(tmp_path):
    group = zarrdask.create_group(tmp_path, zarr_format=2)
    group.create_array("a", shape=4, dtype="i4", fill_value=5)
    zarrdask.consolidate_metadata(tmp_path)
    (tmp_path / "a" / ".zarray").unlink()
    z = zarrdask.open_group(tmp_path, consolidated=True)["a"]
    assert z[...].tolist() == [5, 5, 5, 5]
    (tmp_path / ".zmetadata").unlink()
    with pytest.raises(NodeNotFoundError):
        z[...]


def test_a_remote_store_is_asked_once_for_each_array():
    inner = MemoryStore()
    zarrdask.create_array(inner, shape=8, dtype="i4", chunks=2)
    store = LatencyStore(inner, seconds=0)
    z = zarrdask.open_array(store)
    store.clear()
    z[...]
    z[...]
    assert sum(key == "zarr.json" for key in store.keys) == 1


def test_nothing_is_asked_where_no_chunk_is_missing():
    store = LatencyStore(seconds=0)
    zarrdask.create_array(store, shape=8, dtype="i4", chunks=2)[...] = 7
    z = zarrdask.open_array(store)
    store.clear()
    z[...]
    assert "zarr.json" not in store.keys


@pytest.mark.parametrize("commit", ["first", "last"])
def test_chunks_of_an_array_without_a_document_yet_can_be_missing(commit):
    write = partial(zarrdask.to_zarr, da.ones((8, 8), chunks=3), chunks=(4, 4))
    for store in (MemoryStore(), LatencyStore(seconds=0)):
        write(store, commit=commit)
        assert (zarrdask.open_array(store)[...] == 1).all()


def test_a_copy_of_an_array_that_is_removed_meanwhile_is_an_error(tmp_path):
    source = tmp_path / "a"
    zarrdask.create_array(source, shape=8, dtype="i4", chunks=2)[...] = 7
    x = zarrdask.from_zarr(source)
    shutil.rmtree(source)
    with pytest.raises(NodeNotFoundError, match="was removed"):
        zarrdask.to_zarr(x, tmp_path / "b")
