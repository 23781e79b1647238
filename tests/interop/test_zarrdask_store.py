"""Our stores as stores of zarr-python: its own tests of a store, and what is built on stores."""

import numpy as np
import obstore
import pytest
import xarray as xr
import zarr
from zarr.core.buffer import cpu
from zarr.testing.store import StoreTests

import zarrdask
from tests.xarray.writes import days
from zarrdask.storage import LocalStore, MemoryStore, ObstoreStore, ZipStore, as_zarr_python
from zarrdask.storage.adapters.zarrdask_store import ZarrdaskStore
from zarrdask.storage.resolve import resolve
from zarrdask.xarray import open_zarr


@pytest.fixture(params=["local", "memory", "obstore", "zip"])
def inner(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    if request.param == "obstore":
        return ObstoreStore(obstore.store.LocalStore(tmp_path))
    return LocalStore(str(tmp_path)) if request.param == "local" else ZipStore(tmp_path / "s.zip")


class TestContract(StoreTests[ZarrdaskStore, cpu.Buffer]):
    store_cls = ZarrdaskStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, inner):
        return {"inner": inner}

    @pytest.fixture
    def store(self, store_kwargs):
        return self.store_not_open_of(store_kwargs)

    @pytest.fixture
    def store_not_open(self, store_kwargs):
        return self.store_not_open_of(store_kwargs)

    def store_not_open_of(self, kwargs):
        return self.store_cls(**kwargs)

    async def set(self, store, key, value):
        store.inner.set(key, value.to_bytes())

    async def get(self, store, key):
        value = store.inner.get(key)
        return None if value is None else self.buffer_cls.from_bytes(value)

    def test_store_repr(self, store):
        assert repr(store) == f"ZarrdaskStore({store.inner.url!r})"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_writes_and_reads_by_its_own_engine(inner, zarr_format):
    ds = days(4, chunks=(2, 5, 3))
    with as_zarr_python(inner) as store:
        ds.to_zarr(store, zarr_format=zarr_format, consolidated=False)
    xr.testing.assert_identical(open_zarr(inner).compute(), ds.compute())
    found = xr.open_zarr(as_zarr_python(inner, read_only=True), consolidated=False)
    xr.testing.assert_identical(found.compute(), ds.compute())


def test_what_is_built_on_zarr_python_changes_our_arrays(inner):
    z = zarrdask.create_array(inner, "a", shape=(8, 8), dtype="i4", chunks=(2, 2), shards=(4, 8))
    with as_zarr_python(inner) as store:
        array = zarr.open_array(store, path="a")
        array[3:] = np.arange(40).reshape(5, 8)
        np.testing.assert_array_equal(array[4, 2:6], [10, 11, 12, 13])
    np.testing.assert_array_equal(z[3:], np.arange(40).reshape(5, 8))
    assert (z[:3] == 0).all()


def test_a_store_that_is_given_back_is_ours(tmp_path):
    assert resolve(as_zarr_python(tmp_path)) == LocalStore(str(tmp_path))


def test_a_reader_changes_nothing(tmp_path):
    store = as_zarr_python(tmp_path, read_only=True)
    with pytest.raises(ValueError, match="read-only"):
        zarr.create_array(store, shape=(1,), dtype="i4")
    assert not list(tmp_path.iterdir())
