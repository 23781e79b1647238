"""The entry point of a hierarchy of the v3 draft, and extensions."""

import json

import pytest

import zarrdask
from tests.drafts import (
    ENTRY,
    NOBODY,
    OLDER_ENTRY,
    array,
    hierarchy,
    stored,
)
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    UnsupportedError,
)
from zarrdask.formats.extension import Definition
from zarrdask.formats.metadata.model import GroupMetadata


def test_groups_of_zep_9_have_extensions_and_those_of_the_draft_none(zarr_format):
    with pytest.raises(UnsupportedError, match="extensions"):
        GroupMetadata(zarr_format, {}, (Definition(NOBODY),)).render()


def test_the_dialects_do_not_mix():
    for entry, other in ((ENTRY, "v3-draft-protocol"), (OLDER_ENTRY, "v3-draft")):
        store = hierarchy(entry=entry)
        with pytest.raises(NodeExistsError, match="format"):
            zarrdask.create_array(store, "a", shape=3, dtype="i4", zarr_format=other)
        assert set(store) == {"zarr.json"}


def test_damaged_documents_are_errors_that_name_the_node():
    for data in (b"{", b"[]", b"\xff", b'{"shape": '):
        store = stored() | {"meta/a.array.json": data}
        with pytest.raises(MetadataError, match=r"/a: array\.json"):
            zarrdask.open(store, "a")
        store = hierarchy() | {"meta/g.group.json": data}
        with pytest.raises(MetadataError, match=r"/g: group\.json"):
            zarrdask.open(store, "g")


def test_unknown_members_are_not_taken_over_from_a_higher_minor_version():
    entry = ENTRY | {"zarr_format": ENTRY["zarr_format"][:-1] + "4"}
    store = stored(array(new=1), entry=entry)
    zarrdask.open_array(store, "a", mode="r+").attrs["x"] = 1
    assert "new" not in json.loads(store["meta/a.array.json"])
    assert json.loads(store["zarr.json"]) == entry
