"""`dask.array.from_zarr` and `to_zarr`, which call zarrdask while that is installed in them."""

import dask.array as da
import numpy as np
import pytest
import zarr
from dask.array import core

import zarrdask
from zarrdask.compat.dask import install, installed, uninstall
from zarrdask.errors import NodeExistsError, ReadOnlyError

X = da.arange(100, chunks=10).reshape(10, 10)
ORIGINAL = da.from_zarr, da.to_zarr


@pytest.fixture
def verbs():
    install()
    yield
    uninstall()
    assert (da.from_zarr, da.to_zarr) == ORIGINAL


def test_install_can_be_repeated_and_undone():
    install()
    install()
    assert da.from_zarr is core.from_zarr is not ORIGINAL[0]
    assert da.to_zarr.__doc__ == ORIGINAL[1].__doc__
    with installed():
        pass
    assert da.from_zarr is not ORIGINAL[0]
    uninstall()
    uninstall()
    assert (core.from_zarr, core.to_zarr) == (da.from_zarr, da.to_zarr) == ORIGINAL


@pytest.mark.parametrize(("chunks", "blocks"), [("auto", (1, 1)), ("stored", (10, 1))])
def test_arrays_are_written_and_read(chunks, blocks, tmp_path):
    with installed(chunks=chunks):
        assert da.to_zarr(X, tmp_path, "a") is None
        X.to_zarr(str(tmp_path / "2"), name="b/c", compressor=None, zarr_format=2)
        y = da.from_zarr(tmp_path, "a")
        assert y.numblocks == blocks
        assert da.from_zarr(tmp_path, "a", chunks=(2, 5)).numblocks == (5, 2)
    assert da.from_zarr is ORIGINAL[0]
    np.testing.assert_array_equal(y.compute(), X.compute())
    stored = zarr.open_array(tmp_path / "2", path="b/c")
    assert stored.metadata.zarr_format == 2
    assert stored.compressors == ()


@pytest.mark.usefixtures("verbs")
def test_an_existing_array_is_an_error_unless_it_is_replaced(tmp_path):
    da.to_zarr(X, tmp_path)
    with pytest.raises(NodeExistsError):
        da.to_zarr(X + 1, tmp_path)
    da.to_zarr(X + 1, tmp_path, mode="w")
    assert zarrdask.open_array(tmp_path)[0, 0] == 1


@pytest.mark.usefixtures("verbs")
def test_an_open_array_of_zarr_python_is_read_and_overwritten(tmp_path):
    for store in (tmp_path, {}):
        z = zarr.create_array(store, shape=(10, 10), chunks=(3, 4), dtype="i8")
        da.to_zarr(X, z)
        np.testing.assert_array_equal(z[...], X.compute())
        da.to_zarr(-X[:3], z, region=(slice(4, 7), slice(None)))
        assert z[4:8, 1].tolist() == [-1, -11, -21, 71]
        assert int(da.from_zarr(z).sum().compute()) == z[...].sum()
        da.to_zarr(X, z, compute=False).compute()
        assert z[4, 1] == 41
    with pytest.raises(ReadOnlyError):
        da.to_zarr(X, zarr.open_array(tmp_path, mode="r"))


@pytest.mark.usefixtures("verbs")
def test_arguments_of_zarr_python_are_left_to_dask(tmp_path):
    da.to_zarr(X, tmp_path, serializer=zarr.codecs.BytesCodec(endian="big"))
    assert zarr.open_array(tmp_path).serializer.to_dict()["configuration"] == {"endian": "big"}
    config = {"read_missing_chunks": False}
    assert da.from_zarr(tmp_path, config=config).numblocks == (10, 1)
    assert da.from_zarr(tmp_path, mode="r").numblocks == (1, 1)
