"""Consolidated metadata: the documents of a whole group in one (conformance A-67, C-78).

v2 has them in ``.zmetadata`` beside the group's own documents, v3 in ``consolidated_metadata``, a
member of its ``zarr.json``.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from zarrdask.codecs.base import Json
from zarrdask.compliance import report_deviation
from zarrdask.errors import MetadataError
from zarrdask.metadata import detect, v2, v3
from zarrdask.metadata.json import (
    CONSOLIDATED_LEVELS,
    MAX_DEPTH,
    Documents,
    parse_json,
    render_json,
)
from zarrdask.metadata.model import ZarrFormat
from zarrdask.storage.consolidated import ConsolidatedMetadata

#: The document of v2.
KEY = ".zmetadata"
#: The member of a group's document in v3.
MEMBER = "consolidated_metadata"
#: What to ask for, to find either.
NAMES = (KEY, *v3.NAMES)
#: For each node, by its path from the group ("" is the group): its documents, parsed, by name.
Entries = Mapping[str, Mapping[str, Json]]
_FORMAT = "zarr_consolidated_format"
_BYPASS = "with consolidated=False each node's own documents are read"
_V3 = v3.NAMES[0]


# --------------------------------------------------------------------------------------------
# Document -> entries


def take(documents: Documents) -> tuple[Documents, ConsolidatedMetadata | None]:
    """Return a group's documents without the consolidated ones, and what these tell.

    Parameters
    ----------
    documents : mapping
        Of one node, with ``.zmetadata`` if there is one.

    Returns
    -------
    documents : mapping
        The group's own. A v2 group that has only ``.zmetadata`` is found there.
    held : ConsolidatedMetadata or None
        None if there are no consolidated metadata, or v3's are of a kind that is not known, which
        are to be ignored (C-78).

    Raises
    ------
    MetadataError
        If they are wrong; the error says how to do without.
    """
    own = {name: value for name, value in documents.items() if name != KEY}
    if own.get(_V3) is not None:
        return _take_v3(own)
    data = documents.get(KEY)
    if data is None or own.get(".zarray") is not None:
        return own, None
    entries = parse(2, data)
    if own.get(".zgroup") is None:
        own |= {name: dump(found) for name, found in entries.get("", {}).items()}
    return own, hold(entries)


def _take_v3(own: dict[str, bytes | None]) -> tuple[Documents, ConsolidatedMetadata | None]:
    document = group_with_member(own[_V3])
    if document is None or not _is_inline(document[MEMBER]):
        return own, None
    found = document.pop(MEMBER)
    entries = {"": {_V3: document}, **parse(3, found)}
    return own | {_V3: dump(document)}, hold(entries)


def dump(document: Json) -> bytes:
    """Return the bytes of a document as it was read, be it strict JSON or not."""
    return json.dumps(document, indent=2).encode()


def group_with_member(data: bytes | None) -> Json | None:
    """Return the document of a v3 group, parsed, if it has consolidated metadata of any kind."""
    # Most documents have none: they need not be parsed to see that.
    if data is None or MEMBER.encode() not in data:
        return None
    document = parse_json(data, _V3)
    group = document.get("node_type") == "group"
    return document if group and document.get(MEMBER) is not None else None


def _is_inline(found: Any) -> bool:
    # Without "must_understand": false it is an error, which is told where the group is parsed.
    return (
        isinstance(found, dict)
        and found.get("must_understand") is False
        and found.get("kind") == "inline"
    )


def parse(zarr_format: ZarrFormat, found: Any) -> Entries:
    """Return what consolidated metadata hold.

    Parameters
    ----------
    zarr_format : {2, 3}
        Of the group.
    found : bytes or mapping
        ``.zmetadata``, or the member of ``zarr.json``.

    Raises
    ------
    MetadataError
        If they are wrong, or of another format than 1 (conformance A-68).
    """
    return _parse_v2(found) if zarr_format == 2 else _parse_v3(found)


def _parse_v2(data: bytes) -> Entries:
    try:
        document = parse_json(data, KEY)
    except MetadataError as error:
        raise MetadataError(
            error.message, key=error.key, found=error.found, expected=_BYPASS
        ) from error
    version, found = document.get(_FORMAT), document.get("metadata")
    if type(version) is not int or version != 1:
        raise MetadataError(
            "unknown format of consolidated metadata",
            key=f"{KEY} {_FORMAT}",
            found=version,
            expected=f"1; {_BYPASS}",
        )
    entries: dict[str, dict[str, Json]] = {}
    for key, value in _items(found, KEY):
        path, _, name = key.rpartition("/")
        if name in v2.NAMES:
            _check_path(path, f"{KEY} {key}", slash="/" in key)
            entries.setdefault(path, {})[name] = _as_v2(value, key, name)
    return entries


def _as_v2(document: Json, key: str, name: str) -> Json:
    if name != ".zgroup" or MEMBER not in document:
        return document
    # zarr-python 3 writes into the entries of groups what belongs into v3's documents.
    report_deviation(
        "X-C12",
        "other members must not be present",
        key=f"{KEY} {key}",
        found=MEMBER,
        expected="zarr_format",
    )
    return {member: value for member, value in document.items() if member != MEMBER}


def _parse_v3(found: Mapping[str, Any]) -> Entries:
    entries: dict[str, dict[str, Json]] = {}
    for path, document in _items(found.get("metadata"), MEMBER):
        _check_path(path, f"{MEMBER} {path}", slash=True)
        # What a nested group says of its members is empty: they stand beside it.
        own = {member: value for member, value in document.items() if member != MEMBER}
        entries[path] = {_V3: own}
    return entries


def _items(found: Any, key: str) -> Iterable[tuple[str, Json]]:
    if not isinstance(found, dict):
        raise MetadataError(
            "not consolidated metadata",
            key=f"{key} metadata",
            found=found,
            expected=f"an object; {_BYPASS}",
        )
    for name, value in found.items():
        if not isinstance(value, dict):
            raise MetadataError(
                "not a metadata document",
                key=f"{key} {name}",
                found=value,
                expected=f"an object; {_BYPASS}",
            )
    return found.items()


def _check_path(path: str, key: str, *, slash: bool) -> None:
    """Check the path of an entry: what is no path leads out of the group."""
    if slash and any(not name.strip(".") for name in path.split("/")):
        raise MetadataError(
            "not the path of a node below the group",
            key=key,
            found=path,
            expected=f'names joined by "/"; {_BYPASS}',
        )


# --------------------------------------------------------------------------------------------
# Entries -> what is held


def hold(entries: Entries) -> ConsolidatedMetadata:
    """Return what a store holds of a group: its documents, and who is whose member."""
    groups = {path for path, documents in entries.items() if is_group(documents)} | {""}
    members: dict[str, set[str]] = {path: set() for path in groups}
    for path, documents in entries.items():
        above, _, name = path.rpartition("/")
        if path and above in groups and not documents.keys().isdisjoint(detect.CHILD_NAMES):
            members[above].add(name)
    ordered = {path: sorted(names) for path, names in members.items()}
    return ConsolidatedMetadata(entries, ordered, frozenset((*detect.NAMES, KEY)))


def is_group(documents: Mapping[str, Json]) -> bool:
    """Whether the documents are those of a group."""
    return ".zgroup" in documents or documents.get(_V3, {}).get("node_type") == "group"


# --------------------------------------------------------------------------------------------
# Entries -> document


def render(zarr_format: ZarrFormat, entries: Entries) -> dict[str, bytes]:
    """Return the documents to be stored in a group, so that one read tells all.

    Parameters
    ----------
    zarr_format : {2, 3}
        Of the group.
    entries : mapping
        Of everything below and, by the path "", of the group itself.

    Raises
    ------
    MetadataError
        If a node is of the other format, which such metadata can't hold.
    """
    names = v2.NAMES if zarr_format == 2 else v3.NAMES
    for path, documents in entries.items():
        if not set(documents) & set(names):
            raise MetadataError(
                "consolidated metadata hold nodes of one format",
                key=path,
                found=sorted(documents),
                expected=" or ".join(names),
            )
        for name, document in documents.items():
            # Each by itself first: an error names the document that is not JSON.
            render_json(document, f"{path}/{name}" if path else name)
    return _render_v2(entries) if zarr_format == 2 else _render_v3(entries)


def _render_v2(entries: Entries) -> dict[str, bytes]:
    found = {
        f"{path}/{name}" if path else name: documents[name]
        for path, documents in entries.items()
        for name in v2.NAMES
        if name in documents
    }
    return {KEY: _render({"metadata": found, _FORMAT: 1}, KEY)}


def _render_v3(entries: Entries) -> dict[str, bytes]:
    found = {
        path: documents[_V3] | (_inline({}) if is_group(documents) else {})
        for path, documents in entries.items()
        if path
    }
    return {_V3: _render(entries[""][_V3] | _inline(found), _V3)}


def _render(document: Json, key: str) -> bytes:
    return render_json(document, key, indent=None, limit=MAX_DEPTH + CONSOLIDATED_LEVELS)


def _inline(found: Json) -> Json:
    return {MEMBER: {"kind": "inline", "must_understand": False, "metadata": found}}


def parsed(path: str, documents: Documents) -> dict[str, Json]:
    """Return a node's documents as entries are, to be consolidated.

    Raises
    ------
    MetadataError
        If one is not JSON.
    """
    prefix = f"{path}/" if path else ""
    found = {
        name: parse_json(data, prefix + name)
        for name, data in documents.items()
        if data is not None and name != KEY
    }
    for name in (_V3, ".zgroup"):
        found.get(name, {}).pop(MEMBER, None)
    return found
