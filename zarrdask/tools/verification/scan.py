"""Scan a hierarchy: its nodes, their stored units, and keys that belong to no node."""

import json
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits, in_the_way
from zarrdask.arrays.hierarchy.group_filter import GroupFilter
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError, UnsupportedError, ZarrdaskError
from zarrdask.formats.compliance import collect_deviations
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.formats import formats
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.formats.metadata.node_layout import ARRAY, GROUP
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.runtime.threads import on_each
from zarrdask.storage.base import Store
from zarrdask.storage.local.atomic import is_temporary
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.zarr.draft_store import stored_in
from zarrdask.tools.verification.check import Problem

#: The names that may stand in the directory of a node: documents of all formats and of netCDF-C.
_DOCUMENTS = frozenset(
    (
        *(*detect.all_names(), ARRAY, GROUP, consolidated.KEY),
        *(".nczarr", ".nczarray", ".nczattrs", ".nczgroup"),
    )
)
#: The beginning of the names of files that this package itself keeps beside nodes.
_OWN_FILES = "/.zarrdask-"
_LEFT_BY_WRITER = "an interrupted write left it, or a running write uses it"
_NO_OWNER = "it belongs to no array or group"
#: How many nodes a message about consolidated metadata names.
_MAX_NAMES = 3


@dataclass
class Scan:
    """The nodes, the stored units and the problems at and below a path."""

    #: The node that is scanned, in the store as the hierarchy sees it.
    root: NodePath
    #: The metadata of all nodes by path; None if they are not valid.
    nodes: dict[str, Metadata | None] = field(default_factory=dict)
    #: The indices of the stored units of each array, a row each; None if the store can't be
    #: listed.
    units: dict[str, np.ndarray | None] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    #: The directories that this package keeps beside nodes while it writes them.
    own_files: set[str] = field(default_factory=set)
    #: The keys of what is recorded about pyramids.
    pyramids: list[str] = field(default_factory=list)

    #: The groups that were chosen; None for all.
    chosen: GroupFilter | None = None

    @property
    def base(self) -> Store:
        """The store as it is listed, without the view of consolidated metadata."""
        return self.root.current.store

    def arrays(self) -> Iterator[tuple[str, StoredChunks]]:
        """Yield the path and the units of each array with valid metadata."""
        for path, metadata in self.nodes.items():
            if isinstance(metadata, ArrayMetadata):
                yield path, self.root.at(path).chunks(metadata)

    def below(self) -> dict[str, Metadata | None]:
        """Return the nodes by their paths below the node that is scanned."""
        start = len(self.root.prefix)
        return {path[start:]: metadata for path, metadata in self.nodes.items()}

    def add_problem(self, kind: str, path: str, key: str, message: str) -> None:
        """Add a problem of a key of the hierarchy."""
        self.problems.append(Problem(kind, path, self.root.layout.real(key), message))


def scan_hierarchy(root: NodePath, chosen: GroupFilter | None = None) -> Scan:
    """Return the nodes, the stored units and the problems at and below a path.

    If groups are `chosen`, nothing else is read than their arrays, and what leads to them.
    """
    scan = find_nodes(root, chosen)
    _check_consolidated(scan)
    _assign_keys(scan)
    _find_partial_writes(scan)
    return scan


# --------------------------------------------------------------------------------------------
# Nodes


def find_nodes(root: NodePath, chosen: GroupFilter | None = None) -> Scan:
    """Return the nodes at and below a path, and the problems of their documents.

    If groups are `chosen`, only they are found, with their arrays, and the groups above them.
    """
    root, metadata, problems = _root(root)
    scan = Scan(root, {root.path: metadata}, problems=problems, chosen=chosen)
    groups = [] if isinstance(metadata, ArrayMetadata) else [root]
    while groups:
        nodes = [group.join(name) for group in groups for name in _names(scan, group, chosen)]
        groups = []
        for node, (metadata, problems) in zip(nodes, on_each(_read, nodes, None), strict=True):
            above = node.path.rpartition("/")[0]
            if isinstance(metadata, ArrayMetadata) and not _is_chosen(scan, above):
                continue
            scan.nodes[node.path] = metadata
            scan.problems += problems
            if not isinstance(metadata, ArrayMetadata):
                groups.append(node)
    scan.nodes = dict(sorted(scan.nodes.items()))
    return scan


def _root(root: NodePath) -> tuple[NodePath, Metadata | None, list[Problem]]:
    """Return the node that is scanned in the store as its hierarchy sees it, and its metadata."""
    root, path = root.current, root.path
    with collect_deviations() as notes:
        try:
            node, metadata = root.find()
            if not (isinstance(metadata, ArrayMetadata) or node.store.capabilities.listable):
                node, metadata = root.find(consolidated="own")
        except StoreError:
            raise
        except ZarrdaskError as error:
            return root, None, [Problem(_document_kind(error), path, path, str(error))]
    return node, metadata, [Problem("note", path, path, text) for text in notes]


def _is_chosen(scan: Scan, group: str) -> bool:
    """Whether a group is a chosen one, by its path."""
    return scan.chosen is None or scan.chosen.accepts(group[len(scan.root.prefix) :])


def _names(scan: Scan, group: NodePath, chosen: GroupFilter | None = None) -> Iterator[str]:
    """Yield the names of the nodes in a group, also of those whose documents can't be read."""
    if chosen is not None:
        below = chosen.below(group.path[len(scan.root.prefix) :])
        if not below.accepts(""):
            yield from (name for name in _names(scan, group) if below.may_have(name))
            return
    if scan.nodes[group.path] is None and not group.store.capabilities.listable:
        return
    try:
        yield from group.names()
    except StoreError:
        # The documents of all members are requested at once. Request them one by one, so that the
        # ones that fail are reported.
        for name in group.store.list_dir(group.prefix)[1]:
            try:
                exists = group.join(name).exists()
            except StoreError:
                exists = True
            if exists:
                yield name


def _read(node: NodePath) -> tuple[Metadata | None, list[Problem]]:
    """Return the metadata of a node, or None, and the problems of its documents."""
    path = node.path
    with collect_deviations() as notes:
        try:
            metadata = node.read()
        except ZarrdaskError as error:
            return None, [Problem(_document_kind(error), path, path, str(error))]
    return metadata, [Problem("note", path, path, text) for text in notes]


def _document_kind(error: ZarrdaskError) -> str:
    """Return the kind of problem that an error of a document is; raise other errors again."""
    if isinstance(error, UnsupportedError):
        return "unsupported"
    if isinstance(error, StoreError):
        return "unreadable"
    if not isinstance(error, ValueError):
        raise error
    return "invalid"


def _check_consolidated(scan: Scan) -> None:
    """Report groups whose consolidated metadata differs from the documents of the nodes."""
    store = scan.base
    if not (scan.root.layout.has_consolidated and store.capabilities.listable):
        return
    for path, metadata in scan.nodes.items():
        if isinstance(metadata, ArrayMetadata) or not _is_chosen(scan, path):
            continue
        try:
            names = _stale_nodes(scan.root.current.at(path))
        except ZarrdaskError as error:
            kind = _document_kind(error)
            kind = kind if kind == "unreadable" else "stale"
            scan.add_problem(kind, path, path, str(error))
            continue
        if names:
            text = ", ".join(name or "/" for name in names[:_MAX_NAMES])
            if len(names) > _MAX_NAMES:
                text += f" and {len(names) - _MAX_NAMES} more"
            message = f"the consolidated metadata differs from the documents of {text}"
            scan.add_problem("stale", path, path, message)


def _stale_nodes(group: NodePath) -> list[str]:
    """Return the paths below a group whose consolidated metadata differs from their documents."""
    names = *detect.all_names(), consolidated.KEY
    documents = {name: group.store.get(group.prefix + name) for name in names}
    _, held = consolidated.split_documents(documents)
    if held is None:
        return []

    def parsed(below: str) -> dict[str, Any]:
        documents = held.documents.get(below, {})
        try:
            return {name: json.loads(held.dump(value)) for name, value in documents.items()}
        except ValueError:
            return {}  # It differs from every document.

    # Consolidated metadata describes one format; there may be documents of another one, too.
    used = {name for members in held.documents.values() for name in members}
    other_format = {
        n for form in formats() if used.isdisjoint(form.documents) for n in form.documents
    }
    stored = {
        below: {name: text for name, text in members.items() if name not in other_format}
        for below, members in group.documents_below().items()
    }
    return [
        below
        for below in sorted({*held.documents, *stored})
        if _canonical(parsed(below)) != _canonical(stored.get(below, {}))
    ]


def _canonical(documents: object) -> str:
    """Return documents as a text that is equal for equal documents."""
    copied = json.loads(json.dumps(documents, default=dict))
    for document in copied.values():
        document.pop(consolidated.MEMBER, None)
    return json.dumps(copied, sort_keys=True)


# --------------------------------------------------------------------------------------------
# Keys


def _note_own_file(scan: Scan, key: str) -> bool:
    """Note a key that this package keeps beside nodes; return whether it is one."""
    above, is_own, name = f"/{key}".partition(_OWN_FILES)
    if is_own:
        scan.own_files.add(f"{above}{_OWN_FILES}{name.partition('/')[0]}"[1:])
    elif f"/{key}".endswith(f"/{PyramidDocument.KEY}"):
        scan.pyramids.append(key)
    else:
        return False
    return True


def _assign_keys(scan: Scan) -> None:
    """Assign each key to the node that it belongs to; report the keys that belong to none."""
    store, arrays = scan.base, dict(scan.arrays())
    indices = {path: array("q") for path in arrays}
    owners: dict[str, str | None] = {}
    is_local, layout = store.capabilities.directories, scan.root.layout
    paths = [scan.root.path] if scan.chosen is None else arrays
    prefixes = [scan.root.at(path).prefix for path in paths]
    for key, is_directory in (each for prefix in prefixes for each in _keys(scan, prefix)):
        if _note_own_file(scan, key):
            continue
        folder = key.rpartition("/")[0]
        if folder not in owners:
            owners[folder] = _owner(scan, folder)
        owner = owners[folder]
        if owner is None:
            continue
        rest = key[len(scan.root.at(owner).prefix) :]
        chunks = arrays.get(owner)
        index = None
        if chunks is not None:
            index = chunks.metadata.keys.index(rest, len(chunks.metadata.shape))
        if is_directory and (chunks is None or index is None):
            continue
        if chunks is not None and index is not None:
            # With a storage transformer, the numbers of a key mean something else; see `_rows`.
            inside = all(map(int.__lt__, index, chunks.metadata.grid.counts))
            if inside or chunks.metadata.transformers:
                indices[owner].extend(index)
            else:
                scan.add_problem("extra", owner, key, "a chunk outside the array")
        elif chunks is not None and is_local and (advice := in_the_way(chunks.metadata, rest)):
            scan.add_problem("unreadable", owner, key, advice)
        # Hierarchies of the draft keep documents apart from chunks: see `_find_keys_outside`.
        elif not (rest in _DOCUMENTS or rest.rpartition("/")[2] in (layout.documents or ())):
            scan.add_problem("extra", owner, key, _NO_OWNER)
    for path, chunks in arrays.items():
        scan.units[path] = _rows(chunks, indices[path]) if store.capabilities.listable else None
    _find_keys_outside(scan)


def _keys(scan: Scan, prefix: str) -> Iterator[tuple[str, bool]]:
    """Yield each key below a prefix, in local stores each directory; and whether it is one."""
    store = scan.base
    if type(store) is LocalStore:
        yield from _local_entries(scan, store, prefix)
    elif store.capabilities.listable:
        yield from ((key, False) for key in store.list_prefix(prefix))
        inner = stored_in(store)
        if inner is not store and type(inner) is LocalStore:
            start = scan.root.layout.real(f"{prefix}x").removesuffix("x")
            for key, is_directory in _local_entries(scan, inner, start):
                if is_directory:
                    yield prefix + key.removeprefix(start), True


def _local_entries(scan: Scan, store: LocalStore, prefix: str) -> Iterator[tuple[str, bool]]:
    """Yield the keys and directories below a prefix; report directories that can't be listed."""
    pending = [prefix]
    while pending:
        folder = pending.pop()
        if folder != prefix:
            yield folder.removesuffix("/"), True
        try:
            keys, prefixes, loops = store.list_entries(folder)
        except StoreError as error:
            scan.problems.append(Problem("unreadable", scan.root.path, folder, str(error)))
            continue
        yield from ((folder + name, False) for name in keys)
        yield from ((folder + name, True) for name in loops)
        pending += [f"{folder}{name}/" for name in reversed(prefixes)]


def _owner(scan: Scan, folder: str) -> str | None:
    """Return the deepest node that contains a folder; None if its metadata is not valid."""
    names = folder.split("/") if folder else []
    for count in range(len(names), -1, -1):
        path = "/".join(names[:count])
        if path in scan.nodes:
            return None if scan.nodes[path] is None else path
    return None


def _rows(chunks: StoredChunks, indices: "array[int]") -> np.ndarray:
    """Return the indices of stored units, a row each."""
    ndim = len(chunks.metadata.shape)
    if not ndim and not chunks.metadata.transformers:
        is_stored = chunks.units.get_range(chunks.key(()), 0, 1) is not None
        return np.empty((int(is_stored), 0), np.int64)
    rows = [*StoredUnits(chunks).indices()] if chunks.metadata.transformers else indices
    return np.array(rows, np.int64).reshape(-1, ndim)


def _find_keys_outside(scan: Scan) -> None:
    """Report the keys of a draft hierarchy that are neither documents nor chunks."""
    layout, store = scan.root.layout, stored_in(scan.base)
    base = layout.base
    is_listed = scan.chosen is None and store.capabilities.listable
    if base is None or base != scan.root.prefix or not is_listed:
        return
    data = layout.real(f"{base}x").removesuffix("x")
    documents = {
        layout.real(scan.root.at(path).prefix + name)
        for path in scan.nodes
        for name in (ARRAY, GROUP)
    }
    # zarr-python stores consolidated metadata of a draft hierarchy as the document of a group.
    documents |= {f"{base}zarr.json", layout.real(f"{base}consolidated/{GROUP}")}
    for key in store.list_prefix(base):
        is_known = key in documents or key.endswith(consolidated.KEY) or _OWN_FILES in f"/{key}"
        if not is_known and not key.startswith(data):
            scan.problems.append(Problem("extra", scan.root.path, key, _NO_OWNER))


# --------------------------------------------------------------------------------------------
# Interrupted writers


def _find_partial_writes(scan: Scan) -> None:
    """Report files and directories that a writer left, or is still writing."""
    for key in sorted(scan.own_files):
        scan.add_problem("partial", scan.root.path, key, _LEFT_BY_WRITER)
    store, directory = scan.root.store, scan.root.store.identity.directory
    is_local = directory is not None and store.capabilities.directories
    if not is_local or scan.chosen is not None:
        return
    below = scan.root.path if scan.root.layout.has_directories else ""
    for path in sorted(_temporary_paths(f"{directory}/{below}".rstrip("/"))):
        key = os.path.relpath(path, directory).replace(os.sep, "/")
        scan.problems.append(Problem("partial", scan.root.path, key, _LEFT_BY_WRITER))


def _temporary_paths(root: str) -> Iterator[str]:
    """Yield the temporary files and directories in a directory, and directories beside it."""
    parent = os.path.dirname(root)
    try:
        names = os.listdir(parent)
    except OSError:
        names = []  # the directory above the store may be private
    places = (os.path.join(parent, name) for name in names if is_temporary(name))
    yield from filter(os.path.isdir, places)
    for folder, folders, files in os.walk(root):
        yield from (os.path.join(folder, n) for n in (*folders, *files) if is_temporary(n))
        folders[:] = [name for name in folders if not is_temporary(name)]
