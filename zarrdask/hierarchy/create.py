"""Create nodes: check that it is possible, then write the documents in a safe order."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar

from zarrdask import config
from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.chunks.stored import StoredChunks
from zarrdask.errors import NodeExistsError, ZarrdaskError
from zarrdask.hierarchy import draft
from zarrdask.hierarchy.change import changing, remove_keys
from zarrdask.hierarchy.diagnose import array_around, below_array_error, check_around
from zarrdask.hierarchy.find import node_exists, node_of, read_documents
from zarrdask.hierarchy.journal import erase_beside, is_begun, record_key
from zarrdask.hierarchy.members import check_new_path, documents_below
from zarrdask.hierarchy.path import (
    StorePath,
    ancestors,
    exists_error,
    join_path,
    key_prefix,
    node_location,
)
from zarrdask.hierarchy.resize import lock_node
from zarrdask.metadata import consolidated, detect
from zarrdask.metadata.detect import ANY, Search
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.runtime.threads import on_each
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import ConsolidatedStore
from zarrdask.storage.prefetched import PrefetchedStore
from zarrdask.storage.unchanged import change_if_unchanged
from zarrdask.storage.v3_draft import DraftStore

T = TypeVar("T")
#: Which nodes a new one may replace: none, those with the same documents, or any.
Replace = Literal["never", "same", "always"]


def is_draft_node(store: Store, metadata: Metadata) -> bool:
    """Whether a new node belongs to a hierarchy of the v3 draft."""
    return isinstance(store, DraftStore) or draft.is_draft(metadata.zarr_format)


def check_creation(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> Store:
    """Check that `create_node` can create a node, without writing anything; return its result."""
    detect.render(metadata)
    if is_draft_node(store, metadata):
        return draft.prepare(StorePath(store, path), metadata, overwrite=overwrite)[0]
    _check(store, path, metadata, overwrite=overwrite)
    return store


def create_node(
    store: Store, path: str, metadata: Metadata, *, overwrite: bool, is_recorded: bool = False
) -> Store:
    """Write a new node, and the groups above it that don't exist (conformance A-48, C-6).

    With `overwrite`, an existing node is removed first, with everything below it. What an
    interrupted rewrite has left is removed, too, unless `is_recorded`: then the record is that of
    the caller, who removes it when the nodes below are complete. The result is the store as the
    node's hierarchy sees it.
    """
    documents = detect.render(metadata)  # before anything is erased: rendering may fail
    prefix, exists = key_prefix(path), overwrite
    missing_groups: list[str] = []
    view: Store
    with store.batch():
        if is_draft_node(store, metadata):
            store = view = draft.begin(StorePath(store, path), metadata, overwrite=overwrite)
        else:
            view = prefetched(store, path)
            missing_groups, exists = _check(view, path, metadata, overwrite=overwrite)
        with changing(view, path, whole=True) as real:
            for group in missing_groups:
                _put_group(real, group, metadata)
            real.tidy(prefix)
            # Only nodes are erased: a directory with other files is left alone.
            if exists:
                remove_keys(real, path)
            elif not is_recorded and ((begun := is_begun(StorePath(real, path))) or overwrite):
                if isinstance(metadata, ArrayMetadata):
                    erase_leftovers(StoredChunks(real, prefix, metadata))
                if begun:
                    erase_beside(StorePath(real, path))
            put = put_documents if overwrite else put_new_documents
            put(real, path, documents)
    return store


def prefetched(store: Store, path: str, *, listed: bool = False) -> Store:
    """Return a store with all that the creation of a node looks at, read by one round of requests.

    It is the store itself if requests take no time, or if that has been done. With `listed`, the
    node's directory is listed, too, as for the creation of its members.
    """
    if not store.capabilities.has_latency or isinstance(store, ConsolidatedStore | PrefetchedStore):
        return store
    names = (*detect.NAMES, consolidated.KEY)
    keys = [key_prefix(each) + name for each in (*ancestors(path), path) for name in names]
    keys.append(record_key(StorePath(store, path)))
    listing = key_prefix(path) if listed and store.capabilities.listable else None
    return PrefetchedStore(store, keys, listing, None if path else partial(array_around, store))


def _check(
    store: Store, path: str, metadata: Metadata, *, overwrite: bool
) -> tuple[list[str], bool]:
    """Return the paths above a node where there is no group, and whether the node exists."""
    check_new_path(path, metadata.zarr_format)
    base, parents = store.current, ancestors(path)
    *above, own = read_documents(base, [*parents, path], ANY.rounds(base))
    missing_groups = _missing_groups(base, path, above)
    if missing_groups == parents:
        check_around(store)
    exists = detect.is_node(own)
    if exists and not overwrite:
        raise exists_error(StorePath(store, path))
    if exists:
        base.check_erasable([key_prefix(path)])
    return missing_groups, exists


def _missing_groups(store: Store, path: str, above: list[Documents] | None = None) -> list[str]:
    """Return the paths above a node where there is no group; if there is an array, raise an error.

    `above` are the documents there, if they have been read.
    """
    parents, missing = ancestors(path), []
    if above is None:
        above = read_documents(store, parents, ANY.rounds(store)) if parents else []
    for parent, documents in zip(parents, above, strict=True):
        metadata = node_of(StorePath(store, parent), documents, None)
        if isinstance(metadata, ArrayMetadata):
            raise below_array_error(node_location(store, parent))
        if metadata is None:
            missing.append(parent)
    return missing


def create_parents(store: Store, path: str, metadata: Metadata) -> None:
    """Write the groups above a node that are missing, in the format of the node."""
    missing = _missing_groups(store.current, path)
    if missing:
        with changing(store, missing[0], whole=True) as real:
            for parent in missing:
                _put_group(real, parent, metadata)


def _put_group(store: Store, path: str, below: Metadata) -> None:
    """Write a group above a new node, unless another writer has done so meanwhile."""
    try:
        put_new_documents(store, path, detect.render(GroupMetadata(below.zarr_format)))
    except NodeExistsError:
        _missing_groups(store, join_path(path, "member"))  # an error if that node is an array


def put_documents(store: Store, path: str, documents: Documents) -> None:
    """Write a node's documents, the one that makes it a node last."""
    for name, value in _in_order(documents):
        store.set(key_prefix(path) + name, value)


def put_new_documents(store: Store, path: str, documents: Documents) -> None:
    """Write the documents of a node that does not exist: of several writers, only one succeeds."""
    prefix, late = key_prefix(path), []
    for name, value in _in_order(documents):
        if store.create(prefix + name, value):
            continue
        if name in detect.NODE_NAMES:
            raise exists_error(StorePath(store, path))
        # It is left from an erased node, or from another writer that may still be the first.
        late.append((name, value))
    for name, value in late:
        store.set(prefix + name, value)


def _in_order(documents: Documents) -> list[tuple[str, bytes]]:
    names = sorted(documents, key=detect.NODE_NAMES.__contains__)
    return [(name, value) for name in names if (value := documents[name]) is not None]


def create_members(
    store: Store,
    group: str,
    members: Mapping[str, Metadata],
    *,
    has_chunks: bool = False,
    keep: str | None = None,
) -> None:
    """Write new nodes below a group that exists: the documents of all at the same time.

    `members` has the nodes by their paths from the group. Names that v3 reserves are accepted:
    xarray stores nameless variables under such names. With `has_chunks`, the chunks are there
    already, and this may be done again; otherwise chunks that are found are left from former
    arrays, and erased. `keep` is that of `changing`.

    If there is a node already at one of the paths, nothing is written if that is known beforehand,
    and what another writer created meanwhile stays.
    """
    if not members:
        return
    paths = {join_path(group, name): metadata for name, metadata in members.items()}
    documents = {path: detect.render(metadata) for path, metadata in paths.items()}
    if not has_chunks:
        clear_members(store, group, members)
    with changing(store, group, whole=False, keep=keep) as real:
        at_once(real, lambda item: _put_member(real, *item, again=has_chunks), documents.items())


def check_members(
    store: Store, group: str, members: Mapping[str, Metadata], replace: Replace = "never"
) -> list[tuple[str, Metadata]]:
    """Check that there are no nodes at some paths in a group; return those with anything below.

    Nodes that may be replaced are accepted. The group is listed once: what it does not have
    requires no other request.
    """
    if store.capabilities.listable and members:
        below = set(store.list_dir(key_prefix(group))[1])
        members = {name: m for name, m in members.items() if name.partition("/")[0] in below}
    paths = [(join_path(group, name), metadata) for name, metadata in members.items()]
    at_once(store, lambda item: _check_free(store, *item, replace=replace), paths)
    return paths


def clear_members(
    store: Store, group: str, members: Mapping[str, Metadata], replace: Replace = "never"
) -> None:
    """Check that there are no nodes at some paths in a group, and erase what former ones left.

    Nodes that may be replaced are erased, too: of a group only its documents.
    """
    paths = check_members(store, group, members, replace)
    at_once(store, lambda item: _clear(store, *item, is_replaced=replace != "never"), paths)


def _check_free(store: Store, path: str, metadata: Metadata, *, replace: Replace) -> None:
    if isinstance(store, DraftStore):
        draft.prepare(StorePath(store, path), metadata, overwrite=False)
    elif replace != "always" and node_exists(StorePath(store, path)):
        is_same = replace == "same" and _is_stored(store, path, detect.render(metadata))
        if not is_same:
            raise exists_error(StorePath(store, path))


def _is_stored(store: Store, path: str, documents: Documents) -> bool:
    """Whether a node has some documents, as they are."""
    return all(store.get(key_prefix(path) + name) == value for name, value in documents.items())


def _clear(store: Store, path: str, metadata: Metadata, *, is_replaced: bool) -> None:
    prefix = key_prefix(path)
    store.tidy(prefix)
    if is_replaced and not isinstance(store, DraftStore):
        # Documents are erased first: if this is cut short, the rest is not a node.
        store.erase_values([prefix + name for name in detect.names(store)])
    if isinstance(metadata, ArrayMetadata):
        erase_leftovers(StoredChunks(store, prefix, metadata))
    if is_begun(StorePath(store, path)):
        erase_beside(StorePath(store, path))


def _put_member(store: Store, path: str, documents: Documents, *, again: bool) -> None:
    try:
        put_new_documents(store, path, documents)
    except NodeExistsError:
        if not (again and _is_stored(store, path, documents)):
            raise


def at_once(store: Store, work: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    """Do work that consists of requests on each item: at the same time if these have latency."""
    items = list(items)
    is_single = not store.capabilities.has_latency or len(items) == 1
    return on_each(work, items, 1 if is_single else config.get("requests"))


def write_consolidated(
    store: Store,
    path: str,
    zarr_format: ZarrFormat,
    *,
    group: GroupMetadata | None = None,
    nodes: Iterable[str] | None = None,
) -> None:
    """Write a group's consolidated metadata (conformance A-67, C-78).

    If the store has `compare_and_swap`, the documents are read again if another writer has
    changed the consolidated metadata, or the group in v3: nobody's changes are lost.

    `group` is new metadata of the group, to be written, too. For a dataset of xarray, `nodes` are
    paths that are probably below the group, to read all of them at once; then members whose names
    v3 reserves are included.
    """
    prefix, own = key_prefix(path), {} if group is None else detect.render(group)
    search = Search(zarr_format)

    def write(target: Store) -> None:
        if target is not store:
            target.get(prefix + consolidated.DOCUMENTS[zarr_format])  # for the condition of `set`
        source = store if nodes is None else _prefetched_below(store, path, search, nodes)
        try:
            entries = dict(
                documents_below(StorePath(source, path), search, reserved=nodes is not None)
            )
            if group is not None:
                present = {name: data for name, data in own.items() if data is not None}
                entries[""] = consolidated.parse_documents("", present)
            documents = consolidated.render(zarr_format, entries)
        except ZarrdaskError as error:
            raise error.within(node_location(store, path)) from error.__cause__
        with target.batch():
            for name, value in (own | documents).items():  # in v3 all is in one document
                if value is not None:
                    target.set(prefix + name, value)

    # Of two writers the later one must see what the earlier one wrote, also the group's attributes.
    with lock_node(StorePath(store, path), "documents"):
        change_if_unchanged(store, write)


def _prefetched_below(store: Store, path: str, search: Search, nodes: Iterable[str]) -> Store:
    if not store.capabilities.has_latency or not store.capabilities.listable:
        return store
    names = search.rounds(store)[0]
    keys = [key_prefix(each) + name for each in (path, *nodes) for name in names]
    return PrefetchedStore(store, keys, key_prefix(path))
