"""rechunker's interface. The interop tests run rechunker's own tests of it."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.compat.rechunker import rechunk
from zarrdask.errors import MetadataError

VALUES = np.arange(12 * 10, dtype="f4").reshape(12, 10)


def values_of(target):
    return np.asarray(zarrdask.open(target)[...])


@pytest.fixture
def source(tmp_path):
    """A group with an array."""
    root = zarrdask.create_group(tmp_path / "source", attributes={"title": "a"})
    z = root.create_array("a", shape=(12, 10), dtype="f4", chunks=(1, 10))
    z[...] = VALUES
    return root


@for_each("executor", ["dask", "python"])
def test_an_array(source, tmp_path, executor):
    target = tmp_path / executor
    plan = rechunk(source["a"], (12, 2), "1 MB", target, executor=executor)
    assert zarrdask.open(target).chunks == (12, 2)  # before it has values
    assert repr(plan).startswith("<Rechunked>\n* Source      : <")
    assert "<table>" in plan._repr_html_()
    assert plan.execute().shape == (12, 10)
    np.testing.assert_array_equal(values_of(target), VALUES)


def test_a_dask_array_a_group_and_an_array_in_a_group(source, tmp_path):
    x = da.from_array(VALUES, chunks=(3, 10))
    rechunk(x, (12, 5), 10**6, tmp_path / "t", target_options={"compressor": None}).execute()
    assert zarrdask.open(tmp_path / "t").metadata.zarr_format == 2
    np.testing.assert_array_equal(values_of(tmp_path / "t"), VALUES)
    rechunk(source, {"a": (12, 5)}, 10**6, tmp_path / "g").execute()
    group = zarrdask.open(tmp_path / "g")
    assert group.attrs == {"title": "a"}
    np.testing.assert_array_equal(group["a"][...], VALUES)
    rechunk(x, (12, 5), 10**6, group, array_name="b").execute()
    np.testing.assert_array_equal(group["b"][...], VALUES)
    assert sorted(group) == ["a", "b"]


def test_a_dataset(tmp_path):
    xr = pytest.importorskip("xarray")
    ds = xr.Dataset({"a": (("y", "x"), VALUES)}, {"x": np.arange(10)}, {"title": "a"})
    options = {"a": {"compressor": None, "dtype": "i2", "_FillValue": -1}}
    for number, chunks in enumerate([{"y": 100, "x": 5}, {"a": {"y": 12, "x": 5}}]):
        target = tmp_path / str(number)
        rechunk(ds, chunks, 10**6, target, target_options=options).execute()
        group = zarrdask.open(target)
        assert (group["a"].chunks, group["a"].dtype) == ((12, 5), "i2")
        found = xr.open_dataset(target, engine="zarrdask")
        xr.testing.assert_equal(found, ds)


def test_nothing_else_is_replaced(source, tmp_path):
    target = tmp_path / "t"
    zarrdask.create_group(target).create_array("other", shape=1, dtype="i4")
    with pytest.raises(MetadataError, match=r"path 'other' contains"):
        rechunk(source, {"a": (12, 5)}, 10**6, target, {"a": {"overwrite": True}})
    rechunk(source["a"], (12, 5), 10**6, tmp_path / "u").execute()
    with pytest.raises(ValueError, match="contains an array"):
        rechunk(source["a"], (12, 2), 10**6, tmp_path / "u")
    rechunk(source["a"], (12, 2), 10**6, tmp_path / "u", {"overwrite": True}).execute()
    np.testing.assert_array_equal(values_of(tmp_path / "u"), VALUES)


@for_each(
    ("changes", "message"),
    [
        ({"executor": "beam"}, "executor.*beam"),
        ({"target_options": {"chunks": 3}}, "must not include chunks"),
        ({"temp_options": {"name": 3}}, "must not include name"),
        ({"source": [[1]]}, "Source must be"),
        ({"array_name": "x", "source": "group"}, "Can't specify"),
        ({"source": "group"}, "as a dict"),
    ],
)
def test_wrong_arguments(source, tmp_path, changes, message):
    arguments = {"source": source["a"], "target_chunks": (12, 2), "max_mem": 10**6} | changes
    if arguments["source"] == "group":
        arguments["source"] = source
    with pytest.raises(ValueError, match=message):
        rechunk(target_store=tmp_path / "t", **arguments)
    assert not (tmp_path / "t").exists()
