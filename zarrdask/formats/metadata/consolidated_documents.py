"""Consolidated metadata: the documents of a whole group in one document (conformance A-67, C-78).

In v2 it is ``.zmetadata``, beside the group's own documents; in v3 it is a member of the group's
``zarr.json``, ``consolidated_metadata``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import Json
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.metadata import consolidated_index as index
from zarrdask.formats.metadata.consolidated_index import ConsolidatedMetadata
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
from zarrdask.formats.metadata.unparsed import split_members
from zarrdask.formats.metadata.v2 import V2

_V3 = "zarr.json"
#: The name of the document in v2.
KEY = index.KEY
#: The member of a group's document in v3.
MEMBER = index.MEMBER
#: The names of the documents to request, to find consolidated metadata of either format.
NAMES = (KEY, _V3)
_FORMAT = "zarr_consolidated_format"
#: Smaller documents are parsed as a whole.
MIN_UNPARSED_BYTES = 64 * 1024
_BYPASS = "with consolidated=False each node's own documents are read"


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
        return ".zgroup" in documents or index.describes_group(documents.get(_V3, {}))

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
    held = _split_v2(data) or index_entries(Entries.parse(2, data))
    if own_documents.get(".zgroup") is None:
        own_documents |= {
            name: held.dump(document) for name, document in held.documents.get("", {}).items()
        }
    return own_documents, held


def _split_v2(data: bytes) -> ConsolidatedMetadata | None:
    """Return the documents in a large ``.zmetadata``, not parsed; None if it must be parsed."""
    split = None if MEMBER.encode() in data else _split_members(data, ("metadata",))
    if split is None or _metadata_v2(split[0]) != {}:
        return None
    keys = dict[str, dict[str, str]]()
    for key in split[1]:
        path, slash, name = key.rpartition("/")
        if slash and not path:
            return None
        if name in V2.documents:
            keys.setdefault(path, {})[name] = key
    own = {name: split[1][key] for name, key in keys.pop("", {}).items()}
    return index.index_unparsed(own, split[1], keys)


def _split_v3(
    own_documents: dict[str, bytes | None],
) -> tuple[Documents, ConsolidatedMetadata | None]:
    data = own_documents[_V3]
    split = _split_members(data, (MEMBER, "metadata"))
    document = group_with_member(data if split is None else split[0])
    if document is None or not _is_inline(document[MEMBER]):
        return own_documents, None
    member = document.pop(MEMBER)
    own = dump_json(document)
    held = None
    if split is not None and member.get("metadata") == {}:
        keys = {path: {_V3: path} for path in split[1]}
        held = index.index_unparsed({_V3: own}, split[1], keys)
    if held is None:
        member = parse_json(data or b"", _V3)[MEMBER] if split is not None else member
        entries = Entries({"": {_V3: document}, **Entries.parse(3, member)})
        held = index_entries(entries)
    return own_documents | {_V3: own}, held


def _split_members(
    data: bytes | None, names: tuple[str, ...]
) -> tuple[bytes, Mapping[str, bytes]] | None:
    """Return a large document without the documents in it, and these, not parsed."""
    if data is None or len(data) < MIN_UNPARSED_BYTES or names[0].encode() not in data:
        return None
    return split_members(data, names)


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
    entries = Entries()
    for key, value in _items(_metadata_v2(data), KEY):
        path, _, name = key.rpartition("/")
        if name in V2.documents:
            _check_path(path, f"{KEY} {key}", slash="/" in key)
            entries.setdefault(path, {})[name] = _as_v2(value, key, name)
    return entries


def _metadata_v2(data: bytes) -> Any:
    """Return the member of a ``.zmetadata`` that has the documents."""
    try:
        document = parse_json(data, KEY)
    except MetadataError as error:
        raise MetadataError(
            error.message, key=error.key, found=error.found, expected=_BYPASS
        ) from error
    version = document.get(_FORMAT)
    if type(version) is not int or version != 1:
        raise MetadataError(
            "unknown format of consolidated metadata",
            key=f"{KEY} {_FORMAT}",
            found=version,
            expected=f"1; {_BYPASS}",
        )
    return document.get("metadata")


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
    if slash and index.NO_NAME.search(path):
        raise MetadataError(
            "invalid path of a node below the group",
            key=key,
            found=path,
            expected=f'names joined by "/"; {_BYPASS}',
        )


def index_entries(entries: Entries) -> ConsolidatedMetadata:
    """Return the index that a store of consolidated metadata uses: documents and members."""
    return index.index_documents(entries, entries, entries.is_group, dump_json)


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
