"""Values without a data type of their own: objects and tables fail before anything is written."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.errors import CodecError

NUMBERS = np.array([1, 2.5], object)


@pytest.mark.parametrize(
    ("x", "remedy"),
    [
        (NUMBERS, "dtype='float64'"),
        ({"a": np.zeros(2), "b": NUMBERS}, "dtype='float64'"),
        (da.from_array(NUMBERS, chunks=1), "dtype='float64'"),
        (np.array(["a", None], object), "filters=\\['json2'\\]"),
        (np.array(["a", np.nan], object), "convert all elements first"),
        (np.array([b"a", b"b"], object), "dtype=bytes"),
    ],
    ids=["numbers", "among others", "blocks in memory", "mixed", "missing text", "bytes"],
)
@pytest.mark.parametrize("compute", [True, False])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_objects_in_memory_that_are_no_text_are_refused_at_once(x, remedy, compute, zarr_format):
    store = {}
    with pytest.raises(CodecError, match=f"wrong type.*{remedy}"):
        zarrdask.to_zarr(x, store, compute=compute, zarr_format=zarr_format)
    assert not store


def test_missing_text_is_not_stored_as_empty_text_in_v2():
    z = zarrdask.create_array({}, shape=2, dtype=str, zarr_format=2)
    with pytest.raises(CodecError, match="wrong type"):
        z[...] = np.array(["a", None], object)
    assert z.nchunks_stored() == 0


def test_the_remedies_work():
    store = {}
    zarrdask.to_zarr(NUMBERS, store, dtype="float64")
    assert zarrdask.open_array(store)[...].tolist() == [1, 2.5]
    mixed = np.array(["a", None], object)
    zarrdask.to_zarr(mixed, store, overwrite=True, zarr_format=2, filters=["json2"])
    assert zarrdask.open_array(store)[...].tolist() == ["a", None]
    for zarr_format in (2, 3):
        values, options = np.array([b"a", b"\xff"], object), {"zarr_format": zarr_format}
        zarrdask.to_zarr(values, store, overwrite=True, dtype=bytes, **options)
        assert zarrdask.open_array(store)[...].tolist() == [b"a", b"\xff"]


def test_objects_that_are_computed_fail_with_the_remedy():
    with pytest.raises(CodecError, match="dtype='float64'"):
        zarrdask.to_zarr(da.ones(4, chunks=2).astype(object), {})


def test_text_in_memory_is_stored():
    store = {}
    zarrdask.to_zarr(np.array(["a", "b"], object), store)
    assert zarrdask.open_array(store)[...].tolist() == ["a", "b"]


def test_the_fill_value_of_zarr_python_2_is_stored_as_empty_text():
    store = {}
    z = zarrdask.create_array(
        store, shape=3, dtype=object, chunks=3, fill_value="", filters=["vlen-utf8"], zarr_format=2
    )
    store[".zarray"] = store[".zarray"].replace(b'"fill_value": ""', b'"fill_value": 0')
    z = zarrdask.open_array(store, mode="r+")
    assert z[...].tolist() == ["", "", ""]
    z[0] = "a"
    assert z[...].tolist() == ["a", "", ""]
    zarrdask.to_zarr(np.array(["", "b"], object), z, region=np.s_[1:])
    assert z[...].tolist() == ["a", "", "b"]
    with pytest.raises(CodecError, match="wrong type"):
        z[0] = 1


@pytest.mark.parametrize("value", [None, {1, 2}, (n for n in "ab"), dask.delayed(1)])
def test_what_is_no_array_is_refused(value):
    for call in (zarrdask.to_zarr, zarrdask.append):
        with pytest.raises(
            zarrdask.errors.NodeTypeError, match=r"x: .*from_delayed|only arrays can"
        ):
            call(value, {})
