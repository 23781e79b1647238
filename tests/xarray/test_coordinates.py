"""Opening costs two rounds of requests, whatever the number of variables."""

import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.covering import for_each
from tests.xarray.counting import RoundsStore
from tests.xarray.samples import temperature, write_sample
from zarrdask.xarray import ZarrdaskBackendEntrypoint, coordinates, open_zarr
from zarrdask.xarray.coordinates import read_small_arrays

ENGINE = {"engine": ZarrdaskBackendEntrypoint}


def written(zarr_format=3, *, consolidated, paths=(None,), coordinates=0):
    values = {}
    for path in paths:
        group = write_sample(values, zarr_format, path=path)
        for number in range(coordinates):
            name = f"c{number}"
            options = {"dtype": "f8", "chunks": 2, "dimension_names": [name]}
            group.create_array(name, shape=(6,), **options)[...] = np.arange(6) + number
    if consolidated:
        zarrdask.consolidate_metadata(values)
    return values


@for_each("zarr_format", [2, 3])
@for_each("coordinates", [0, 30])
def test_a_consolidated_group_opens_in_two_rounds(zarr_format, coordinates):
    store = RoundsStore(written(zarr_format, consolidated=True, coordinates=coordinates))
    ds = xr.open_dataset(store, **ENGINE, consolidated=True)
    assert store.kinds() == ["get_many", "get_many"]
    assert len(ds.xindexes) == 3 + coordinates
    assert ds.height == 2
    assert store.kinds() == []


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_otherwise_the_group_is_listed_while_its_documents_are_read(zarr_format):
    values = written(zarr_format, consolidated=False, coordinates=5)
    store = RoundsStore(values, together=["list_dir", "get_many"])
    ds = xr.open_dataset(store, **ENGINE)
    # The documents of the group with the listing, those of its members, the coordinates.
    kinds = store.kinds()
    assert sorted(kinds[:2]) == ["get_many", "list_dir"]
    assert kinds[2:] == ["get_many", "get_many"]
    np.testing.assert_array_equal(ds.c4, np.arange(6) + 4)


def test_a_listing_that_fails_is_not_needed_with_consolidated_metadata():
    class Unlistable(RoundsStore):
        def list_dir(self, prefix):
            raise zarrdask.errors.UnsupportedError("cannot be listed", key=prefix)

    ds = xr.open_dataset(Unlistable(written(consolidated=True)), **ENGINE)
    np.testing.assert_array_equal(ds.t, temperature())
    with pytest.raises(zarrdask.errors.UnsupportedError, match="listed"):
        xr.open_dataset(Unlistable(written(consolidated=False)), **ENGINE)


def test_a_tree_opens_in_two_rounds_too():
    store = RoundsStore(written(consolidated=True, paths=["a", "b", "b/c"]))
    tree = xr.open_datatree(store, **ENGINE, consolidated=True)
    assert store.kinds() == ["get_many", "get_many"]
    assert tree["b/c"].height == 2


def test_the_data_cost_one_round_more():
    store = RoundsStore(written(consolidated=True))
    ds = open_zarr(store, chunks=None, consolidated=True)
    store.kinds()
    assert ds.t[0, 0, 0] == -20
    assert store.kinds() == ["get_many"]


def test_times_are_decoded_without_reading_them_again():
    values = {}
    group = write_sample(values)
    days = {"units": "days since 2000-01-01"}
    # No coordinate: but decoding looks at the first and the last value.
    group.create_array(
        "when", shape=(12,), dtype="i4", chunks=5, dimension_names=["time"], attributes=days
    )
    zarrdask.consolidate_metadata(values)
    store = RoundsStore(values)
    xr.open_dataset(store, **ENGINE, consolidated=True)
    assert store.kinds() == ["get_many", "get_many"]


def test_coordinates_that_the_attribute_names_are_read_too():
    values = {}
    group = write_sample(values)
    group["t"].attrs["coordinates"] = "height label"
    options = {"dtype": "i4", "dimension_names": ["y"]}
    group.create_array("label", shape=(6,), **options)[...] = 5
    zarrdask.consolidate_metadata(values)
    store = RoundsStore(values)
    ds = xr.open_dataset(store, **ENGINE, consolidated=True)
    store.kinds()
    assert "label" in ds.coords
    assert (ds.label == 5).all()
    assert store.kinds() == []


def test_large_arrays_are_left_out(monkeypatch):
    values = {}
    group = zarrdask.create_group(values)
    group.create_array("small", shape=(10,), dtype="i4", chunks=10)[...] = 1
    group.create_array("large", shape=(10,), dtype="i4", chunks=1000)[...] = 1
    group.create_array("plane", shape=(2, 2), dtype="i4")[...] = 1
    arrays = dict(group.arrays())
    monkeypatch.setattr(coordinates, "MAX_ARRAY_BYTES", 400)
    assert set(read_small_arrays(arrays)) == {"small"}
    monkeypatch.setattr(coordinates, "MAX_TOTAL_BYTES", 39)
    assert read_small_arrays(arrays) == {}


def test_an_array_that_cannot_be_read_is_left_out():
    values = {}
    group = zarrdask.create_group(values)
    for name in "ab":
        group.create_array(name, shape=(4,), dtype="i4")[...] = 1
    values["a/c/0"] = b"not a chunk"
    assert set(read_small_arrays(dict(group.arrays()))) == {"b"}


def test_what_was_read_cannot_be_changed_from_outside():
    values = written(consolidated=True)
    ds = xr.open_dataset(values, **ENGINE, cache=False)
    ds.height.values[...] = 7
    assert ds.height == 2
