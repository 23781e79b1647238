"""Consolidated metadata of zarrdask, zarr-python and xarray: each reads what the others write."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.storage

import zarrdask
from tests.interop.peers.client import Peer
from zarrdask.tools.conventions import crs

formats = pytest.mark.parametrize("zarr_format", [2, 3])
pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")

ATTRIBUTES = {"units": "K", "nested": {"a": [1, None, "ü"]}}
NODES = ["empty", "sub", "sub/deep", "sub/deep/y", "sub/x", "z"]


def fill(root: Any) -> None:
    """Make the same nodes with zarr-python's group or zarrdask's."""
    root.create_group("empty")
    sub = root.create_group("sub", attributes=ATTRIBUTES)
    sub.create_array("x", shape=(4,), chunks=(2,), dtype="i4", attributes=ATTRIBUTES)
    sub.create_group("deep").create_array("y", shape=(3, 2), chunks=(3, 2), dtype="f8")
    root.create_array("z", shape=(), dtype="u1", attributes={"n": 1})


def theirs(root: Any) -> dict[str, Any]:
    """Return what zarr-python's group tells of the nodes below it."""
    return {
        path: (getattr(node, "shape", None), dict(node.attrs))
        for path, node in root.members(max_depth=None)
    }


def ours(root: zarrdask.Group) -> dict[str, Any]:
    return {path: (getattr(node, "shape", None), dict(node.attrs)) for path, node in root.walk()}


def remove_nodes(path: Path) -> None:
    """Remove every document below the root: what is told then is told by the root's."""
    for document in [*path.glob("*/**/.z*"), *path.glob("*/**/zarr.json")]:
        document.unlink()


@formats
class TestZarrPython:
    def test_zarrdask_reads(self, tmp_path, zarr_format):
        fill(zarr.create_group(tmp_path, zarr_format=zarr_format, attributes=ATTRIBUTES))
        zarr.consolidate_metadata(tmp_path)
        truth = ours(zarrdask.open_group(tmp_path, consolidated=False))
        remove_nodes(tmp_path)
        root = zarrdask.open_group(tmp_path, consolidated=True)
        assert sorted(ours(root)) == NODES
        assert ours(root) == truth == theirs(zarr.open_group(tmp_path, mode="r"))
        assert list(root["sub"]["deep"]) == ["y"]
        assert list(root["empty"]) == []
        assert dict(root.attrs) == ATTRIBUTES

    def test_zarr_python_reads(self, tmp_path, zarr_format):
        fill(zarrdask.create_group(tmp_path, zarr_format=zarr_format, attributes=ATTRIBUTES))
        zarrdask.consolidate_metadata(tmp_path)
        truth = theirs(zarr.open_group(tmp_path, mode="r", use_consolidated=False))
        remove_nodes(tmp_path)
        root = zarr.open_group(tmp_path, mode="r", use_consolidated=True)
        assert sorted(theirs(root)) == NODES
        assert theirs(root) == truth == ours(zarrdask.open_group(tmp_path))
        assert list(root["sub"]["deep"].keys()) == ["y"]
        assert list(root["empty"].keys()) == []
        assert dict(root.attrs) == ATTRIBUTES

    def test_both_write_the_same(self, tmp_path, zarr_format):
        fill(zarr.create_group(tmp_path, zarr_format=zarr_format))
        zarr.consolidate_metadata(tmp_path)
        name = ".zmetadata" if zarr_format == 2 else "zarr.json"
        before = json.loads((tmp_path / name).read_text())
        zarrdask.consolidate_metadata(tmp_path)
        after = json.loads((tmp_path / name).read_text())
        if zarr_format == 2:
            # zarr-python adds to groups what is not v2's, and attributes where there are none.
            for document in before["metadata"].values():
                document.pop("consolidated_metadata", None)
            added = before["metadata"].keys() - after["metadata"].keys()
            assert all(before["metadata"].pop(key) == {} for key in added)
        assert before == after

    def test_zarr_python_sees_what_zarrdask_changed(self, tmp_path, zarr_format):
        fill(zarr.create_group(tmp_path, zarr_format=zarr_format))
        zarr.consolidate_metadata(tmp_path)
        root = zarrdask.open_group(tmp_path, mode="r+")
        root["sub/x"].append([1, 2])
        root["z"].attrs["n"] = 2
        del root["sub/deep"]
        root.create_array("late", shape=(2,), dtype="i4")
        found = theirs(zarr.open_group(tmp_path, mode="r"))
        assert found == ours(root)
        assert sorted(found) == ["empty", "late", "sub", "sub/x", "z"]
        assert (found["sub/x"], found["z"]) == (((6,), ATTRIBUTES), ((), {"n": 2}))

    def test_zarr_python_sees_what_zarrdask_brought_up_to_date(
        self, tmp_path, zarr_format, setting
    ):
        setting({"zarrdask.consolidated-after-change": "update"})
        fill(zarr.create_group(tmp_path, zarr_format=zarr_format))
        zarr.consolidate_metadata(tmp_path)
        root = zarrdask.open_group(tmp_path, mode="r+")
        root["sub/x"].append([1, 2])
        del root["sub/deep"]
        found = theirs(zarr.open_group(tmp_path, mode="r", use_consolidated=True))
        assert sorted(found) == ["empty", "sub", "sub/x", "z"]
        assert found["sub/x"] == ((6,), ATTRIBUTES)

    def test_a_group_below_the_root(self, tmp_path, zarr_format):
        root = zarr.create_group(tmp_path, zarr_format=zarr_format)
        fill(root.create_group("a"))
        zarr.consolidate_metadata(tmp_path, path="a")
        assert sorted(ours(zarrdask.open_group(tmp_path, "a", consolidated=True))) == NODES
        zarrdask.consolidate_metadata(tmp_path, "a")
        found = zarr.open_group(tmp_path, path="a", mode="r", use_consolidated=True)
        assert sorted(theirs(found)) == NODES


@pytest.fixture(scope="session")
def xarray() -> Iterator[Peer]:
    """xarray, in an environment of its own."""
    peer = Peer("dataset")
    yield peer
    peer.close()


VALUES = np.arange(12.0).reshape(3, 4)


@formats
class TestXarray:
    def test_zarrdask_reads(self, tmp_path, zarr_format, xarray):
        place = tmp_path / "data.zarr"
        xarray.call("write", place=str(place), zarr_format=zarr_format)
        remove_nodes(place)
        root = zarrdask.open_group(place, consolidated=True)
        assert sorted(root) == ["crs", "t", "x", "y"]
        t = root["t"]
        assert (t.dimension_names, t.attrs["units"]) == (("y", "x"), "K")
        assert dict(root.attrs) == {"title": "all"}
        np.testing.assert_array_equal(zarrdask.from_zarr(t).compute(), VALUES)
        np.testing.assert_array_equal(root["x"][...], np.arange(4) / 2)
        assert crs(t).wkt == crs(root).wkt == "GEOGCS[]"

    def test_xarray_reads(self, tmp_path, zarr_format, xarray):
        place = tmp_path / "data.zarr"
        root = zarrdask.create_group(place, zarr_format=zarr_format)
        for name, values, names in (
            ("t", VALUES, ("y", "x")),
            ("y", np.arange(3), ("y",)),
            ("x", np.arange(4) / 2, ("x",)),
        ):
            # Of v2 xarray takes the fill value for a missing one.
            options = {"dimension_names": names, "fill_value": -1}
            array = root.create_array(name, shape=values.shape, dtype=values.dtype, **options)
            array[...] = values
            array.attrs["units"] = name
        zarrdask.consolidate_metadata(place)
        found = xarray.call("read", place=str(place), consolidated=True)
        assert found["t"] == [["y", "x"], {"units": "t"}, VALUES.tolist()]
        assert found["x"][2] == [0.0, 0.5, 1.0, 1.5]

    def test_xarray_sees_what_zarrdask_changed(self, tmp_path, zarr_format, xarray):
        place = tmp_path / "data.zarr"
        xarray.call("write", place=str(place), zarr_format=zarr_format)
        root = zarrdask.open_group(place, mode="r+")
        root["t"].append(np.ones((1, 4)))
        root["y"].append([3])
        root["t"].attrs["units"] = "C"
        found = xarray.call("read", place=str(place), consolidated=None)
        dimensions, attributes, values = found["t"]
        assert (dimensions, attributes["units"]) == (["y", "x"], "C")
        assert values == [*VALUES.tolist(), [1.0] * 4]
