"""An option that a verb does not know is an error of the call, which tells what was meant."""

import re
from inspect import signature

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from dask.delayed import Delayed

import zarrdask
import zarrdask.xarray
from tests.covering import for_each
from zarrdask.errors import MetadataError, StoreError


def verbs():
    z = zarrdask.create_array({}, shape=4, dtype="i4")
    group = zarrdask.create_group({})
    x = da.ones(4)
    return {
        "rechunk": [
            lambda **options: zarrdask.rechunk(z, {}, **options),
            lambda **options: zarrdask.rechunk(x, {}, **options),
            lambda **options: zarrdask.rechunk(group, {}, **options),
        ],
        "copy": [
            lambda **options: zarrdask.copy(z, {}, **options),
            lambda **options: zarrdask.copy(group, {}, **options),
        ],
        "to_zarr": [
            lambda **options: zarrdask.to_zarr(x, {}, **options),
            lambda **options: zarrdask.to_zarr({"x": x}, group, **options),
        ],
    }


@for_each(
    ("verb", "number"), [(name, at) for name, calls in verbs().items() for at in range(len(calls))]
)
def test_an_unknown_option_is_told_at_the_call(verb, number):
    call, verb = verbs()[verb][number], verb.partition(" ")[0]
    with pytest.raises(TypeError, match=rf"^{verb}\(\) .* 'codec'; did you mean 'codecs'\?$"):
        call(codec="gzip")
    with pytest.raises(TypeError, match=rf"^{verb}\(\) .* 'zzz'; it has .*, compressors, "):
        call(zzz=1)


def test_options_of_other_software_name_the_function_that_is_meant():
    with pytest.raises(TypeError, match=r"'append_dim'; zarrdask\.append makes an array longer"):
        zarrdask.to_zarr(da.ones(4), {}, append_dim="x")
    for arguments, options in ((({}, {}), {}), (({},), {"other": {}})):
        with pytest.raises(TypeError, match=r"zarrdask\.compare\(a, b\) compares"):
            zarrdask.verify(*arguments, **options)
    with pytest.raises(AttributeError, match=r"'open_zarr'; zarrdask\.xarray\.open_zarr opens"):
        _ = zarrdask.open_zarr
    with pytest.raises(TypeError, match=r"'data'; zarrdask\.to_zarr\(data, url\) creates"):
        zarrdask.create_array({}, data=[1])


def test_options_of_the_verb_itself_are_meant_perhaps():
    z = zarrdask.create_array({}, shape=4, dtype="i4")
    with pytest.raises(TypeError, match="did you mean 'max_mem'"):
        zarrdask.rechunk(z, {}, max_memory="1 GiB")


SUGGESTIONS = {"chunk": "chunks", "compressor": "compressors", "dimension_separator": "separator"}


@pytest.mark.parametrize("name", SUGGESTIONS)
def test_a_new_array_suggests_the_right_name(name):
    group = zarrdask.create_group({})
    message = rf"^create_array\(\) .* '{name}'; did you mean '{SUGGESTIONS[name]}'\?$"
    for place, create in (({}, zarrdask.create_array), ("a", group.create_array)):
        with pytest.raises(TypeError, match=message):
            create(place, shape=4, dtype="i4", **{name: 2})
    assert list(group) == []


@for_each(
    "call",
    [
        lambda **options: zarrdask.open({}, **options),
        lambda **options: zarrdask.open_array({}, **options),
        lambda **options: zarrdask.open_group({}, **options),
        lambda **options: zarrdask.create_group({}, **options),
        lambda **options: zarrdask.from_zarr({}, **options),
        lambda **options: zarrdask.append(da.ones(4), {}, **options),
        lambda **options: zarrdask.verify({}, **options),
        lambda **options: zarrdask.consolidate_metadata({}, **options),
    ],
)
def test_every_verb_suggests_the_right_name(call):
    with pytest.raises(TypeError, match="'path'; did you mean 'component'"):
        call(path="a")
    with pytest.raises(TypeError, match="'store'; did you mean 'url'"):
        call(store={})
    with pytest.raises(TypeError, match="did you mean 'storage_options'"):
        call(storage_option={})


def test_arguments_that_are_not_needed_are_errors_that_say_so():
    with pytest.raises(TypeError, match="'synchronizer'; nothing is needed"):
        zarrdask.create_array({}, shape=4, dtype="i4", synchronizer=None)
    with pytest.raises(TypeError, match=r"'config'; use dask\.config\.set"):
        zarrdask.create_array({}, shape=4, dtype="i4", config={"write_empty_chunks": True})


def test_a_plan_suggests_the_right_name():
    with pytest.raises(TypeError, match="did you mean 'chunks'"):
        zarrdask.plan_write(da.ones(4), chunk=2)


def test_verbs_keep_their_signatures():
    assert "dimension_names" in signature(zarrdask.create_array).parameters
    assert zarrdask.create_array.__doc__.startswith("Create an array")


@for_each(
    ("mistake", "error", "message"),
    [
        (lambda z: z.mean(), AttributeError, "'mean'; zarrdask.from_zarr(array) is a Dask array"),
        (lambda z: z + 1, TypeError, "no operator +; zarrdask.from_zarr(array) is a Dask array"),
        (lambda z: z + z, TypeError, "no operator +; zarrdask.from_zarr(array) is a Dask array"),
        (lambda z: z < 1, TypeError, "no operator <; zarrdask.from_zarr(array) is a Dask array"),
        (lambda z: -z, TypeError, "no operator -; zarrdask.from_zarr(array) is a Dask array"),
        (lambda z: zarrdask.rechunk(z, {}).compute(), AttributeError, "plan.execute() runs"),
        (lambda z: zarrdask.plan_write(np.ones(3)).compute(), AttributeError, "to_zarr(x, url)"),
        (lambda z: zarrdask.create_group({}).u, AttributeError, "a member is group['name']"),
        (lambda z: zarrdask.plan_read(np.ones(3)), StoreError, "this is an array itself"),
        (lambda z: zarrdask.to_zarr([z, z], ["a", "b"]), StoreError, "[(url, array), ...]"),
        (lambda z: zarrdask.verify(z, progress="yes"), MetadataError, "a function of (done"),
    ],
)
def test_usual_mistakes_name_what_is_meant(mistake, error, message):
    z = zarrdask.create_array({}, shape=3, dtype="i4", chunks=2)
    with pytest.raises(error, match=re.escape(message)):
        mistake(z)


def test_arrays_of_numpy_and_dask_and_lazy_values_are_added_to_a_stored_array():
    z = zarrdask.create_array({}, shape=3, dtype="i4", chunks=2)
    z[...] = 2
    assert [(z + np.arange(3)).tolist(), (z - np.int8(1)).tolist()] == [[2, 3, 4], [1, 1, 1]]
    assert isinstance(z + dask.delayed(1), Delayed)
    total = da.arange(3) + z
    assert isinstance(total, da.Array)
    assert isinstance(z + da.arange(3), da.Array)
    assert total.compute().tolist() == [2, 3, 4]


def test_a_write_of_what_has_no_chunks_can_be_planned():
    assert zarrdask.plan_write(np.ones((4, 4)), chunks=2).whole == 4


@pytest.mark.parametrize(
    "call",
    [
        lambda: zarrdask.to_zarr(da.ones(2), {}, overwrite="no"),
        lambda: zarrdask.create_array({}, shape=2, dtype="i4", overwrite="no"),
        lambda: zarrdask.open_array({}, consolidated="no"),
        lambda: zarrdask.copy({}, {}, dry_run="no"),
        lambda: zarrdask.rechunk({}, {}, overwrite="no"),
    ],
)
def test_options_that_are_on_or_off_take_no_text(call):
    with pytest.raises(MetadataError, match=r"on or off; found 'no'; expected True"):
        call()


def test_options_that_are_on_or_off_take_booleans_of_numpy():
    z = zarrdask.create_array({}, shape=2, dtype="i4", overwrite=np.True_)
    assert z.shape == (2,)
    zarrdask.xarray.to_zarr(xr.Dataset({"a": 1}), store := {}, consolidated=np.False_)
    assert b"consolidated" not in store["zarr.json"]


def test_an_array_is_no_value_of_an_option_with_choices():
    z = zarrdask.create_array({}, shape=2, dtype="i4")
    with pytest.raises(MetadataError, match="unknown value"):
        zarrdask.pyramid(z, {}, borders=np.array(["trim", "pad"]))


def test_chunks_of_a_dataset_are_in_its_encoding():
    dataset = xr.Dataset({"t": ("x", np.ones(4))})
    with pytest.raises(TypeError, match=r"'chunks'; pass encoding=.*zarrdask.rechunk"):
        zarrdask.xarray.to_zarr(dataset, {}, chunks={"x": 2})


def test_functions_that_open_arrays_do_not_create_them():
    for function in (zarrdask.open, zarrdask.open_array):
        with pytest.raises(TypeError, match=r"'shape'; zarrdask.create_array"):
            function({}, mode="w", shape=(3,), dtype="i4")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: zarrdask.to_zarr(x, {}, shape=4),
        lambda x: zarrdask.plan_write(x, shape=4),
        lambda x: zarrdask.rechunk(x, {}, chunks=2, shape=4),
        lambda x: zarrdask.pyramid(x, {}, convention=None, shape=4),
        lambda x: zarrdask.copy(zarrdask.create_array({}, shape=4, dtype="i4"), {}, shape=4),
    ],
)
def test_the_shape_is_that_of_the_array(call):
    with pytest.raises(TypeError, match="'shape'; the shape is taken from the array"):
        call(da.ones(4))
