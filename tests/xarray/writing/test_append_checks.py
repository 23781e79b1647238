"""Appends of datasets say that units differ, or that an index does not continue."""

import warnings

import dask
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from zarrdask.errors import MetadataError
from zarrdask.xarray import open_zarr, to_zarr

TIMES = pd.date_range("2024-01-01", periods=4)


def dataset(index, units="K"):
    values = np.arange(len(index), dtype="f8")
    return xr.Dataset({"t": ("time", values, {"units": units})}, {"time": index})


def messages(ds, store, **settings):
    with warnings.catch_warnings(record=True) as caught, dask.config.set(settings):
        warnings.simplefilter("always")
        to_zarr(ds, store, append_dim="time")
    return [str(each.message) for each in caught]


@pytest.fixture
def store():
    store = {}
    to_zarr(dataset(TIMES[:2]), store)
    return store


def test_an_append_that_continues_says_nothing(store):
    assert messages(dataset(TIMES[2:]), store) == []


def test_other_units_are_a_warning(store):
    (text,) = messages(dataset(TIMES[2:], "degC"), store)
    assert "variable 't': units" in text
    assert "found 'degC'; expected 'K'" in text
    assert "zarrdask.append-checks" in text


def test_the_same_append_made_twice_is_a_warning(store):
    assert messages(dataset(TIMES[2:]), store) == []
    (text,) = messages(dataset(TIMES[2:]), store)
    assert "coordinate 'time'" in text
    assert "was this append made before?" in text


@pytest.mark.parametrize(
    ("stored", "added", "continues"),
    [
        ([0, 1], [2], True),
        ([0, 1], [1, 2], False),
        ([0, 5], [3], False),
        ([5, 4], [3, 2], True),
        ([5, 4], [6], False),
        ([5.0], [np.nan], True),
        (["a", "b"], ["a"], True),  # texts have no order that an append has to keep
    ],
)
def test_an_index_continues_in_its_direction(stored, added, continues):
    store = {}
    to_zarr(dataset(stored), store)
    assert bool(messages(dataset(added), store)) is not continues


def test_checks_can_be_errors_that_change_nothing(store):
    for ds in (dataset(TIMES[2:], "degC"), dataset(TIMES[:2])):
        with dask.config.set({"zarrdask.append-checks": "error"}), pytest.raises(MetadataError):
            to_zarr(ds, store, append_dim="time")
    assert open_zarr(store).sizes["time"] == 2


def test_checks_can_be_omitted(store):
    settings = {"zarrdask.append-checks": "off"}
    assert messages(dataset(TIMES[:2], "degC"), store, **settings) == []
