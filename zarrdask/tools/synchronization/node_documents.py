"""The documents among the objects of a hierarchy, and how they differ in two copies."""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from zarrdask.arrays.hierarchy.path import key_prefix
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.formats.metadata import detect

#: Members of documents that say nothing about how chunks are encoded.
_LABELS = ("attributes", "dimension_names", consolidated.MEMBER)


class Difference(Enum):
    """The meaning of a new document of an array for the chunks that are stored already."""

    #: The chunks stay valid: they are stored before the document.
    IN_PLACE = "in place"
    #: The array gets smaller: the document is stored before chunks that lack the rest.
    SMALLER = "smaller"
    #: The chunks are encoded in another way, or there are more nodes: all are replaced.
    REPLACED = "replaced"


def document_names() -> frozenset[str]:
    """Return the names of the documents of nodes, including consolidated metadata."""
    return frozenset((*detect.all_names(), *detect.node_names(), consolidated.KEY))


def node_of(key: str) -> str:
    """Return the path of the node that a document belongs to."""
    return key.rpartition("/")[0]


@dataclass(frozen=True)
class NodeDocuments:
    """The documents of one node in one copy, parsed; None where they are no JSON objects."""

    documents: dict[str, dict[str, Any] | None]

    @classmethod
    def parse(cls, values: dict[str, bytes | None]) -> "NodeDocuments":
        """Return the documents of a node by their names."""
        return cls({name: _parsed(value) for name, value in values.items() if value is not None})

    @property
    def is_array(self) -> bool:
        """Whether the node is an array."""
        v3 = self.documents.get("zarr.json") or {}
        return (
            v3.get("node_type") == "array"
            if v3
            else not {".zarray", "array.json"}.isdisjoint(self.documents)
        )

    @property
    def is_entry_point(self) -> bool:
        """Whether this is the root of a hierarchy of the draft of Zarr v3, seen from outside."""
        v3 = self.documents.get("zarr.json") or {}
        return isinstance(v3.get("zarr_format"), str)

    @property
    def is_group(self) -> bool:
        """Whether the node is a group."""
        v3 = self.documents.get("zarr.json") or {}
        return (
            v3.get("node_type") == "group"
            if v3
            else not {".zgroup", "group.json"}.isdisjoint(self.documents)
        )

    @property
    def _of_array(self) -> dict[str, Any] | None:
        names = ("zarr.json", ".zarray", "array.json")
        return next((document for name in names if (document := self.documents.get(name))), None)

    def difference(self, before: "NodeDocuments") -> Difference:
        """Return the meaning of the replacement of the documents `before` of an array by these."""
        ours, theirs = self._of_array, before._of_array
        if ours is None or theirs is None or _encoding(ours) != _encoding(theirs):
            return Difference.REPLACED
        shape, old = ours.get("shape"), theirs.get("shape")
        if shape == old:
            return Difference.IN_PLACE
        if not (isinstance(shape, list) and isinstance(old, list) and len(shape) == len(old)):
            return Difference.REPLACED
        if all(length >= former for length, former in zip(shape, old, strict=True)):
            return Difference.IN_PLACE
        if all(length <= former for length, former in zip(shape, old, strict=True)):
            return Difference.SMALLER
        return Difference.REPLACED


def are_equal_documents(one: bytes | None, other: bytes | None) -> bool:
    """Whether two documents say the same of their node, consolidated metadata left aside."""
    if one is None or other is None or one == other:
        return one == other
    parsed = [_parsed(value) for value in (one, other)]
    if parsed[0] is None or parsed[1] is None:
        return False
    first, second = ({k: v for k, v in p.items() if k != consolidated.MEMBER} for p in parsed if p)
    return first == second


def _parsed(value: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _encoding(document: dict[str, Any]) -> str:
    """Return all of a document of an array but its shape and labels, as canonical text."""
    members = {k: v for k, v in document.items() if k not in (*_LABELS, "shape")}
    return json.dumps(members, sort_keys=True)


def keys_of_node(path: str) -> list[str]:
    """Return the keys that the documents of a node may have."""
    return [key_prefix(path) + name for name in sorted(document_names())]
