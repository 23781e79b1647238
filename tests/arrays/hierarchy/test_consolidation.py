"""The consolidated metadata of a group has all nodes below it."""

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.hierarchy.consolidation import write_consolidated
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.metadata.model import GroupMetadata


def hierarchy(zarr_format):
    root = zarrdask.create_group({}, zarr_format=zarr_format)
    root.create_group("g")
    root.create_array("g/a", shape=4, dtype="i4")
    return root


@for_each("zarr_format", [2, 3])
def test_nodes_are_found_without_their_own_documents(zarr_format):
    root = hierarchy(zarr_format)
    write_consolidated(root.node_path, zarr_format)
    for name in ("zarr.json", ".zarray", ".zgroup"):
        for path in ("g/", "g/a/"):
            root.store.erase(path + name)
    group = zarrdask.open_group(root.store, consolidated=True)
    assert [path for path, _ in group.walk()] == ["g", "g/a"]
    assert group["g/a"].shape == (4,)


@for_each("zarr_format", [2, 3])
def test_new_attributes_of_the_group_are_stored_with_it(zarr_format):
    root = hierarchy(zarr_format)
    new = GroupMetadata(zarr_format, {"title": "new"})
    write_consolidated(root.node_path, zarr_format, group=new)
    for consolidated in (True, False):
        group = zarrdask.open_group(root.store, consolidated=consolidated)
        assert dict(group.attrs) == {"title": "new"}
    assert "g" in zarrdask.open_group(root.store, consolidated=True)


def test_a_damaged_node_is_named():
    root = hierarchy(3)
    root.store.set("g/a/zarr.json", b"{")
    with pytest.raises(ZarrdaskError, match="g/a"):
        write_consolidated(root.node_path, 3)
