"""Objects of zarr-python as input: stores, arrays, groups."""

import pickle

import dask.array as da
import fsspec
import numpy as np
import obstore
import pytest
import xarray as xr
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from zarr.storage import FsspecStore, LocalStore, MemoryStore, StorePath, WrapperStore, ZipStore

import zarrdask
from tests.xarray.samples import temperature, write_sample
from zarrdask.storage import as_zarr_python
from zarrdask.storage.adapters.zarr_python import ZarrPythonStore
from zarrdask.storage.remote.obstore.obstore_store import ObstoreStore
from zarrdask.storage.resolve import resolve
from zarrdask.testing import StoreContract
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr

VALUES = np.arange(60).reshape(6, 10)


@pytest.fixture(params=["local", "memory", "zip", "fsspec", "object", "wrapped"])
def store(request, tmp_path):
    if request.param == "local":
        return LocalStore(tmp_path / "s")
    if request.param == "zip":
        return ZipStore(tmp_path / "s.zip", mode="w")
    if request.param == "fsspec":
        local = fsspec.filesystem("local", auto_mkdir=True)
        fs = fsspec.filesystem("dir", path=str(tmp_path), fs=local)
        return FsspecStore(AsyncFileSystemWrapper(fs, asynchronous=True), path="s")
    if request.param == "object":
        return zarr.storage.ObjectStore(obstore.store.MemoryStore())
    return MemoryStore() if request.param == "memory" else WrapperStore(MemoryStore())


def create(store, zarr_format=3):
    group = zarr.create_group(store, zarr_format=zarr_format)
    array = group.create_array("a/b", shape=VALUES.shape, chunks=(3, 4), dtype=VALUES.dtype)
    array[...] = VALUES
    return group, array


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_store(store, zarr_format):
    create(store, zarr_format)
    np.testing.assert_array_equal(zarrdask.open_array(store, "a/b")[...], VALUES)
    np.testing.assert_array_equal(zarrdask.from_zarr(store, "a/b")[2:].compute(), VALUES[2:])
    group = zarrdask.open_group(store)
    assert [name for name, _ in group.walk()] == ["a", "a/b"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_and_a_group(store, zarr_format):
    group, array = create(store, zarr_format)
    for given in (array, group["a/b"], StorePath(store, "a/b")):
        np.testing.assert_array_equal(zarrdask.open_array(given)[...], VALUES)
        np.testing.assert_array_equal(zarrdask.from_zarr(given).compute(), VALUES)
    np.testing.assert_array_equal(zarrdask.open_array(group["a"], "b")[...], VALUES)
    assert list(zarrdask.open_group(group)) == ["a"]


def test_shards_are_read_in_parts(store):
    array = zarr.create_array(store, shape=(8, 8), chunks=(2, 2), shards=(4, 8), dtype="i4")
    array[...] = np.arange(64).reshape(8, 8)
    np.testing.assert_array_equal(zarrdask.open_array(array)[3, 1:5], [25, 26, 27, 28])


def test_what_we_write_zarr_python_reads():
    store = MemoryStore()
    z = zarrdask.create_array(store, "x", shape=(4,), dtype="i4", chunks=2)
    z[...] = [1, 2, 3, 4]
    assert zarr.open_array(store, path="x")[...].tolist() == [1, 2, 3, 4]
    del zarrdask.open_group(zarr.open_group(store), mode="r+")["x"]
    assert "x" not in zarr.open_group(store)


def test_a_store_that_was_opened_for_reading_stays_as_it_is():
    values = {}
    zarr.create_array(MemoryStore(values), name="x", shape=(4,), dtype="i4")
    z = zarrdask.open_array(MemoryStore(values, read_only=True), "x")
    assert z[...].tolist() == [0] * 4
    with pytest.raises(zarrdask.errors.ReadOnlyError):
        zarrdask.open_array(MemoryStore(values, read_only=True), "x", mode="r+")


@pytest.mark.parametrize("kind", ["local", "memory", "fsspec", "object", "ours"])
def test_no_verb_writes_to_a_store_that_was_opened_for_reading(kind, tmp_path):
    root, values, memory = tmp_path / "s", {}, obstore.store.MemoryStore()
    local = fsspec.filesystem("local", auto_mkdir=True)
    fs = fsspec.filesystem("dir", path=str(tmp_path), fs=local)
    fs = AsyncFileSystemWrapper(fs, asynchronous=True)
    opened = {
        "local": lambda **options: LocalStore(root, **options),
        "memory": lambda **options: MemoryStore(values, **options),
        "fsspec": lambda **options: FsspecStore(fs, path="s", **options),
        "object": lambda **options: zarr.storage.ObjectStore(memory, **options),
        "ours": lambda **options: as_zarr_python(root, **options),
    }[kind]
    create(opened())
    store = opened(read_only=True)
    array, x = zarr.open_array(store, path="a/b", mode="r"), da.zeros((6, 10), chunks=(3, 4))
    np.testing.assert_array_equal(zarrdask.from_zarr(array).compute(), VALUES)
    verbs = [
        lambda: zarrdask.open_array(store, "a/b", mode="r+"),
        lambda: zarrdask.open(store, mode="r+"),
        lambda: zarrdask.open_group(store, mode="a"),
        lambda: zarrdask.open_group(store, "new", mode="a"),
        lambda: zarrdask.create_group(store, overwrite=True),
        lambda: zarrdask.create_array(store, "c", shape=4, dtype="i4"),
        lambda: zarrdask.to_zarr(x, store, "c"),
        lambda: zarrdask.to_zarr(x, store, "c", commit="last", compute=False),
        lambda: zarrdask.to_zarr(x, store, "a/b", overwrite=True),
        lambda: zarrdask.to_zarr(x, store, "a/b", region=np.s_[:]),
        lambda: zarrdask.to_zarr([(array, x)]),
        lambda: zarrdask.append(x, store, "a/b"),
        lambda: zarrdask.consolidate_metadata(store),
        lambda: zarrdask.copy(array, store, "c", progress=False),
        lambda: zarrdask.xarray.to_zarr(xr.Dataset({"v": ("t", [1, 2])}), store, mode="w"),
    ]
    for verb in verbs:
        with pytest.raises(zarrdask.errors.ReadOnlyError):
            verb()
    names = [name for name, _ in zarrdask.open_group(opened()).walk()]
    assert names == ["a", "a/b"]
    np.testing.assert_array_equal(zarrdask.open_array(opened(), "a/b")[...], VALUES)


def test_a_dict_that_zarr_python_wrote_is_read():
    values = {}
    create(values)
    np.testing.assert_array_equal(zarrdask.open_array(values, "a/b")[...], VALUES)


def test_the_verbs_take_them():
    store, target = MemoryStore(), {}
    group, array = create(store)
    plan = zarrdask.rechunk(array, target, chunks=(6, 2))
    plan.execute(progress=False)
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], VALUES)
    assert zarrdask.verify(group).problems == ()
    copied = {}
    zarrdask.copy(group, copied)
    np.testing.assert_array_equal(zarrdask.open_array(copied, "a/b")[...], VALUES)


def test_the_engine_guesses_them():
    store = MemoryStore()
    group, array = create(store)
    engine = ZarrdaskBackendEntrypoint()
    assert engine.guess_can_open(store)
    assert engine.guess_can_open(group)
    assert not engine.guess_can_open(array)


def test_a_local_store_becomes_ours(tmp_path):
    assert resolve(LocalStore(tmp_path)) == zarrdask.storage.LocalStore(str(tmp_path))


def test_a_local_directory_is_read_without_fsspec(tmp_path):
    fs = fsspec.filesystem("local")
    # As `dask.array.from_zarr` opens a path.
    for store in (FsspecStore.from_url(f"{tmp_path}/s"), fs.get_mapper(f"file://{tmp_path}/s")):
        assert resolve(store) == zarrdask.storage.LocalStore(f"{tmp_path}/s")


def test_a_store_pickles(tmp_path):
    local = fsspec.filesystem("local", auto_mkdir=True)
    fs = fsspec.filesystem("dir", path=str(tmp_path), fs=local)
    wrapper = AsyncFileSystemWrapper(fs, asynchronous=True)
    store = FsspecStore(wrapper, path="s")
    create(store)
    again = pickle.loads(pickle.dumps(zarrdask.open_array(store, "a/b")))
    np.testing.assert_array_equal(again[...], VALUES)


def test_many_values_are_asked_for_at_once(monkeypatch):
    running = most = 0

    class Slow(MemoryStore):
        async def get(self, *args, **kwargs):
            import asyncio

            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            return await super().get(*args, **kwargs)

    store = Slow()
    create(store)
    zarrdask.open_array(store, "a/b")[...]
    assert most > 1


@pytest.mark.parametrize("kind", ["store", "group"])
def test_xarray_opens_them(kind):
    store = MemoryStore()
    write_sample(store)
    given = store if kind == "store" else zarr.open_group(store)
    ds = xr.open_dataset(given, engine=ZarrdaskBackendEntrypoint)
    np.testing.assert_array_equal(ds.t, temperature())
    np.testing.assert_array_equal(open_zarr(given).t.compute(), temperature())


class TestContract(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return ZarrPythonStore(LocalStore(tmp_path))


def test_an_object_store_is_read_by_obstore_without_zarr_python():
    inner = obstore.store.MemoryStore()
    adapted = resolve(zarr.storage.ObjectStore(inner))
    assert adapted == ObstoreStore(inner)


# --------------------------------------------------------------------------------------------
# Open arrays as targets


def targets(tmp_path):
    """Yield open arrays of zarr-python, of both formats, in several stores."""
    options = {"shape": (4, 6), "dtype": "f4", "fill_value": 0}
    for zarr_format in (2, 3):
        for store in (tmp_path / f"a{zarr_format}", {}, zarr.storage.MemoryStore()):
            yield zarr.create_array(store, chunks=(2, 3), zarr_format=zarr_format, **options)
        group = zarr.create_group(tmp_path / f"g{zarr_format}", zarr_format=zarr_format)
        yield group.create_array("b/c", chunks=(2, 3), **options)
    yield zarr.create_array(tmp_path / "shards", chunks=(1, 3), shards=(2, 6), **options)


def test_an_open_array_is_written_into(tmp_path):
    x = da.arange(24, chunks=5, dtype="f4").reshape(4, 6)
    values = np.arange(24, dtype="f4").reshape(4, 6)
    for z in targets(tmp_path):
        zarrdask.to_zarr(x, z)
        np.testing.assert_array_equal(z[...], values)
        zarrdask.to_zarr(x[:1] * 0 - 1, z, region=(slice(1, 2), slice(None)))
        assert (z[1] == -1).all()
        assert (z[2] == values[2]).all()
        zarrdask.to_zarr([(z, x + 1)])
        np.testing.assert_array_equal(z[...], values + 1)
        zarrdask.to_zarr(x, z, compute=False).compute()
        np.testing.assert_array_equal(z[...], values)


def test_what_does_not_fit_an_open_array_leaves_it_as_it_is(tmp_path):
    z = zarr.create_array(tmp_path / "a", shape=(4,), dtype="f4")
    z[...] = 7
    with pytest.raises(zarrdask.errors.SelectionError):
        zarrdask.to_zarr(da.zeros(3), z)
    with pytest.raises(zarrdask.errors.MetadataError, match="omit them"):
        zarrdask.to_zarr(da.zeros(4), z, chunks=2)
    with pytest.raises(zarrdask.errors.ReadOnlyError):
        zarrdask.to_zarr(da.zeros(4), zarr.open_array(tmp_path / "a", mode="r"))
    assert (z[...] == 7).all()


def test_new_arrays_in_a_group_of_zarr_python_have_its_format(tmp_path):
    group = zarr.create_group(tmp_path, zarr_format=2)
    zarrdask.to_zarr(da.ones(3), group, "new")
    assert group["new"].metadata.zarr_format == 2


def test_relative_paths_do_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    z = zarr.create_array("a", shape=(4,), dtype="f4")
    x = zarrdask.from_zarr(z)
    z[...] = 7
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert (x.compute() == 7).all()
