"""The keys of nodes: as directories, and in hierarchies of the draft."""

import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.node_layout import DIRECTORIES, DRAFT, PROTOCOL, DraftLayout

DIALECTS = [DraftLayout("", DRAFT, ".json", 0), DraftLayout("h/", PROTOCOL, ".json", 0)]


def test_nodes_as_directories_have_the_keys_that_are_stored():
    assert DIRECTORIES.real("a/zarr.json") == DIRECTORIES.inside("a/zarr.json") == "a/zarr.json"


@for_each("layout", DIALECTS)
def test_the_name_of_a_document_is_the_inverse_of_its_key(layout):
    for key in ("a/array.json", "a/b/group.json"):
        key = layout.base + key
        assert layout.document_name(layout.real(key)) == key


def test_documents_and_chunks_are_apart():
    draft, older = DIALECTS
    assert draft.real("a/c0/1") == "data/a/c0/1"
    assert older.real("h/a/c0/1") == "h/data/root/a/c0/1"
    assert older.real("h/array.json") == "h/meta/root.array.json"
    assert older.real("h/a/group.json") == "h/meta/root/a.group.json"


def test_the_only_chunk_of_an_array_without_axes_has_two_possible_keys():
    draft, older = DIALECTS
    assert draft.scalar("a/c") == ("data/a/c", "data/a/c0")
    assert older.scalar("h/a/c") == ("h/data/root/a/c0", "h/data/root/a/c")
    assert [layout.real(f"{layout.base}a/c") for layout in DIALECTS] == [
        layout.scalar(f"{layout.base}a/c")[0] for layout in DIALECTS
    ]


@for_each("layout", DIALECTS)
def test_nodes_are_known_by_their_documents_and_by_what_is_below_them(layout):
    keys = ["a.array.json", "b.group.json", ".array.json", "notes.txt"]
    assert layout.nodes(keys, ["b", "c"]) == {"a", "b", "c"}


def test_a_key_outside_the_hierarchy_is_an_error():
    with pytest.raises(MetadataError, match="outside the hierarchy") as caught:
        DIALECTS[1].real("other/a")
    assert caught.value.key == "other/a"
