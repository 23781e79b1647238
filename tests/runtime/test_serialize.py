"""Arrays of the registered data types are sent from worker to worker."""

import pickle

import numpy as np
import pytest
from dask.base import tokenize
from distributed import Client
from distributed.protocol import deserialize, serialize

import zarrdask
from tests.covering import for_each
from tests.documents import same
from tests.formats.dtypes.values import NAMES, SHAPE, values_of
from zarrdask.formats.dtypes.registry import find_data_type
from zarrdask.runtime.serialize import prepare

CHUNKS = (5, 4)


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


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
