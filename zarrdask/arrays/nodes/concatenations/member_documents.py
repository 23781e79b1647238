"""Open many nodes: all their documents are requested together, and equal ones are parsed once."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zarrdask.arrays.hierarchy.find import node_of, read_documents
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeNotFoundError
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.base import Store
from zarrdask.storage.zarr.detect import Search

#: The endings of names of directories that hold a hierarchy. Others may be archives or references.
_DIRECTORIES = (".zarr",)


class SharedMetadata:
    """Metadata by documents: equal documents are parsed once, and their metadata is shared."""

    def __init__(self) -> None:
        self._parsed = dict[Any, Metadata | None]()
        self._bare = dict[Any, ArrayMetadata]()
        self._bare_of = dict[int, tuple[ArrayMetadata, ArrayMetadata]]()

    def parse(self, node: NodePath, documents: Documents) -> Metadata | None:
        """Return the metadata of a node that documents describe, or None if there is no node."""
        key = tuple(documents.items())
        if key not in self._parsed:
            self._parsed[key] = node_of(node, documents, Search())
        return self._parsed[key]

    def bare(self, metadata: ArrayMetadata) -> ArrayMetadata:
        """Return metadata without attributes and names: one value for all arrays that share it."""
        known = self._bare_of.get(id(metadata))
        if known is None:
            bare = metadata.without_labels()
            key = repr(sorted(bare.render().items())), str(metadata.zarr_format)
            known = metadata, self._bare.setdefault(key, bare)
            self._bare_of[id(metadata)] = known
        return known[1]


def locate_nodes(
    urls: Iterable[Any], component: str | None, storage_options: dict[str, Any] | None
) -> list[NodePath]:
    """Return the nodes at URLs, paths or stores; those in one directory are in one store."""
    stores = dict[str, Store]()
    return [_located(url, component, storage_options, stores) for url in urls]


def _located(
    url: Any, component: str | None, options: dict[str, Any] | None, stores: dict[str, Store]
) -> NodePath:
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    parent, _, name = text.rstrip("/").rpartition("/") if isinstance(text, str) else ("", "", "")
    is_plain = name.endswith(_DIRECTORIES) and parent and not parent.endswith((":", ":/", "::"))
    if not is_plain or "?" in parent or "::" in parent:
        return locate_node(url, component, options)
    if parent not in stores:
        stores[parent] = locate_node(parent, None, options).store
    node = NodePath(stores[parent], name)
    return node.join(component) if component else node


def find_nodes(nodes: Sequence[NodePath], shared: SharedMetadata) -> list[Metadata | None]:
    """Return the metadata of nodes, or None where there is no node.

    The documents of the format of the first node are requested of all others together.
    """
    found_nodes = dict[int, Metadata | None]()
    format_of_first = None
    for number, node in enumerate(nodes):
        try:
            _, metadata = node.find()
        except NodeNotFoundError:
            found_nodes[number] = None
            continue
        found_nodes[number], format_of_first = metadata, metadata.zarr_format
        break
    search = Search(format_of_first)
    for store, numbers in _by_store(nodes, len(found_nodes)).items():
        paths = [nodes[number].path for number in numbers]
        documents = read_documents(store.store, paths, search.rounds(store.store))
        for number, own in zip(numbers, documents, strict=True):
            found_nodes[number] = shared.parse(nodes[number], own)
    return [found_nodes[number] for number in range(len(nodes))]


class _Same:
    """A store, compared by identity."""

    __slots__ = ("store",)

    def __init__(self, store: Store) -> None:
        self.store = store

    def __hash__(self) -> int:
        return id(self.store)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.store is self.store


def _by_store(nodes: Sequence[NodePath], start: int) -> Mapping[_Same, list[int]]:
    """Return the numbers of the nodes in each store, from a number on."""
    numbers = dict[_Same, list[int]]()
    for number in range(start, len(nodes)):
        numbers.setdefault(_Same(nodes[number].store), []).append(number)
    return numbers
