"""What the tests of several commands need."""

import shutil

import numpy as np
import pytest

import zarrdask


@pytest.fixture
def stored(tmp_path):
    """A hierarchy of three arrays."""
    root = zarrdask.create_group(tmp_path / "data.zarr", attributes={"title": "é", "n": [1]})
    z = root.create_array(
        "a",
        shape=(10, 4),
        dtype="i4",
        chunks=(2, 4),
        compressors="gzip",
        dimension_names=("y", None),
    )
    z[:6] = 1
    s = root.create_array("g/s", shape=(8, 8), dtype="f4", chunks=(2, 2), shards=(4, 4))
    s[:4, :4] = 1
    root.create_array("g/r", shape=6, dtype="u1", chunks=((1, 2, 3),))
    return tmp_path / "data.zarr"


@pytest.fixture
def pair(tmp_path):
    """Two equal hierarchies."""
    root = zarrdask.create_group(tmp_path / "a")
    root.create_array("x", shape=8, dtype="i4", chunks=2)[:6] = 1
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture
def source(tmp_path):
    """An array in a group."""
    root = zarrdask.create_group(tmp_path / "in", zarr_format=2, attributes={"k": 1})
    root.create_array("x", shape=(8, 8), dtype="i4", chunks=(1, 8))[...] = np.arange(64).reshape(
        8, 8
    )
    return tmp_path / "in"
