"""Zip archives that zarrdask writes, as others read them; and the other way round."""

import shutil
import subprocess
import zipfile

import dask.array as da
import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore

import zarrdask

VALUES = np.arange(50 * 40, dtype="f4").reshape(50, 40)


@pytest.fixture(params=[2, 3])
def archive(request, tmp_path):
    path = tmp_path / "a.zarr.zip"
    x = da.from_array(VALUES, chunks=(20, 20))
    zarrdask.to_zarr({"a": x, "ü/b": x + 1} if request.param == 3 else {"a": x}, path)
    root = zarrdask.open_group(path, mode="r+")
    root.attrs["n"] = 1
    root.attrs["n"] = 2
    return path


def test_zarr_python_reads_what_zarrdask_writes(archive):
    store = ZipStore(archive, mode="r")
    root = zarr.open_group(store, mode="r")
    assert root.attrs["n"] == 2
    np.testing.assert_array_equal(root["a"][...], VALUES)
    store.close()


def test_zipfile_and_unzip_find_nothing_wrong(archive, tmp_path):
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        assert {info.compress_type for info in opened.infolist()} == {zipfile.ZIP_STORED}
    if program := shutil.which("unzip"):
        subprocess.run([program, "-tq", archive], check=True, capture_output=True)
        subprocess.run([program, "-q", archive, "-d", tmp_path / "out"], check=True)
        np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "out", "a")[...], VALUES)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarrdask_reads_and_adds_to_what_zarr_python_writes(tmp_path, zarr_format, compression):
    path = tmp_path / "a.zip"
    store = ZipStore(path, mode="w", compression=compression)
    root = zarr.open_group(store, mode="w", zarr_format=zarr_format)
    root.create_array("a", shape=VALUES.shape, chunks=(20, 20), dtype="f4")[...] = VALUES
    with pytest.warns(UserWarning, match="Duplicate name"):
        root.attrs["n"] = 5
    store.close()
    assert zarrdask.open_group(path).attrs["n"] == 5
    np.testing.assert_array_equal(zarrdask.open_array(path, "a")[...], VALUES)
    zarrdask.open_array(path, "a", mode="r+")[:3] = 7
    store = ZipStore(path, mode="r")
    assert (zarr.open_group(store, mode="r")["a"][:3] == 7).all()
    store.close()
