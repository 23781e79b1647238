"""Find the node at a path: read its documents and parse them."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Literal

from zarrdask import config
from zarrdask.arrays.hierarchy import diagnose, draft
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath, ancestors, key_prefix
from zarrdask.errors import (
    MetadataError,
    NodeNotFoundError,
    StoreError,
    UnsupportedError,
    ZarrdaskError,
)
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.compliance import report_deviation, strictness, warn_compliance
from zarrdask.formats.grids.keys import ChunkKeyEncoding
from zarrdask.formats.metadata import consolidated_documents as forms
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.consolidated_index import ConsolidatedMetadata
from zarrdask.formats.metadata.detect import ANY, Search
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import (
    ArrayMetadata,
    GroupMetadata,
    Known,
    Metadata,
    ZarrFormat,
)
from zarrdask.formats.metadata.v2 import V2
from zarrdask.formats.metadata.v3 import EntryPointError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.concurrent_requests import request_each
from zarrdask.storage.listing import key_stamp
from zarrdask.storage.remote.failures import is_forbidden
from zarrdask.storage.zarr.consolidated_store import (
    ConsolidatedStore,
    as_consolidated,
)
from zarrdask.storage.zarr.draft_store import stored_in

#: The size of documents from which on equal ones are not looked for: large ones are rarely equal.
_MAX_COMPARED_BYTES = 2**20
#: Which consolidated metadata is used to find a node. "never": none, the node's own documents are
#: read. "inherited": only the metadata that the store already serves. "own": also the group's own,
#: if it has any. "nearest": the group's own, or else the nearest metadata above.
#: "required": the same, and an error if there is none.
UseConsolidated = Literal["never", "inherited", "own", "nearest", "required"]


def find_node(
    node: AnyPath, *, consolidated: UseConsolidated = "never", search: Search = ANY
) -> tuple[AnyPath, Metadata]:
    """Return a node in the store as its hierarchy sees it, and the metadata.

    That is a `DraftStore` if the node is in a hierarchy of the v3 draft, a `ConsolidatedStore` if
    the node was read from consolidated metadata (see `UseConsolidated`), else the store itself.
    """
    node, metadata = seek_node(node, consolidated=consolidated, search=search)
    if metadata is None:
        raise not_found(node, search)
    return node, metadata


def seek_node(
    node: AnyPath, *, consolidated: UseConsolidated = "never", search: Search = ANY
) -> tuple[AnyPath, Metadata | None]:
    """Return the result of `find_node`, but None as the metadata if there is no node."""
    if consolidated == "never":
        node = node.current
    required, above = consolidated == "required", consolidated in ("nearest", "required")
    if required or ((above or consolidated == "own") and node.layout.has_consolidated):
        node, documents = _read_consolidated(node, search, above=above, required=required)
    else:
        documents = documents_of(node, search)
    hierarchy = None
    try:
        metadata = node_of(node, documents, search)
    except EntryPointError:
        if not search.enters_hierarchies:
            raise
        hierarchy = draft.enter(node.current, documents["zarr.json"] or b"")
    else:
        if metadata is not None:
            return node, metadata
        if search.enters_hierarchies:
            hierarchy = draft.root_above(node.current.parents)
    if hierarchy is not None:
        node = node.via(hierarchy)
        return node, read_node(node, search)
    return node, None


def not_found(node: StorePath, search: Search) -> NodeNotFoundError:
    """Return the error for a node that does not exist."""
    names = [name for names in search.rounds(node.layout) for name in names]
    if node.layout.documents:
        names = [node.layout.real(node.prefix + name) for name in names]
    text = "there is no array or group here"
    if search.only:
        text = f"there is no array or group of zarr_format={search.zarr_format!r} here"
        stored = _stored_format(node)
        if stored is not None:
            text += f", but one of zarr_format={stored!r}; pass that, or leave zarr_format out"
            return NodeNotFoundError(text, key=node.location, found=stored)
    return NodeNotFoundError(
        diagnose.missing_node(node, text),
        key=node.location,
        expected=f"one of {', '.join(names)}",
    )


def _stored_format(node: StorePath) -> ZarrFormat | None:
    """Return the format of the node at a path; None if it can't be detected."""
    try:
        with strictness(strict=False, quiet=True):
            return find_node(node.current)[1].zarr_format
    except ZarrdaskError:
        return None


# --------------------------------------------------------------------------------------------
# The documents of nodes


def read_documents(
    store: Store,
    paths: list[str],
    rounds: tuple[tuple[str, ...], ...],
    tags: dict[str, str] | None = None,
) -> list[Documents]:
    """Return the documents of several nodes, whose names are given in rounds.

    The documents of one round are requested together, for the nodes for which no earlier round
    returned a document that makes a node. Servers answer 403 for a missing key if one may not list
    them: once a document makes a node, documents that would make another one are assumed to be
    absent.

    The ETags of documents are added to `tags`, by key, if the server sends them.
    """
    documents: list[dict[str, bytes | None]] = [{} for _ in paths]
    prefixes = [key_prefix(path) for path in paths]
    refusals = dict[str, StoreError]()
    left = list(range(len(paths)))
    for turn, names in enumerate(rounds):
        if turn:
            left = [at for at in left if not detect.is_node(documents[at])]
        keys = [prefixes[at] + name for at in left for name in names]
        values = iter(_get_all(store, keys, refusals, tags))
        for at in left:
            documents[at].update(zip(names, islice(values, len(names)), strict=True))
    if refusals:
        for prefix, own in zip(prefixes, documents, strict=True):
            for name in detect.other_documents(own) if detect.is_node(own) else own:
                error = refusals.get(prefix + name)
                if error is not None:
                    raise error
    return [*documents]


def _get_all(
    store: Store,
    keys: list[str],
    refusals: dict[str, StoreError],
    tags: dict[str, str] | None = None,
) -> list[bytes | None]:
    """Return the values of keys; those that the server refuses to send are added to `refusals`."""
    # Thousands of nodes often have equal documents, which are kept once.
    distinct = dict[bytes, bytes]()

    def kept(value: Buffer | None) -> bytes | None:
        data = None if value is None else bytes(value)
        if data is None or len(data) > _MAX_COMPARED_BYTES:
            return data
        return distinct.setdefault(data, data)

    def tagged(key: str) -> bytes | None:
        value, _, tag = store.get_if_changed(key, None)
        if tags is not None and isinstance(tag, str):
            tags[key] = tag
        return kept(value)

    read = store.get if tags is None else tagged

    def get(key: str) -> bytes | None:
        try:
            return read(key)
        except StoreError as error:
            if not is_forbidden(error):
                raise
            refusals[key] = error
            return None

    try:
        if tags is not None:
            return list(request_each(store, tagged, keys))
        # Each value is valid until the next is requested: copy it.
        return [kept(value) for value in store.get_many(keys, Scratch())]
    except StoreError as error:
        if not is_forbidden(error):
            raise
    return list(request_each(store, get, keys))


def documents_of(node: StorePath, search: Search) -> Documents:
    """Return the documents of one node; see `read_documents`."""
    return read_documents(node.store, [node.path], search.rounds(node.layout))[0]


def node_of(
    node: StorePath, documents: Documents, search: Search | None, known: Known | None = None
) -> Metadata | None:
    """Return the metadata of a node whose documents were read, or None if there is no node.

    Without a search, that is a node of any format with a document. Arrays share parts of metadata
    in `known`, if given.
    """
    try:
        metadata = detect.parse(documents, node.layout, known)
        if metadata is not None:
            form = metadata.format
            if form.has_conventions:
                form.check_stored_path(node.layout.inside(node.prefix).rstrip("/"))
                other = form.unstated_keys(documents)
                metadata = metadata if other is None else _with_stored_keys(node, metadata, other)
    except ZarrdaskError as error:
        raise error.within(node.location) from error.__cause__
    except RecursionError as error:
        # `parse_json` limits the depth of documents; this is for callers with little stack left.
        raise MetadataError(
            "the metadata is nested too deeply for the rest of Python's call stack; open the "
            "node outside of recursive functions",
            key=node.location,
        ) from error
    if metadata is None:
        return implied_group(node) if search and search.accepts(3) else None
    others = detect.other_nodes(documents, metadata)
    if others:
        warn_compliance(
            f"{node.location}: there is metadata of two formats; the node is read "
            f"as Zarr {metadata.zarr_format}, and {', '.join(others)} is ignored"
        )
    return metadata if search is None or search.accepts(metadata.zarr_format) else None


def read_node(node: StorePath, search: Search = ANY) -> Metadata | None:
    """Return the metadata of a node, or None if there is no node."""
    return node_of(node, documents_of(node, search), search)


def node_exists(node: StorePath, search: Search = ANY) -> bool:
    """Whether there is a node with a document at a path, be it valid or not."""
    store, path = node
    rounds = tuple(
        tuple(filter(detect.node_names().__contains__, r)) for r in search.rounds(node.layout)
    )
    return detect.is_node(read_documents(store, [path], rounds)[0])


def has_document(node: StorePath) -> bool:
    """Whether a node has a document now: groups that are only implied have none."""
    layout = node.layout
    if layout.documents is None:
        return node_exists(node.current)
    keys = [layout.real(node.prefix + name) for name in layout.documents]
    return any(value is not None for value in stored_in(node.store).get_many(keys, Scratch()))


def implied_group(node: StorePath) -> GroupMetadata | None:
    """Return the group without a document that a v3 node below a path implies (C-6, X-C10).

    Drafts of v3 had such groups. They are read if ``zarrdask.implicit-groups`` is set.
    """
    if not config.get("implicit-groups"):
        return None
    name = "zarr.json"
    try:
        keys = node.store.list_prefix(node.prefix)
        has_nodes = any(key.rpartition("/")[2] == name for key in keys)
    except UnsupportedError:
        return None  # the store can't be listed
    if not has_nodes:
        return None
    report_deviation("X-C10", "a group must have a document", key=node.path or "/", expected=name)
    return GroupMetadata(3)


def _with_stored_keys(node: StorePath, metadata: Metadata, other: ChunkKeyEncoding) -> Metadata:
    """Return the metadata of a node with the chunk keys under which its chunks are stored (X-A1).

    These are the `other` keys, which old writers used without declaring them in the document, if
    ``zarrdask.v2-nested-legacy`` is set and the first chunk is stored under its key of these only.
    """
    if not isinstance(metadata, ArrayMetadata) or len(metadata.shape) < 2:
        return metadata
    if not config.get("v2-nested-legacy"):
        return metadata
    first_chunk = (0,) * len(metadata.shape)
    flat, nested = (node.prefix + keys.key(first_chunk) for keys in (metadata.keys, other))
    if node.store.get_range(flat, 0, 1) is not None or node.store.get_range(nested, 0, 1) is None:
        return metadata
    report_deviation(
        "X-A1",
        "the chunk keys are nested, but the document does not say so",
        key="dimension_separator",
        expected="'/'",
    )
    return replace(metadata, keys=other)


def version_stamp(node: StorePath, names: Iterable[str] | None = None) -> str:
    """Return a text that changes when the node's documents are written again.

    `names` are those to look at, by default all. The text is "" for stores that would need a
    request for it.
    """
    store, prefix = node.store, node.prefix
    return "".join(key_stamp(store, prefix + name) for name in names or detect.all_names())


# --------------------------------------------------------------------------------------------
# Consolidated metadata


def _read_consolidated(
    node: AnyPath, search: Search, *, above: bool, required: bool
) -> tuple[AnyPath, Documents]:
    """Return a node in the store as consolidated metadata shows it, and its documents.

    With `above`, consolidated metadata of the groups above is used, too; with `required`, an error
    is raised if there is none.
    """
    consolidated = as_consolidated(node.store)
    if consolidated is not None and consolidated.holds(node.path):
        return node, documents_of(node, search)
    node = node.current
    store, path = node
    groups = [path, *reversed(ancestors(path))] if above else [path]
    rounds = tuple(
        (*names, forms.KEY) if set(V2.documents) <= set(names) else names
        for names in search.rounds(node.layout)
    )
    all_documents = read_documents(store, groups, rounds)
    for group, documents in zip(groups, all_documents, strict=True):
        own, held = _split(node.at(group), documents)
        if held is None and above:
            continue
        # Consolidated metadata without members is not used: the group may have members all the
        # same.
        view = node
        if held and any(held.documents):
            view = node.via(ConsolidatedStore(store, group, held))
        if group != path:
            own = documents_of(view, search)
            if not (required or detect.is_node(own)):
                break  # The consolidated metadata is older than the node.
        return view, own
    if not required:
        return node, _split(node, all_documents[0])[0]
    raise MetadataError(
        "there is no consolidated metadata here; write it with zarrdask.consolidate_metadata, "
        "or open the node without consolidated=True",
        key=node.location,
        expected=f"{forms.KEY}, or {forms.MEMBER} in zarr.json",
    )


def _split(node: StorePath, documents: Documents) -> tuple[Documents, ConsolidatedMetadata | None]:
    """Return a node's own documents, and its consolidated metadata if it has any."""
    try:
        return forms.split_documents(documents)
    except ZarrdaskError as error:
        raise error.within(node.location) from error.__cause__
