"""Open many nodes: all their documents are requested together, and equal ones are parsed once."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from zarrdask.arrays.hierarchy.find import node_of, read_documents, seek_node
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.formats.metadata.detect import Search
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.formats.metadata.node_layout import DIRECTORIES
from zarrdask.formats.metadata.v3 import EntryPointError
from zarrdask.storage.base import Store
from zarrdask.storage.concurrent_requests import request_on_stores
from zarrdask.storage.remote.remote_urls import REMOTE_SCHEMES
from zarrdask.storage.zarr.consolidated_store import uncached
from zarrdask.storage.zarr.draft_store import layout_of

T = TypeVar("T")
#: The schemes of URLs whose directories have names without a suffix, as a rule; "" is for local
#: paths. Other suffixes than ".zarr" may name archives or references.
_HIERARCHICAL = {"", "file", *REMOTE_SCHEMES}


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
    scheme = parent.partition("://")[0] if "://" in parent else ""
    is_directory = name.endswith(".zarr") or ("." not in name and scheme in _HIERARCHICAL)
    is_plain = bool(parent) and not parent.endswith((":", ":/", "::"))
    if not is_directory or not is_plain or "?" in parent or "::" in parent:
        return locate_node(url, component, options)
    if parent not in stores:
        stores[parent] = locate_node(parent, None, options).store
    node = NodePath(stores[parent], name)
    return node.join(component) if component else node


class FoundNode(NamedTuple):
    """A node in the store as its hierarchy sees it, and what its documents say."""

    node: NodePath
    #: None if there is no node.
    metadata: Metadata | None
    #: The ETag of the document that makes it a node; "" if the server sends none.
    tag: str = ""


def find_nodes(nodes: Sequence[NodePath], shared: SharedMetadata) -> list[FoundNode]:
    """Return the metadata of nodes.

    The documents of the format of the first node are requested of all others together. Nodes that
    these do not describe are sought one by one, concurrently: they may be in hierarchies of the
    draft.
    """
    found_nodes = dict[int, FoundNode]()
    format_of_first = None
    for number, node in enumerate(nodes):
        located, metadata = seek_node(node)
        found_nodes[number] = FoundNode(located, metadata)
        if metadata is not None:
            format_of_first = metadata.zarr_format
            break
    search = Search(format_of_first)
    # The first node that exists is read again if that yields its ETag.
    start = len(found_nodes)
    for numbers, documents, tags in read_stores(nodes, start, search):
        for number, own in zip(numbers, documents, strict=True):
            node = nodes[number]
            with suppress(EntryPointError):
                metadata = shared.parse(node, own)
                if metadata is not None:
                    tag = tag_of(node, metadata, tags)
                    found_nodes[number] = FoundNode(node.current, metadata, tag)
    left = [number for number in range(start, len(nodes)) if number not in found_nodes]
    for number, found in zip(left, on_each_node(seek_node, nodes, left), strict=True):
        found_nodes[number] = FoundNode(*found)
    return [found_nodes[number] for number in range(len(nodes))]


class ReadDocuments(NamedTuple):
    """The documents of nodes in one store."""

    numbers: list[int]
    documents: list[Documents]
    #: The ETags, by key; None if the store has none.
    tags: dict[str, str] | None


def read_stores(
    nodes: Sequence[NodePath], start: int, search: Search, names: tuple[str, ...] | None = None
) -> list[ReadDocuments]:
    """Return the documents of nodes from a number on, store by store; see `read_documents`.

    Documents in several stores are requested concurrently, too. The documents of the node before
    `start`, which was found by itself, are read again if that yields their ETags.
    """
    by_store = dict[int, list[int]]()
    for number in range(max(start - 1, 0), len(nodes)):
        by_store.setdefault(id(nodes[number].store), []).append(number)

    def read(every: list[int]) -> ReadDocuments:
        store = nodes[every[0]].store
        tags = dict[str, str]() if has_tags(store) else None
        numbers = [number for number in every if number >= start or tags is not None]
        rounds = search.rounds(layout_of(store)) if names is None else (names,)
        paths = [nodes[number].path for number in numbers]
        return ReadDocuments(numbers, read_documents(store, paths, rounds, tags), tags)

    stores = (nodes[every[0]].store for every in by_store.values())
    return request_on_stores(stores, read, by_store.values())


def on_each_node(
    work: Callable[[NodePath], T], nodes: Sequence[NodePath], numbers: Sequence[int]
) -> list[T]:
    """Return the results of requests to some nodes, sent concurrently if a store has latency."""
    chosen = [nodes[number] for number in numbers]
    return request_on_stores((node.store for node in chosen), work, chosen)


def has_tags(store: Store) -> bool:
    """Whether documents are requested of a store with their ETags, at no cost."""
    # Views of a store have documents of their own.
    is_plain = uncached(store) is store and layout_of(store) is DIRECTORIES
    return is_plain and store.capabilities.etags and store.capabilities.versions


def tag_of(node: NodePath, metadata: Metadata, tags: Mapping[str, str] | None) -> str:
    """Return the ETag of the document that makes a node, or ""."""
    if not tags:
        return ""
    return tags.get(node.prefix + metadata.format.documents[0], "")
