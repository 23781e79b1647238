"""How the documents of two copies of a node differ."""

import json

import pytest

from tests.covering import for_each
from tests.documents import dump, v2, v3
from zarrdask.tools.synchronization.node_documents import (
    Difference,
    NodeDocuments,
    are_equal_documents,
    document_names,
    keys_of_node,
)

V3_GROUP = {"zarr_format": 3, "node_type": "group"}


def documents(**values):
    """Return the documents of a node, by the names of formats."""
    names = {"v3": "zarr.json", "v2": ".zarray", "draft": "array.json", "zgroup": ".zgroup"}
    return NodeDocuments.parse({names[name]: dump(value) for name, value in values.items()})


@for_each(
    "before, after, expected",
    [
        (v3(), v3(attributes={"a": 1}), Difference.IN_PLACE),
        (v3((4,)), v3((8,)), Difference.IN_PLACE),
        (v3((4,)), v3((2,)), Difference.SMALLER),
        (v3((4, 4), (2, 2)), v3((2, 8), (2, 2)), Difference.REPLACED),
        (v3(), v3(fill_value=1), Difference.REPLACED),
        (v3(), v3(chunk_shape=(4,)), Difference.REPLACED),
        (v3((4,)), v3((4, 4)), Difference.REPLACED),
    ],
)
def test_chunks_stay_valid_unless_they_are_encoded_in_another_way(before, after, expected):
    assert documents(v3=after).difference(documents(v3=before)) is expected


def test_a_node_of_another_kind_or_format_is_replaced():
    array, group = documents(v3=v3()), documents(v3=V3_GROUP)
    assert group.difference(array) is array.difference(documents()) is Difference.REPLACED
    assert documents(v2=v2()).difference(array) is Difference.REPLACED


@for_each(
    "node, is_array, is_group",
    [
        (documents(v3=v3()), True, False),
        (documents(v3=V3_GROUP), False, True),
        (documents(v2=v2()), True, False),
        (documents(zgroup={"zarr_format": 2}), False, True),
        (documents(draft={}), True, False),
        (documents(), False, False),
    ],
)
def test_the_kind_of_a_node(node, is_array, is_group):
    assert (node.is_array, node.is_group) == (is_array, is_group)


def test_the_entry_point_of_a_hierarchy_of_the_draft_is_no_node():
    assert documents(
        v3={"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"}
    ).is_entry_point
    assert not documents(v3=v3()).is_entry_point


def test_documents_are_equal_by_what_they_say():
    document = v3()
    other = json.dumps(document, indent=3).encode()
    assert are_equal_documents(dump(document), other)
    assert are_equal_documents(dump(document | {"consolidated_metadata": {}}), other)
    assert not are_equal_documents(dump(v3(fill_value=1)), other)
    assert not are_equal_documents(None, other)
    assert are_equal_documents(None, None)


@pytest.mark.parametrize("value", [b"{", b"[1]", b"\xff"])
def test_what_is_no_document_is_equal_to_the_same_bytes_only(value):
    assert are_equal_documents(value, value)
    assert not are_equal_documents(value, dump(v3()))
    assert NodeDocuments.parse({"zarr.json": value}).documents == {"zarr.json": None}


def test_a_node_may_have_the_documents_of_all_formats():
    assert {"zarr.json", ".zarray", ".zmetadata", "array.json"} <= document_names()
    assert set(keys_of_node("a")) == {f"a/{name}" for name in document_names()}
