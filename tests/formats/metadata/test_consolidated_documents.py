"""Consolidated metadata as documents, without a store."""

import json

import pytest

from tests.covering import for_each
from tests.documents import dump, v2, v3
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.formats.metadata.consolidated_documents import Entries, split_documents
from zarrdask.formats.metadata.formats import find_format

GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
INLINE = {"kind": "inline", "must_understand": False}


def documents(zarr_format):
    """Return the entries of a group with an array and a group below it."""
    entries = Entries()
    if zarr_format == 2:
        entries.add("", {".zgroup": b'{"zarr_format": 2}'})
        entries.add("a", {".zarray": dump(v2()), ".zattrs": b'{"units": "K"}'})
        entries.add("g", {".zgroup": b'{"zarr_format": 2}'})
    else:
        entries.add("", {"zarr.json": dump(GROUP)})
        entries.add("a", {"zarr.json": dump(v3())})
        entries.add("g", {"zarr.json": dump(GROUP)})
    return entries


@for_each("zarr_format", [2, 3])
def test_what_was_rendered_is_split_into_the_same_documents(zarr_format):
    entries = documents(zarr_format)
    own = {name: dump(document) for name, document in entries[""].items()}
    rest, held = split_documents(own | entries.render(zarr_format))
    assert {name: json.loads(value) for name, value in rest.items()} == entries[""]
    assert {path: dict(each) for path, each in held.documents.items()} == dict(entries)
    assert held.members[""] == ["a", "g"]


@for_each("zarr_format", [2, 3])
def test_they_are_in_the_documents_that_the_format_names(zarr_format):
    names = find_format(zarr_format).consolidated_documents
    assert tuple(documents(zarr_format).render(zarr_format)) == names
    assert set(names) <= set(consolidated.NAMES)
    assert find_format("v3-draft").consolidated_documents == ()


def test_a_group_of_v2_may_have_nothing_else():
    rendered = documents(2).render(2)
    own, _ = split_documents(rendered)
    assert json.loads(own[".zgroup"]) == {"zarr_format": 2}


@for_each("member", [{"kind": "other", "must_understand": False}, None, 5])
def test_an_unknown_kind_is_none(member):
    document = GROUP | {"consolidated_metadata": member}
    own, held = split_documents({"zarr.json": dump(document)})
    assert held is None
    assert json.loads(own["zarr.json"]) == document


@for_each("path", ["../a", "a//b", "/a", "a/.."])
def test_a_path_that_leads_out_of_the_group_is_an_error(path):
    member = INLINE | {"metadata": {path: v3()}}
    with pytest.raises(MetadataError, match="consolidated=False"):
        split_documents({"zarr.json": dump(GROUP | {"consolidated_metadata": member})})


def test_a_node_of_another_format_is_an_error():
    entries = documents(3)
    entries.add("b", {".zarray": dump(v2())})
    with pytest.raises(MetadataError, match="another format") as caught:
        entries.render(3)
    assert caught.value.key == "b"


def test_nested_consolidated_metadata_is_left_out():
    entries = Entries()
    entries.add("g", {"zarr.json": dump(GROUP | {"consolidated_metadata": INLINE})})
    assert entries["g"]["zarr.json"] == GROUP
