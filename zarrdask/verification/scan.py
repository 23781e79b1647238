"""What there is in a hierarchy: nodes, their stored units, and what belongs to none of them."""

import json
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from zarrdask.chunks.inventory import IN_THE_WAY, is_in_the_way, local_store, stored_units
from zarrdask.chunks.stored import StoredChunks
from zarrdask.compliance import collecting
from zarrdask.errors import StoreError, UnsupportedError, ZarrdaskError
from zarrdask.hierarchy.find import find_node, node_exists, read_node
from zarrdask.hierarchy.members import documents_below, member_names
from zarrdask.hierarchy.path import join_path, key_prefix
from zarrdask.metadata import consolidated, detect, v2
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.runtime.threads import on_each
from zarrdask.storage.atomic import is_temporary
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.storage.local import LocalStore
from zarrdask.storage.v3_draft import ARRAY, GROUP, DraftStore, real_key
from zarrdask.verification.check import Problem

#: What a node may have beside its documents; netCDF has its own.
_BESIDE = (consolidated.KEY, ".nczarr", ".nczarray", ".nczattrs", ".nczgroup")
_DOCUMENTS = frozenset((*detect.NAMES, ARRAY, GROUP, *_BESIDE))
#: How names begin of what the package itself keeps beside nodes.
_OWN = "/.zarrdask-"
_LEFT = "a write that was cut short left it, or it is still going on"
#: Names that are told of a document that differs.
_FEW = 3


@dataclass
class Census:
    """What there is at and below a path.

    Attributes
    ----------
    store : Store
        As the hierarchy sees it.
    path : str
        Of the node that was asked for.
    nodes : dict
        By path: the metadata, or None if it is not valid.
    units : dict
        Of each array by path: the indices of its stored units, a row each; None if the store
        can't tell.
    problems : list of Problem
    """

    store: Store
    path: str
    nodes: dict[str, Metadata | None] = field(default_factory=dict)
    units: dict[str, np.ndarray | None] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    #: What the package keeps beside nodes while they are written: one key of each.
    left: dict[str, str] = field(default_factory=dict)

    def arrays(self) -> Iterator[tuple[str, StoredChunks]]:
        """Yield path and units of each array that can be read."""
        for path, found in self.nodes.items():
            if isinstance(found, ArrayMetadata):
                yield path, StoredChunks(plain(self.store), key_prefix(path), found)

    def below(self) -> dict[str, Metadata | None]:
        """Return the nodes by their paths from the one that was asked for."""
        start = len(key_prefix(self.path))
        return {path[start:]: found for path, found in self.nodes.items()}

    def tell(self, kind: str, path: str, key: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(kind, path, real_key(plain(self.store), key), message))


def take_census(store: Store, path: str) -> Census:
    """Return what there is at and below a path.

    Raises
    ------
    NodeNotFoundError
        If nothing is there.
    UnsupportedError
        If a group is, and the store can't be listed.
    StoreError
        If the store fails.
    """
    census = find_nodes(store, path)
    _check_consolidated(census)
    _sort_keys(census)
    _find_partial(census)
    return census


# --------------------------------------------------------------------------------------------
# Nodes


def find_nodes(store: Store, path: str) -> Census:
    """Return the nodes at and below a path, and what is wrong with their documents.

    Raises
    ------
    NodeNotFoundError, UnsupportedError, StoreError
        As `take_census`.
    """
    store, metadata, problems = _root(store, path)
    census = Census(store, path, {path: metadata}, problems=problems)
    groups = [] if isinstance(metadata, ArrayMetadata) else [path]
    while groups:
        names = [(group, name) for group in groups for name in _names(census, group)]
        paths = [join_path(group, name) for group, name in names]
        groups = []
        for below, (found, told) in zip(
            paths, on_each(lambda each: _read(store, each), paths, None), strict=True
        ):
            census.nodes[below] = found
            census.problems += told
            if not isinstance(found, ArrayMetadata):
                groups.append(below)
    census.nodes = dict(sorted(census.nodes.items()))
    return census


def _root(store: Store, path: str) -> tuple[Store, Metadata | None, list[Problem]]:
    """Return the node that was asked for, and the store as its hierarchy sees it."""
    with collecting() as notes:
        try:
            view, found = find_node(store, path)
            if not (isinstance(found, ArrayMetadata) or view.listable):
                view, found = find_node(store, path, consolidated="own")
        except ZarrdaskError as error:
            if _kind(error) is None or isinstance(error, StoreError):
                raise
            return plain(store), None, [_invalid(path, error)]
    return view, found, [Problem("note", path, path, text) for text in notes]


def _names(census: Census, group: str) -> list[str]:
    if census.nodes[group] is None and not census.store.listable:
        return []
    try:
        return member_names(census.store, group)
    except StoreError:
        # The documents of all members are asked for together: one that fails is to be reported.
        _, names = census.store.list_dir(key_prefix(group))
        return [name for name in names if _may_be_member(census.store, group, name)]


def _may_be_member(store: Store, group: str, name: str) -> bool:
    try:
        return node_exists(store, join_path(group, name))
    except StoreError:
        return True


def _read(store: Store, path: str) -> tuple[Metadata | None, list[Problem]]:
    """Return a node, or None, and what is to be said of its documents."""
    with collecting() as notes:
        try:
            found = read_node(store, path)
        except ZarrdaskError as error:
            if _kind(error) is None:
                raise
            return None, [_invalid(path, error)]
    return found, [Problem("note", path, path, text) for text in notes]


def _kind(error: ZarrdaskError) -> str | None:
    """Return what sort of problem an error tells of, if it tells of the documents."""
    if isinstance(error, UnsupportedError):
        return "unsupported"
    if isinstance(error, StoreError):
        return "unreadable"
    return "invalid" if isinstance(error, ValueError) else None


def _invalid(path: str, error: ZarrdaskError) -> Problem:
    return Problem(_kind(error) or "invalid", path, path, str(error))


def _check_consolidated(census: Census) -> None:
    """Note groups whose consolidated metadata are not what the nodes' own documents tell."""
    store = plain(census.store)
    if isinstance(store, DraftStore) or not store.listable:
        return
    for path, found in census.nodes.items():
        if not isinstance(found, ArrayMetadata):
            try:
                names = _stale(store, path)
            except ZarrdaskError as error:
                if _kind(error) is None:
                    raise
                kind = "unreadable" if isinstance(error, StoreError) else "stale"
                census.tell(kind, path, path, str(error))
                continue
            if names:
                more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
                text = ", ".join(name or "/" for name in names[:_FEW]) + more
                census.tell("stale", path, path, f"the consolidated metadata differ of {text}")


def _stale(store: Store, path: str) -> list[str]:
    """Return the paths of which consolidated metadata tell something else."""
    prefix = key_prefix(path)
    own = {name: store.get(prefix + name) for name in (*detect.NAMES, consolidated.KEY)}
    _, held = consolidated.take(own)
    if held is None:
        return []
    # Documents of another format may stand beside those that are told of.
    names = {name for documents in held.documents.values() for name in documents}
    beside = set(detect.NAMES) - ({"zarr.json"} if "zarr.json" in names else {*v2.NAMES})
    there = {
        below: {name: found for name, found in documents.items() if name not in beside}
        for below, documents in documents_below(store, path).items()
    }
    return [
        below
        for below in sorted({*held.documents, *there})
        if _plain(held.documents.get(below, {})) != _plain(there.get(below, {}))
    ]


def _plain(documents: object) -> str:
    """Return documents as a text that is the same for the same documents."""
    found = json.loads(json.dumps(documents, default=dict))
    for document in found.values():
        document.pop(consolidated.MEMBER, None)
    return json.dumps(found, sort_keys=True)


# --------------------------------------------------------------------------------------------
# Keys


def _sort_keys(census: Census) -> None:
    """Find out which units are stored, and which keys belong to nothing."""
    store, arrays = plain(census.store), dict(census.arrays())
    found = {path: array("q") for path in arrays}
    owners: dict[str, str | None] = {}
    is_local = local_store(store) is not None
    for key, is_directory in _keys(census):
        if _OWN in f"/{key}":
            census.left.setdefault(_begin(key), key)
            continue
        folder = key.rpartition("/")[0]
        if folder not in owners:
            owners[folder] = _owner(census, folder)
        owner = owners[folder]
        if owner is None:
            continue
        rest = key[len(key_prefix(owner)) :]
        chunks = arrays.get(owner)
        index = None if chunks is None else _index(chunks, rest)
        if is_directory and (chunks is None or index is None):
            continue
        if chunks is not None and index is not None:
            if _is_inside(chunks, index):
                found[owner].extend(index if not chunks.metadata.transformers else ())
            else:
                census.tell("extra", owner, key, "a chunk outside the array")
        elif chunks is not None and is_local and is_in_the_way(chunks.metadata, rest):
            census.tell("unreadable", owner, key, IN_THE_WAY)
        elif rest not in _DOCUMENTS and not _is_document(store, rest):
            census.tell("extra", owner, key, "it belongs to no array or group")
    for path, chunks in arrays.items():
        census.units[path] = _rows(chunks, found[path]) if store.listable else None
    _find_strays(census)


def _begin(key: str) -> str:
    """Return a key up to the directory that the package keeps something in."""
    names = key.split("/")
    at = next(at for at, name in enumerate(names) if name.startswith(_OWN[1:]))
    return "/".join(names[: at + 1])


def _keys(census: Census) -> Iterator[tuple[str, bool]]:
    """Yield each key, and in a local directory also the directories; whether it is one."""
    store, prefix = plain(census.store), key_prefix(census.path)
    if type(store) is LocalStore:
        yield from _entries(census, store, prefix)
    elif store.listable:
        yield from ((key, False) for key in store.list_prefix(prefix))
        if isinstance(store, DraftStore) and type(store.inner) is LocalStore:
            start = store.real(f"{prefix}x").removesuffix("x")
            for key, is_directory in _entries(census, store.inner, start):
                if is_directory:
                    yield prefix + key.removeprefix(start), True


def _entries(census: Census, store: LocalStore, prefix: str) -> Iterator[tuple[str, bool]]:
    """Yield the keys and directories below a prefix; what can't be listed is a problem."""
    try:
        keys, prefixes = store.list_dir(prefix)
    except StoreError as error:
        census.problems.append(Problem("unreadable", census.path, prefix, str(error)))
        return
    yield from ((prefix + name, False) for name in keys)
    for name in prefixes:
        yield prefix + name, True
        if not store.is_loop(prefix + name):
            yield from _entries(census, store, f"{prefix}{name}/")


def _owner(census: Census, folder: str) -> str | None:
    """Return the deepest node that a key in a folder may belong to; None if that is not valid."""
    names = folder.split("/") if folder else []
    for count in range(len(names), -1, -1):
        path = "/".join(names[:count])
        if path in census.nodes:
            return None if census.nodes[path] is None else path
    return None


def _is_document(store: Store, rest: str) -> bool:
    # Of the draft, where documents have a place of their own: see `_find_strays`.
    return isinstance(store, DraftStore) and rest.rpartition("/")[2] in (ARRAY, GROUP)


def _index(chunks: StoredChunks, rest: str) -> tuple[int, ...] | None:
    return chunks.metadata.keys.index(rest, len(chunks.metadata.shape))


def _is_inside(chunks: StoredChunks, index: tuple[int, ...]) -> bool:
    # A storage transformer may keep several units in one value: another number is no error.
    counts = chunks.metadata.grid.counts
    return bool(chunks.metadata.transformers) or all(map(int.__lt__, index, counts))


def _rows(chunks: StoredChunks, found: "array[int]") -> np.ndarray:
    """Return the indices of stored units, a row each."""
    ndim = len(chunks.metadata.shape)
    if chunks.metadata.transformers:
        return np.array([*stored_units(chunks)], np.int64).reshape(-1, ndim)
    if not ndim:
        there = chunks.units.get_range(chunks.key(()), 0, 1) is not None
        return np.empty((int(there), 0), np.int64)
    return np.frombuffer(found, np.int64).reshape(-1, ndim) if found else np.empty((0, ndim), "i8")


def _find_strays(census: Census) -> None:
    """Note what is in a hierarchy of the draft beside its documents and chunks."""
    view = plain(census.store)
    if (
        not isinstance(view, DraftStore)
        or key_prefix(census.path) != view.base
        or not view.listable
    ):
        return
    data = view.real(f"{view.base}x").removesuffix("x")
    known = {view.real(key_prefix(p) + name) for p in census.nodes for name in (ARRAY, GROUP)}
    # All documents in one, as zarr-python keeps them, stand in what looks like a group.
    known |= {f"{view.base}zarr.json", view.real(f"{view.base}consolidated/{GROUP}")}
    for key in view.inner.list_prefix(view.base):
        told = key in known or key.endswith(consolidated.KEY) or _OWN in f"/{key}"
        if not told and not key.startswith(data):
            text = "it belongs to no array or group"
            census.problems.append(Problem("extra", census.path, key, text))


# --------------------------------------------------------------------------------------------
# What writers left


def _find_partial(census: Census) -> None:
    """Note files and directories that were being written in a local directory, or are."""
    for key in census.left:
        census.tell("partial", census.path, key, _LEFT)
    store = local_store(census.store)
    if store is None:
        return
    root = store.path("" if isinstance(plain(census.store), DraftStore) else census.path)
    root = root.rstrip("/")
    for found in sorted(_partial(root)):
        key = os.path.relpath(found, store.root).replace(os.sep, "/")
        census.problems.append(Problem("partial", census.path, key, _LEFT))


def _partial(root: str) -> Iterator[str]:
    parent = os.path.dirname(root)
    try:
        beside = os.listdir(parent)
    except OSError:
        beside = []  # who may see the store need not see what is around it
    places = (os.path.join(parent, name) for name in beside if is_temporary(name))
    yield from filter(os.path.isdir, places)
    for folder, folders, files in os.walk(root):
        yield from (os.path.join(folder, n) for n in (*folders, *files) if is_temporary(n))
        folders[:] = [name for name in folders if not is_temporary(name)]
