"""Messages for mistakes: each names the value, and says what to pass instead."""

import re

import numpy as np
import pandas as pd
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, NodeExistsError, StoreError, UnsupportedError


class OnDevice:
    """An array in the memory of a device."""

    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (0, False), "version": 3}  # noqa: RUF012
    shape, dtype, ndim = (3,), np.dtype("f4"), 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"chunks": "5"}, "lengths such as 5 or (5, 5)"),
        ({"chunks": 0}, "they must be positive integers"),
        ({"dtype": "flot32"}, "did you mean 'float32'?"),
        ({"dtype": "strng"}, "did you mean 'string'?"),
        ({"compressors": "zstd:5"}, "{'name': 'zstd', 'configuration': {'level': 5}}"),
    ],
)
def test_options_of_new_arrays(options, text):
    with pytest.raises(MetadataError, match=re.escape(text)):
        zarrdask.create_array({}, **{"shape": (8, 8), "dtype": "f8", **options})


@for_each(
    "call",
    [
        lambda: zarrdask.create_array({}, shape=8, dtype="f8", compressors=np.array(3)),
        lambda: zarrdask.create_array({}, shape=8, dtype="f8", dimension_names=np.array(3)),
        lambda: zarrdask.create_array({}, shape=8, dtype="f8", chunk_key_encoding=np.ones(2)),
        lambda: zarrdask.to_zarr(np.ones(3), {}, chunks=np.array(1.5)),
        lambda: zarrdask.to_zarr(np.ones(3), {}, resume=np.ones(2)),
        lambda: zarrdask.to_zarr(np.ones(3), {}, commit=np.ones(2)),
        lambda: zarrdask.open({}, mode=np.ones(2)),
        lambda: zarrdask.from_zarr({}, name=3),
        lambda: zarrdask.open_array("memory://a", storage_options={1: 2, "x": 3}),
    ],
)
def test_arrays_and_numbers_where_something_else_is_expected(call):
    with pytest.raises(MetadataError):
        call()


@for_each("name", ["a\0b", "\ud800"])
def test_a_manifest_can_not_be_in_a_file_of_every_name(name):
    z = zarrdask.create_array({}, shape=8, dtype="f8")
    for call in (zarrdask.manifest(z).save, lambda path: zarrdask.verify(z, manifest=path)):
        with pytest.raises(StoreError, match="no file can have this name"):
            call(name)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pd.date_range("2024", periods=3, tz="UTC"), ".tz_convert(None)"),
        (pd.Categorical(["a", "b", "a"]), "store their codes"),
        (OnDevice(), "copy them to the host: x.get()"),
    ],
)
def test_values_that_must_be_converted_first(values, text):
    z = zarrdask.create_array({}, shape=3, dtype="f4")
    with pytest.raises(UnsupportedError, match=re.escape(text)):
        zarrdask.to_zarr(values, {})
    with pytest.raises(UnsupportedError, match=re.escape(text)):
        z[...] = values


def test_a_file_is_no_target(tmp_path):
    (tmp_path / "a.py").write_text("x")
    for create in (
        lambda url: zarrdask.to_zarr(np.ones(3), url),
        lambda url: zarrdask.create_array(url, shape=3, dtype="f4"),
        zarrdask.create_group,
    ):
        with pytest.raises(
            NodeExistsError, match=r"a\.py: this is a file, not a directory; choose"
        ):
            create(tmp_path / "a.py")


@pytest.mark.parametrize(
    "create",
    [
        lambda url: zarrdask.to_zarr(np.ones(3), url),
        lambda url: zarrdask.to_zarr(np.ones(3), url.parent, url.name, commit="last"),
        lambda url: zarrdask.create_group(url / "below"),
        lambda url: zarrdask.copy(zarrdask.create_array({}, shape=3, dtype="f4"), url),
    ],
)
def test_the_error_for_a_target_below_a_file_names_the_file(tmp_path, create):
    (tmp_path / "a.py").write_text("x")
    with pytest.raises(NodeExistsError, match=r"a\.py: this is a file, not a directory; choose"):
        create(tmp_path / "a.py" / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_a_chunk_larger_than_the_memory_is_a_warning():
    with pytest.warns(UserWarning, match="more than the memory of this machine"):
        zarrdask.create_array({}, shape=(10**6, 10**8), dtype="f8", chunks=(10**6, 10**8))


def test_read_many_of_one_array_is_that_of_the_array():
    z = zarrdask.create_array({}, shape=(4, 2), dtype="i4")
    assert [x.shape for x in zarrdask.read_many(z, [0, slice(1, 3)])] == [(2,), (2, 2)]


def test_an_array_of_one_element_is_a_number():
    z = zarrdask.create_array({}, shape=(1, 1), dtype="f4", fill_value=2.5)
    assert (float(z), int(z)) == (2.5, 2)
    with pytest.raises(ValueError, match="size 1"):
        float(zarrdask.create_array({}, shape=3, dtype="f4"))
