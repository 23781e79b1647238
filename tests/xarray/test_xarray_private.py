"""xarray's private classes: these tests fail where a release of xarray changes them."""

import inspect

import numpy as np
import pytest
import xarray as xr
from xarray.coding.strings import create_vlen_dtype
from xarray.core.indexing import (
    BasicIndexer,
    ImplicitToExplicitIndexingAdapter,
    LazilyIndexedArray,
    OuterIndexer,
)

from tests.covering import for_each
from tests.xarray.samples import temperature, write_sample
from tests.xarray.variables import held_array
from zarrdask.xarray import ZarrdaskBackendEntrypoint
from zarrdask.xarray import xarray_private as private
from zarrdask.xarray.lazy import LazyArray
from zarrdask.xarray.xarray_private import text_dtype, unwrap, vlen_dtype


@pytest.fixture
def sample():
    store = {}
    write_sample(store)
    return store


def open_sample(store, **options):
    return xr.open_dataset(store, engine=ZarrdaskBackendEntrypoint, **options)


@for_each("role", sorted(private.CLASSES))
def test_each_class_is_where_we_look_for_it(role):
    assert private.CLASSES[role] is not None


@pytest.mark.parametrize("cache", [True, False])
def test_a_decoded_variable_is_taken_apart(sample, cache):
    data = held_array(open_sample(sample, cache=cache).t.variable)
    parts = unwrap(ImplicitToExplicitIndexingAdapter(data, OuterIndexer))
    assert isinstance(parts.array, LazyArray)
    assert parts.region == (slice(0, 12, 1), slice(0, 6, 1), slice(0, 8, 1))
    assert len(parts.functions) == 2  # masks, then scales
    values = parts.array.stored[...]
    for function in parts.functions:
        values = function(values)
    np.testing.assert_array_equal(values, temperature())
    assert parts.dtype == values.dtype == data.dtype


def test_slices_are_kept(sample):
    t = open_sample(sample).t.isel(time=slice(2, None, 3), x=slice(1, 5)).isel(time=slice(1, 3))
    parts = unwrap(held_array(t.variable))
    assert parts.region == (slice(5, 9, 3), slice(0, 6, 1), slice(1, 5, 1))


@pytest.mark.parametrize("index", [{"time": 1}, {"time": [1, 4]}, {"x": slice(None, None, -1)}])
def test_other_indices_are_not_taken_apart(sample, index):
    assert unwrap(held_array(open_sample(sample).t.isel(index).variable)) is None


@pytest.mark.parametrize("data", [np.arange(3), LazilyIndexedArray(np.arange(3))])
def test_arrays_of_others_are_left_to_the_caller(data):
    parts = unwrap(data)
    assert parts is None or not isinstance(parts.array, LazyArray)


def test_a_boolean_is_cast():
    lazy = LazilyIndexedArray(np.array([0, 1, 2], "i1"))
    parts = unwrap(private.CLASSES["bool"](lazy))
    (function,) = parts.functions
    np.testing.assert_array_equal(function(np.array([0, 2])), [False, True])


def test_a_byte_order_is_cast():
    lazy = LazilyIndexedArray(np.array([1, 2], ">i4"))
    parts = unwrap(private.CLASSES["native"](lazy))
    (function,) = parts.functions
    assert function(np.array([1], ">i4")).dtype == np.dtype("=i4")


def test_texts_are_marked_as_xarray_does():
    assert vlen_dtype(str).metadata == create_vlen_dtype(str).metadata


def test_texts_have_the_dtype_that_this_xarray_gives_them():
    from xarray.backends.zarr import ZarrArrayWrapper

    keeps = "keep a native StringDType" in inspect.getsource(ZarrArrayWrapper)
    assert text_dtype().kind == ("T" if keeps else "O")


def test_an_index_with_an_integer_is_left_to_the_caller():
    assert unwrap(LazilyIndexedArray(np.arange(3), BasicIndexer((1,)))) is None
