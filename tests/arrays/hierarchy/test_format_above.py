"""New nodes have the format of the groups above them."""

import dask
import dask.array as da
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, NodeNotFoundError

SMALL = {"shape": 3, "dtype": "f4"}
X = da.ones(3, chunks=3)


def source():
    store = {}
    zarrdask.create_array(store, "s/a", **SMALL)
    return zarrdask.open_group(store, "s")


WAYS = {
    "create_array": lambda store: zarrdask.create_array(store, "g/new/deep", **SMALL),
    "create_group": lambda store: zarrdask.create_group(store, "new"),
    "open_group": lambda store: zarrdask.open_group(store, "g/new", mode="a"),
    "open_group w": lambda store: zarrdask.open_group(store, "g/new", mode="w"),
    "to_zarr": lambda store: zarrdask.to_zarr(X, store, "new", return_stored=True),
    "to_zarr of several": lambda store: zarrdask.to_zarr({"a": X}, store, "new"),
    "to_zarr to resume": lambda store: zarrdask.to_zarr(X, store, "new", resume=True),
    "copy": lambda store: zarrdask.copy(source(), store, "new"),
    "rechunk": lambda store: zarrdask.rechunk(
        source()["a"], store, chunks=1, component="new"
    ).execute(progress=False),
    "rechunk of a group": lambda store: zarrdask.rechunk(
        source(), store, chunks=1, component="new"
    ).execute(progress=False),
    "rechunk of a Dask array": lambda store: zarrdask.rechunk(
        X, store, chunks=1, component="new"
    ).execute(progress=False),
}


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft"])
@pytest.mark.parametrize("way", WAYS)
def test_a_new_node_has_the_format_of_the_nearest_group(way, zarr_format):
    store = {}
    zarrdask.create_group(store, "g", zarr_format=zarr_format)
    WAYS[way](store)
    root = zarrdask.open_group(store)
    assert root.zarr_format == zarr_format
    for _, node in root.walk():
        assert node.zarr_format == zarr_format


def test_the_nearest_group_counts():
    store = {}
    zarrdask.create_group(store, zarr_format=3)
    with dask.config.set({"zarrdask.mixed-formats": True}):
        zarrdask.create_group(store, "old", zarr_format=2)
    assert zarrdask.create_array(store, "old/a", **SMALL).zarr_format == 2
    assert zarrdask.create_array(store, "a", **SMALL).zarr_format == 3


def test_groups_above_the_url_are_not_looked_at(tmp_path):
    zarrdask.create_group(tmp_path / "a", zarr_format=2)
    assert zarrdask.create_array(tmp_path / "a" / "b", **SMALL).zarr_format == 3


@for_each(("above", "below"), [(2, 3), (3, 2)])
def test_a_node_that_readers_of_the_group_would_not_see_is_refused(above, below):
    store = {}
    zarrdask.create_group(store, zarr_format=above)
    before = dict(store)
    for create in (
        lambda: zarrdask.create_array(store, "g/a", zarr_format=below, **SMALL),
        lambda: zarrdask.create_group(store, "a", zarr_format=below),
        lambda: zarrdask.to_zarr(X, store, "a", zarr_format=below),
        lambda: zarrdask.copy(source(), store, "a", zarr_format=below),
    ):
        with pytest.raises(MetadataError, match=r"xarray.*would not see.*mixed-formats"):
            create()
    assert store == before
    with dask.config.set({"zarrdask.mixed-formats": True}):
        z = zarrdask.create_array(store, "g/a", zarr_format=below, **SMALL)
    assert z.zarr_format == below


@for_each(("asked", "stored"), [(2, 3), (3, 2), (2, "v3-draft"), ("v3-draft", 2)])
def test_opening_with_another_format_says_which_one_is_stored(asked, stored):
    store = {}
    zarrdask.create_group(store, "g", zarr_format=stored)
    for opened in (zarrdask.open, zarrdask.open_group, zarrdask.open_array):
        with pytest.raises(NodeNotFoundError, match=f"but one of zarr_format={stored!r}"):
            opened(store, "g", zarr_format=asked)
    with pytest.raises(NodeNotFoundError, match="there is no array or group of zarr_format"):
        zarrdask.open_group({}, zarr_format=asked)
