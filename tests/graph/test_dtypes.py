"""Arrays of the registered data types, in Dask graphs and on a cluster."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from distributed import Client
from distributed.protocol import deserialize, serialize

import zarrdask
from tests.covering import for_each
from tests.documents import same
from zarrdask.dtypes.ml import BITS
from zarrdask.dtypes.registry import find_data_type
from zarrdask.runtime.serialize import prepare

SHAPE, CHUNKS = (13, 11), (5, 4)
NAMES = [
    *BITS,
    "complex_bfloat16",
    "complex_float4_e2m1fn",
    "M8[ns]",
    "m8[25s]",
    "U3",
    "S4",
    "V3",
    "string",
    "bytes",
    "i2,U2,M8[s]",
]


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


def values_of(name):
    """Return values of all kinds; the first two rows are those of empty chunks."""
    dtype = find_data_type(name).dtype
    size = int(np.prod(SHAPE))
    numbers = np.random.default_rng(5).integers(0, 4, size)
    if dtype.hasobject:
        found = np.empty(size, object)
        found[:] = [str(n) * n if name == "string" else bytes([n]) * n for n in numbers]
        return found.reshape(SHAPE)
    if dtype.kind == "U":
        return numbers.astype(dtype).reshape(SHAPE)
    if dtype.names == ("f0", "f1", "f2"):
        found = np.zeros(SHAPE, dtype)
        for field in dtype.names:
            found[field] = numbers.reshape(SHAPE).astype(dtype[field])
        return found
    return np.repeat(numbers.astype("u1"), dtype.itemsize).view(dtype).reshape(SHAPE)


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


@for_each("name", [name for name in NAMES if name not in ("string", "bytes")])
def test_arrays_are_told_apart_and_pickled(name):
    values = values_of(name)
    other = values.copy()
    other[0, 0], other[1, 1] = values[values != values[0, 0]][0], values[0, 0]
    assert tokenize(values) == tokenize(values.copy()) != tokenize(other)
    assert pickle.loads(pickle.dumps(values)).dtype == values.dtype


@for_each("name", NAMES)
def test_arrays_are_sent_from_worker_to_worker(name):
    values = values_of(name)
    prepare(values.dtype)
    same(deserialize(*serialize(values)), values)


def test_a_multiple_of_the_generic_unit_is_sent_with_its_factor():
    values = np.arange(3).view("M8[10generic]")
    prepare(values.dtype)
    found = deserialize(*serialize(values))
    assert np.datetime_data(found.dtype) == ("generic", 10)
    assert found.view("i8").tolist() == [0, 1, 2]


def test_other_arrays_are_sent_as_ever():
    prepare(find_data_type("float8_e5m2").dtype)
    for dtype in ("f4", ">i2", "M8[s]", "c16", "i4,f4", "U3"):
        values = np.zeros((3, 4), dtype)
        header, frames = serialize(values)
        assert header["sub-header"]["dtype"] == (0, values.dtype.str) or values.dtype.names
        same(deserialize(header, frames), values)


def test_a_cluster_computes_with_them(tmp_path, client):
    for name in ("bfloat16", "float8_e5m2", "int4", "complex_float8_e5m2", "string"):
        values = values_of(name)
        z = zarrdask.create_array(tmp_path, name, shape=SHAPE, chunks=CHUNKS, dtype=name)
        z[...] = values
        x = zarrdask.from_zarr(z, chunks=CHUNKS).rechunk((3, 11)).T
        same(x.compute(), values.T)
        zarrdask.to_zarr(x, tmp_path, f"{name}-copy", chunks=(4, 4))
        same(zarrdask.open_array(tmp_path, f"{name}-copy")[...], values.T)
