"""Arrays of the registered data types, in Dask graphs and on a cluster."""

import dask
import dask.array as da
import numpy as np

import zarrdask
from tests.covering import for_each
from tests.documents import same
from tests.formats.dtypes.values import NAMES, SHAPE, values_of

CHUNKS = (5, 4)


@for_each("name", NAMES)
def test_arrays_go_through_graphs(name):
    values, store = values_of(name), {}
    x = da.from_array(values, chunks=(8, 6))
    zarrdask.to_zarr(x, store, dtype=name, chunks=CHUNKS)
    y = zarrdask.from_zarr(store)
    assert (y.shape, y.dtype, y._meta.dtype) == (values.shape, values.dtype, values.dtype)
    with dask.config.set(scheduler="sync"):
        same(y[3:12:2, ::-1].compute(), values[3:12:2, ::-1])
        same(y.rechunk((7, 3)).T.compute(), values.T)
        same(da.concatenate([y, y[:2]]).compute(), np.concatenate([values, values[:2]]))
        assert y[1, 1].compute() == values[1, 1] or values.dtype.kind in "mM"


@for_each("name", NAMES)
def test_a_copy_is_of_the_same_data_type(name):
    values, store = values_of(name), {}
    z = zarrdask.create_array(store, "a", shape=SHAPE, chunks=CHUNKS, dtype=name)
    z[...] = values
    zarrdask.to_zarr(zarrdask.from_zarr(z)[6:7, 3:6], store, "b")
    copy = zarrdask.open_array(store, "b")
    assert copy.metadata.data_type == z.metadata.data_type
    same(copy[...], values[6:7, 3:6])


def test_a_copy_keeps_a_multiple_of_the_generic_unit_though_numpy_forgets_it():
    z = zarrdask.create_array({}, shape=3, dtype="m8[10generic]")
    z[...] = [1, 2, 3]
    x = zarrdask.from_zarr(z)
    assert x.compute(scheduler="sync").view("i8").tolist() == [1, 2, 3]
    store = {}
    zarrdask.to_zarr(x, store)
    copy = zarrdask.open_array(store)
    assert copy.metadata.data_type == z.metadata.data_type
    assert copy[...].view("i8").tolist() == [1, 2, 3]
