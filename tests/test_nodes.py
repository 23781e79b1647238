"""Making nodes: what is checked before, without writing anything."""

import pytest

import zarrdask
from zarrdask import nodes
from zarrdask.creation import ArrayOptions, plan_array
from zarrdask.metadata import GroupMetadata
from zarrdask.storage.draft import DraftStore
from zarrdask.storage.memory import MemoryStore

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")


def array(zarr_format=3):
    return plan_array(ArrayOptions(shape=4, dtype="i4", zarr_format=zarr_format))


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("path", ["", "a/b"])
def test_what_is_prepared_can_be_created(zarr_format, path):
    store, metadata = MemoryStore(), array(zarr_format)
    view = nodes.prepare(store, path, metadata, overwrite=False)
    assert store.values == {}
    assert nodes.create(store, path, metadata, overwrite=False) == view
    assert isinstance(view, DraftStore) == isinstance(zarr_format, str)
    assert zarrdask.open_array(view, path).zarr_format == zarr_format


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_what_can_not_be_created_is_not_prepared(zarr_format):
    store, metadata = MemoryStore(), array(zarr_format)
    view = nodes.create(store, "a", metadata, overwrite=False)
    before = dict(store.values)
    for place, path, overwrite in ((view, "a", False), (view, "a/b", True), (view, "a/b", False)):
        for verb in (nodes.prepare, nodes.create):
            with pytest.raises(zarrdask.NodeExistsError):
                verb(place, path, metadata, overwrite=overwrite)
    assert nodes.prepare(view, "a", metadata, overwrite=True) == view
    assert store.values == before


def test_names_and_formats_are_checked():
    store = MemoryStore()
    for path in ("zarr.json", "__a"):
        with pytest.raises(zarrdask.MetadataError):
            nodes.prepare(store, path, array(), overwrite=False)
    nodes.create(store, "", GroupMetadata(3), overwrite=False)
    for overwrite, path in ((False, ""), (True, "a")):
        with pytest.raises(zarrdask.NodeExistsError):
            nodes.prepare(store, path, array("v3-draft"), overwrite=overwrite)
    # At the root, the hierarchy of the draft may take the place of the node that is there.
    assert nodes.prepare(store, "", array("v3-draft"), overwrite=True).zarr_format == "v3-draft"
    nodes.create(store, "", array("v3-draft"), overwrite=True)
    assert zarrdask.open_array(store).zarr_format == "v3-draft"
