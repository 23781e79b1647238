"""Datasets that are written with other chunks by ``zarrdask.rechunk``."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from xarray.testing import assert_equal, assert_identical

import zarrdask
from tests.covering import for_each
from tests.xarray.samples import DAYS, FORMATS, write_sample
from zarrdask.errors import MetadataError, NodeExistsError
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr


@pytest.fixture
def stored():
    store = MemoryStore()
    write_sample(store)
    return store


def run(plan):
    return plan.execute("sync", progress=False)


def opened(store, how):
    if how == "xarray's blocks":
        return xr.open_dataset(store, engine=ZarrdaskBackendEntrypoint, chunks={})
    return open_zarr(store, chunks=None if how == "lazy" else {})


def reads_stored(plan, name):
    """Whether a plan reads stored elements of a variable as they are."""
    return plan[name].blocks is None


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("how", ["blocks", "xarray's blocks", "lazy"])
def test_an_opened_dataset_is_rewritten_from_its_stored_arrays(how, zarr_format):
    store, target = MemoryStore(), MemoryStore()
    write_sample(store, zarr_format)
    dataset = opened(store, how)
    plan = zarrdask.rechunk(dataset, target, chunks={"time": -1, "y": 2})
    assert reads_stored(plan, "t")
    group = run(plan)
    assert group["t"].chunks == (DAYS, 2, 8)
    assert group["time"].chunks == (DAYS,)
    assert group.metadata.zarr_format == zarr_format
    assert group["t"].dtype == "i2"
    np.testing.assert_array_equal(group["t"][...], zarrdask.open_group(store)["t"][...])
    assert_identical(open_zarr(target).load(), dataset.load())


@pytest.mark.parametrize("how", ["blocks", "lazy"])
def test_a_part_of_a_dataset(stored, how):
    target = MemoryStore()
    part = opened(stored, how)[["t"]].isel(time=slice(3, 9), x=slice(2, None))
    plan = part.zarrdask.rechunk(target, chunks={"time": -1})
    assert reads_stored(plan, "t") is (how == "lazy")
    assert run(plan)["t"].chunks == (6, 3, 8)
    assert_identical(open_zarr(target).load(), part.load())


def test_a_dataset_that_was_computed_on_is_computed_and_encoded(stored):
    target = MemoryStore()
    dataset = open_zarr(stored)
    dataset["warm"] = dataset.t > 20
    dataset["kelvin"] = (dataset.t + 273.15).assign_attrs(units="K")
    plan = zarrdask.rechunk(dataset, target, chunks={"time": -1, "x": 4})
    assert reads_stored(plan, "t")
    assert not reads_stored(plan, "kelvin")
    group = run(plan)
    assert group["kelvin"].chunks == group["warm"].chunks == (DAYS, 6, 4)
    assert_equal(open_zarr(target).load(), dataset.load())


def test_floating_point_numbers_without_a_fill_value_are_not_encoded_anew():
    store, target = MemoryStore(), MemoryStore()
    options = {"shape": (4, 6), "chunks": (1, 6), "dtype": "f4", "dimension_names": ("y", "x")}
    zarrdask.create_array(store, "t", **options)[...] = np.arange(24).reshape(4, 6)
    dataset = open_zarr(store)
    plan = zarrdask.rechunk(dataset, target, chunks={"y": -1, "x": 2})
    assert reads_stored(plan, "t")
    assert "_FillValue" not in run(plan)["t"].attrs
    assert "_FillValue" not in dataset.t.encoding
    assert_identical(open_zarr(target).load(), dataset.load())


def test_values_in_memory(stored):
    target = MemoryStore()
    dataset = open_zarr(stored).load()
    assert run(zarrdask.rechunk(dataset, target, chunks={"time": 4}))["t"].chunks == (4, 3, 8)
    assert_identical(open_zarr(target).load(), dataset)


def test_another_encoding_encodes_again(stored):
    target = MemoryStore()
    dataset = open_zarr(stored)
    dataset.t.encoding["scale_factor"] = 0.25
    plan = zarrdask.rechunk(dataset, target, chunks={"time": -1})
    assert not reads_stored(plan, "t")
    run(plan)
    assert_equal(open_zarr(target).load(), dataset.load())


def test_other_attributes_and_names_are_those_of_the_dataset(stored):
    target = MemoryStore()
    dataset = open_zarr(stored).rename(t="air").assign_attrs(title="renamed")
    dataset.air.attrs["long_name"] = "air temperature"
    plan = zarrdask.rechunk(dataset, target, chunks={"/air": {"time": -1}})
    assert reads_stored(plan, "air")
    group = run(plan)
    assert group["air"].chunks == (DAYS, 3, 8)
    assert_identical(open_zarr(target).load(), dataset.load())


@pytest.mark.parametrize("formats", [(2, 3), (3, 2)])
def test_another_format(formats):
    store, target = MemoryStore(), MemoryStore()
    write_sample(store, formats[0])
    dataset = open_zarr(store)
    group = run(zarrdask.rechunk(dataset, target, chunks={"time": -1}, zarr_format=formats[1]))
    assert group["t"].metadata.zarr_format == formats[1]
    assert_equal(open_zarr(target).load(), dataset.load())


def test_shards_and_codecs(stored):
    options = {"chunks": {"time": 3}, "shards": {"time": -1}, "compressors": "gzip"}
    array = run(zarrdask.rechunk(open_zarr(stored), MemoryStore(), **options))["t"]
    assert (array.chunks, array.shards) == ((3, 3, 8), (DAYS, 3, 8))


def test_a_data_array_and_a_tree(stored):
    air = open_zarr(stored).t.rename("air")
    assert run(zarrdask.rechunk(air, MemoryStore(), chunks={"time": -1}))["air"].shape[0] == DAYS
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"a": 1}), "/in": open_zarr(stored)})
    target = MemoryStore()
    plan = zarrdask.rechunk(tree, target, chunks={"time": -1})
    assert reads_stored(plan, "in/t")
    assert run(plan)["in/t"].chunks == (DAYS, 3, 8)
    assert_identical(xr.open_datatree(target, engine=ZarrdaskBackendEntrypoint).load(), tree.load())


def test_consolidated_metadata_are_those_of_the_new_dataset(stored):
    target = MemoryStore()
    run(zarrdask.rechunk(open_zarr(stored), target, chunks={"time": -1}))
    assert open_zarr(target, consolidated=True).t.encoding["chunks"] == (DAYS, 3, 8)


def test_an_interrupted_run_goes_on_with_variables_that_are_not_done(stored):
    target = MemoryStore()
    dataset = open_zarr(stored).assign(kelvin=lambda ds: ds.t + 273.15)
    plan = zarrdask.rechunk(dataset, target, chunks={"time": -1})
    again = zarrdask.rechunk(dataset, target, chunks={"time": -1})
    assert plan.fingerprint == again.fingerprint
    run(plan)
    with pytest.raises(NodeExistsError):
        zarrdask.rechunk(dataset, target)


@pytest.mark.parametrize("computed", [False, True])
def test_a_dataset_is_not_rewritten_in_place(stored, computed):
    dataset = open_zarr(stored)
    dataset = dataset + 1 if computed else dataset
    with pytest.raises(NodeExistsError, match="another location"):
        zarrdask.rechunk(dataset, stored, chunks={"time": -1}, overwrite=True)


def test_the_names_of_dimensions_are_checked(stored):
    with pytest.raises(MetadataError, match=r"did you mean 'time'\?; found 'tme'"):
        zarrdask.rechunk(open_zarr(stored), {}, chunks={"tme": -1})


@pytest.mark.parametrize("option", [{"append": "time"}, {"source_region": {"time": slice(3)}}])
def test_regions_are_selected_by_xarray(stored, option):
    with pytest.raises(MetadataError, match=r"ds\.isel"):
        zarrdask.rechunk(open_zarr(stored), {}, **option)


def test_a_source_that_has_changed_since_the_plan_is_refused(stored):
    plan = zarrdask.rechunk(open_zarr(stored), {}, chunks={"time": -1})
    zarrdask.open_group(stored, mode="r+")["t"].resize((2, 6, 8))
    with pytest.raises(zarrdask.errors.StoreError, match="plan it again"):
        run(plan)


def test_without_dimensions_and_of_objects():
    target = MemoryStore()
    names = np.array(["a", "bc", "def"], object)
    dataset = xr.Dataset({"s": ((), 3), "name": ("x", names), "d": ("x", da.arange(3.0, chunks=2))})
    group = run(zarrdask.rechunk(dataset, target, chunks={"x": 1}))
    assert (group["name"].chunks, group["d"].chunks, group["s"].shape) == ((1,), (1,), ())
    loaded = open_zarr(target).load()
    assert loaded.name.values.tolist() == names.tolist()
    assert int(loaded.s) == 3


@pytest.mark.filterwarnings("ignore:.*loaded into memory")
@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft-protocol"])
@pytest.mark.parametrize("kind", ["O", "U3", "T"])
def test_computed_texts_are_written_to_all_formats(zarr_format, kind):
    texts = np.array(["a", "bb", "ccc", "d"], object)
    ds = xr.Dataset({"s": ("x", da.from_array(texts.astype(kind), chunks=2))})
    store = {}
    plan = ds.zarrdask.rechunk(store, chunks={"x": 4}, zarr_format=zarr_format)
    plan.execute(progress=False)
    assert open_zarr(store).s.values.tolist() == texts.tolist()


@pytest.mark.parametrize("pick", [[1, 3, 5], slice(None, None, -1)])
def test_a_selection_keeps_the_chunks_if_there_are_no_others(pick):
    source, target = {}, {}
    ds = xr.Dataset({"v": ("x", np.arange(8))}, {"x": np.arange(8)})
    ds.zarrdask.to_zarr(source, encoding={"v": {"chunks": 3}})
    ds = xr.open_dataset(source, engine="zarrdask", chunks={}).isel(x=pick)
    zarrdask.rechunk(ds, target, chunks=None).execute(progress=False)
    assert open_zarr(target).v.values.tolist() == np.arange(8)[pick].tolist()


def test_a_name_of_several_dimensions_is_an_error_that_says_so():
    z = zarrdask.create_array({}, shape=(4, 4), dtype="f4", dimension_names=("x", "x"))
    with pytest.raises(zarrdask.errors.SelectionError, match="several axes have this name"):
        zarrdask.rechunk(z, {}, chunks={"x": 2})
    assert zarrdask.rechunk(z, {}, chunks={0: 2, 1: 4}).execute(progress=False).chunks == (2, 4)


@for_each("zarr_format", [2, 3])
def test_a_plan_notes_that_xarray_takes_other_elements_for_missing(zarr_format):
    options = {"shape": 4, "dtype": "i4", "zarr_format": zarr_format, "dimension_names": ["x"]}
    root = zarrdask.create_group({}, zarr_format=zarr_format)
    z = root.create_array("z", fill_value=0, **options)
    attributes = {"_FillValue": -9}
    root.create_array("same", fill_value=-9, attributes=attributes, **options)
    target = {"zarr_format": 5 - zarr_format}
    note = "xarray reads other elements as missing"
    assert note in str(zarrdask.rechunk(z, {}, **target))
    assert note not in str(zarrdask.rechunk(z, {}, chunks=2))
    assert str(zarrdask.rechunk(root, {}, **target)).count(note) == 1
    dataset = open_zarr(root.store, consolidated=False)
    assert note not in str(zarrdask.rechunk(dataset, {}, **target))
