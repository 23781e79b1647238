"""The index of consolidated metadata: the documents of each node, and the members of each group.

The documents may be parsed or not. Of a large hierarchy, mostly a few nodes are opened, so the
documents of its nodes are parsed when they are needed; invalid documents of others are no error.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.codec import Json
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.json import dump_json, parse_json

_V3 = "zarr.json"
#: The name of consolidated metadata in v2.
KEY = ".zmetadata"
#: The member of a group's document in v3.
MEMBER = "consolidated_metadata"
#: A name in a path that is empty, or consists of periods only.
NO_NAME = re.compile(r"(?:^|/)\.*(?:/|$)")
_MAX_KEPT_BYTES = 4096


@dataclass(frozen=True)
class ConsolidatedMetadata:
    """The documents of a group and of all nodes below it, by path and by name.

    `members` has the sorted names of the members of each group, by its path from the group. `names`
    are those of all documents that a node can have: documents of these names that are not in
    `documents` are missing from the hierarchy. `dump` returns one of the documents, which may be
    parsed or not, as bytes, as this package writes documents.
    """

    documents: Mapping[str, Mapping[str, Any]]
    members: Mapping[str, Sequence[str]]
    names: frozenset[str]
    dump: Callable[[Any], bytes]


def index_documents(
    documents: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, Iterable[str]],
    is_group: Callable[[str], bool],
    dump: Callable[[Any], bytes],
) -> ConsolidatedMetadata:
    """Return the index of documents, whose names are given by path."""
    members = dict[str, list[str]]()
    makes_node = detect.node_names()
    for path, own in names.items():
        if path and not makes_node.isdisjoint(own):
            above, _, name = path.rpartition("/")
            members.setdefault(above, []).append(name)
    all_names = frozenset((*detect.all_names(), KEY))
    return ConsolidatedMetadata(documents, _Members(members, is_group), all_names, dump)


def index_unparsed(
    own: Mapping[str, bytes], values: Mapping[str, bytes], keys: Mapping[str, Mapping[str, str]]
) -> ConsolidatedMetadata | None:
    """Return the index of documents that are not parsed; None if a path is not valid.

    `own` are the documents of the group itself. `values` are those of the nodes below it, and
    `keys` has the key of each, by path and by name.
    """
    all_paths = f"/{'/'.join(keys)}/" if keys else ""
    # Few hierarchies have such names, and these may be valid.
    if ("//" in all_paths or "/." in all_paths) and any(map(NO_NAME.search, keys)):
        return None
    documents = _Unparsed(own, values, keys)
    return index_documents(documents, keys, cache(documents.is_group), _as_written)


def describes_group(document: Json) -> bool:
    """Whether a document of v3 describes a group."""
    return document.get("node_type") == "group"


def _as_written(data: bytes) -> bytes:
    """Return a document as this package writes it, unless it is invalid."""
    return _rewritten_small(data) if len(data) <= _MAX_KEPT_BYTES else _rewritten(data)


def _rewritten(data: bytes) -> bytes:
    try:
        document = parse_json(data, _V3)
    except MetadataError:
        return data  # Parsing the node raises the error, which then names the node.
    # The member is empty in nested groups, whose nodes have entries of their own.
    document.pop(MEMBER, None)
    return dump_json(document)


#: Thousands of arrays often have equal documents.
_rewritten_small = lru_cache(maxsize=256)(_rewritten)


class _Members(Mapping[str, Sequence[str]]):
    """The sorted names of the members of each group, by its path."""

    def __init__(self, names: dict[str, list[str]], is_group: Callable[[str], bool]) -> None:
        self._names = names
        self._is_group = is_group

    def __getitem__(self, path: str) -> Sequence[str]:
        if path and not self._is_group(path):
            raise KeyError(path)
        return sorted(self._names.get(path, ()))

    def __iter__(self) -> Iterator[str]:
        return filter(self._is_group, self._names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class _Unparsed(Mapping[str, Mapping[str, bytes]]):
    """The documents of a group and of the nodes below it, by path and by name."""

    own: Mapping[str, bytes]
    values_by_key: Mapping[str, bytes]
    #: The keys of the documents below the group.
    keys_by_path: Mapping[str, Mapping[str, str]]

    def __getitem__(self, path: str) -> Mapping[str, bytes]:
        if not path:
            return self.own
        return {name: self.values_by_key[key] for name, key in self.keys_by_path[path].items()}

    def __iter__(self) -> Iterator[str]:
        yield ""
        yield from self.keys_by_path

    def __len__(self) -> int:
        return len(self.keys_by_path) + 1

    def is_group(self, path: str) -> bool:
        """Whether the documents at a path describe a group."""
        documents = self.get(path, {})
        data = documents.get(_V3)
        if data is None:
            return ".zgroup" in documents
        return describes_group(parse_json(data, f"{path}/{_V3}"))
