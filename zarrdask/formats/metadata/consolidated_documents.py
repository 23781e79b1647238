"""Consolidated metadata: the documents of a whole group in one document (conformance A-67, C-78).

In v2 it is ``.zmetadata``, beside the group's own documents; in v3 it is a member of the group's
``zarr.json``, ``consolidated_metadata``.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import Json
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.json import (
    CONSOLIDATED_LEVELS,
    MAX_DEPTH,
    Documents,
    dump_json,
    parse_json,
    render_json,
)
from zarrdask.formats.metadata.model import GroupMetadata, Metadata, ZarrFormat
from zarrdask.formats.metadata.v2 import V2

_V3 = "zarr.json"
#: The name of the document in v2.
KEY = ".zmetadata"
#: The member of a group's document in v3.
MEMBER = "consolidated_metadata"
#: The names of the documents to request, to find consolidated metadata of either format.
NAMES = (KEY, _V3)
_FORMAT = "zarr_consolidated_format"
#: A name in a path that is empty, or consists of periods only.
_NO_NAME = re.compile(r"(?:^|/)\.*(?:/|$)")
_BYPASS = "with consolidated=False each node's own documents are read"


@dataclass(frozen=True)
class ConsolidatedMetadata:
    """The parsed documents of a group and of all nodes below it, by path and by name.

    `members` has the sorted names of the members of each group, by its path from the group. `names`
    are those of all documents that a node can have: documents of these names that are not in
    `documents` are missing from the hierarchy. `dump` returns a parsed document as bytes, as this
    package writes documents.
    """

    documents: Mapping[str, Mapping[str, Any]]
    members: Mapping[str, Sequence[str]]
    names: frozenset[str]
    dump: Callable[[Mapping[str, Any]], bytes]


class Entries(dict[str, dict[str, Json]]):
    """The parsed documents of a group and of the nodes below it, by path and by name.

    Paths begin at the group, whose own path is "".
    """

    @classmethod
    def parse(cls, zarr_format: ZarrFormat, value: Any) -> "Entries":
        """Return the documents in a ``.zmetadata``, or in the member of a ``zarr.json``."""
        return _parse_v2(value) if zarr_format == 2 else _parse_v3(value)

    def add(self, path: str, documents: Documents) -> None:
        """Add the documents of a node, without the consolidated metadata in them."""
        prefix = f"{path}/" if path else ""
        self[path] = {
            name: parse_json(data, prefix + name)
            for name, data in documents.items()
            if data is not None and name != KEY
        }
        for name in (_V3, ".zgroup"):
            self[path].get(name, {}).pop(MEMBER, None)

    def is_group(self, path: str) -> bool:
        """Whether the documents at a path describe a group."""
        documents = self.get(path, {})
        return ".zgroup" in documents or documents.get(_V3, {}).get("node_type") == "group"

    def render(self, zarr_format: ZarrFormat) -> dict[str, bytes]:
        """Return the documents with the consolidated metadata, in the form that a format has."""
        names = find_format(zarr_format).documents
        for path, documents in self.items():
            if not set(documents) & set(names):
                raise MetadataError(
                    "consolidated metadata can't hold a node of another format than the group's",
                    key=path,
                    found=sorted(documents),
                    expected=" or ".join(names),
                )
            for name, document in documents.items():
                # Rendered one by one first, so that an error names the document that is not JSON.
                render_json(document, f"{path}/{name}" if path else name)
        if zarr_format == 2:
            metadata = {
                f"{path}/{name}" if path else name: documents[name]
                for path, documents in self.items()
                for name in V2.documents
                if name in documents
            }
            return {KEY: _render({"metadata": metadata, _FORMAT: 1}, KEY)}
        metadata = {
            path: documents[_V3] | (_inline({}) if self.is_group(path) else {})
            for path, documents in self.items()
            if path
        }
        return {_V3: _render(self[""][_V3] | _inline(metadata), _V3)}


# --------------------------------------------------------------------------------------------
# Document -> entries


def split_documents(documents: Documents) -> tuple[Documents, ConsolidatedMetadata | None]:
    """Split the documents of a group into its own and its consolidated metadata.

    If a v2 group has only ``.zmetadata``, its own documents are taken from it. The consolidated
    metadata is None if there is none, or if its kind is unknown: v3 readers must ignore it then
    (C-78). The error for one that is not valid says how to open the group without it.
    """
    own_documents = {name: value for name, value in documents.items() if name != KEY}
    if own_documents.get(_V3) is not None:
        return _split_v3(own_documents)
    data = documents.get(KEY)
    if data is None or own_documents.get(".zarray") is not None:
        return own_documents, None
    entries = Entries.parse(2, data)
    if own_documents.get(".zgroup") is None:
        own_documents |= {
            name: dump_json(document) for name, document in entries.get("", {}).items()
        }
    return own_documents, index_entries(entries)


def _split_v3(
    own_documents: dict[str, bytes | None],
) -> tuple[Documents, ConsolidatedMetadata | None]:
    document = group_with_member(own_documents[_V3])
    if document is None or not _is_inline(document[MEMBER]):
        return own_documents, None
    member = document.pop(MEMBER)
    entries = Entries({"": {_V3: document}, **Entries.parse(3, member)})
    return own_documents | {_V3: dump_json(document)}, index_entries(entries)


def group_with_member(data: bytes | None) -> Json | None:
    """Return the document of a v3 group, parsed, if it has consolidated metadata of any kind."""
    # Most documents have none, and need not be parsed.
    if data is None or MEMBER.encode() not in data:
        return None
    document = parse_json(data, _V3)
    group = document.get("node_type") == "group"
    return document if group and document.get(MEMBER) is not None else None


def _is_inline(member: Any) -> bool:
    # Without "must_understand": false, parsing the group raises an error.
    return (
        isinstance(member, dict)
        and member.get("must_understand") is False
        and member.get("kind") == "inline"
    )


def _parse_v2(data: bytes) -> Entries:
    try:
        document = parse_json(data, KEY)
    except MetadataError as error:
        raise MetadataError(
            error.message, key=error.key, found=error.found, expected=_BYPASS
        ) from error
    version, metadata = document.get(_FORMAT), document.get("metadata")
    if type(version) is not int or version != 1:
        raise MetadataError(
            "unknown format of consolidated metadata",
            key=f"{KEY} {_FORMAT}",
            found=version,
            expected=f"1; {_BYPASS}",
        )
    entries = Entries()
    for key, value in _items(metadata, KEY):
        path, _, name = key.rpartition("/")
        if name in V2.documents:
            _check_path(path, f"{KEY} {key}", slash="/" in key)
            entries.setdefault(path, {})[name] = _as_v2(value, key, name)
    return entries


def _as_v2(document: Json, key: str, name: str) -> Json:
    if name != ".zgroup" or MEMBER not in document:
        return document
    # zarr-python 3 writes this member of v3's documents into the entries of v2 groups, too.
    report_deviation(
        "X-C12",
        "other members must not be present",
        key=f"{KEY} {key}",
        found=MEMBER,
        expected="zarr_format",
    )
    return {member: value for member, value in document.items() if member != MEMBER}


def _parse_v3(member: Mapping[str, Any]) -> Entries:
    entries = Entries()
    for path, document in _items(member.get("metadata"), MEMBER):
        _check_path(path, f"{MEMBER} {path}", slash=True)
        # The member is empty in nested groups, whose nodes have entries of their own here.
        if MEMBER in document:
            document = {name: value for name, value in document.items() if name != MEMBER}
        entries[path] = {_V3: document}
    return entries


def _items(metadata: Any, key: str) -> Iterable[tuple[str, Json]]:
    values = metadata if isinstance(metadata, dict) else {"metadata": metadata}
    for name, value in values.items():
        if not isinstance(value, dict):
            raise MetadataError(
                "invalid metadata document",
                key=f"{key} {name}",
                found=value,
                expected=f"an object; {_BYPASS}",
            )
    return values.items()


def _check_path(path: str, key: str, *, slash: bool) -> None:
    """Check the path of an entry: names such as ".." would lead out of the group."""
    if slash and _NO_NAME.search(path):
        raise MetadataError(
            "invalid path of a node below the group",
            key=key,
            found=path,
            expected=f'names joined by "/"; {_BYPASS}',
        )


# --------------------------------------------------------------------------------------------
# Entries -> index of the nodes


def index_entries(entries: Entries) -> ConsolidatedMetadata:
    """Return the index that a store of consolidated metadata uses: documents and members."""
    groups = {*filter(entries.is_group, entries), ""}
    members: dict[str, set[str]] = {path: set() for path in groups}
    makes_node = detect.node_names()
    for path, documents in entries.items():
        above, _, name = path.rpartition("/")
        if path and above in groups and not documents.keys().isdisjoint(makes_node):
            members[above].add(name)
    ordered = {path: sorted(names) for path, names in members.items()}
    return ConsolidatedMetadata(entries, ordered, frozenset((*detect.all_names(), KEY)), dump_json)


# --------------------------------------------------------------------------------------------
# Entries -> document


def _render(document: Json, key: str) -> bytes:
    return render_json(document, key, indent=None, limit=MAX_DEPTH + CONSOLIDATED_LEVELS)


def _inline(metadata: Json) -> Json:
    return {MEMBER: {"kind": "inline", "must_understand": False, "metadata": metadata}}


def render_with_members(
    group: GroupMetadata, members: Mapping[str, Metadata]
) -> tuple[Documents, dict[str, bytes]]:
    """Return the documents of a group, and the documents of its consolidated metadata alone.

    `members` has all nodes below the group by their paths.
    """
    nodes = {"": group} | dict(sorted(members.items(), key=_level_and_path))
    entries = Entries()
    for path, node in nodes.items():
        entries.add(path, node.render())
    own, consolidated = group.render(), entries.render(group.zarr_format)
    alone = {name: document for name, document in consolidated.items() if name not in own}
    return {name: consolidated.get(name, document) for name, document in own.items()}, alone


def _level_and_path(member: tuple[str, Metadata]) -> tuple[int, list[str]]:
    names = member[0].split("/")
    return len(names), names
