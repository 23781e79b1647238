"""Making nodes: what must be so before, and in what order it is done."""

from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.chunks.stored import StoredChunks
from zarrdask.errors import NodeExistsError, ZarrdaskError
from zarrdask.hierarchy import draft
from zarrdask.hierarchy.change import remove_keys
from zarrdask.hierarchy.consolidated import ancestors, changing
from zarrdask.hierarchy.find import node_exists, read_nodes
from zarrdask.hierarchy.journal import is_begun
from zarrdask.hierarchy.members import check_new_path, documents_below
from zarrdask.hierarchy.path import key_prefix, node_location
from zarrdask.metadata import consolidated, detect
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.storage.v3_draft import DraftStore


def is_draft_node(store: Store, metadata: Metadata) -> bool:
    """Whether a new node will be in a hierarchy of the v3 draft."""
    return isinstance(store, DraftStore) or draft.is_draft(metadata.zarr_format)


def check_creation(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> Store:
    """Check that a node can be created; nothing is written.

    Returns
    -------
    Store
        The store as the hierarchy that the node is to be in will see it.

    Raises
    ------
    NodeExistsError
        As `create_node`.
    """
    detect.render(metadata)
    if is_draft_node(store, metadata):
        return draft.prepare(plain(store), path, metadata, overwrite=overwrite)[0]
    _checked(store, path, metadata, overwrite=overwrite)
    return store


def create_node(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> Store:
    """Write a new node, and groups above it where there are none (conformance A-48, C-6).

    Returns
    -------
    Store
        The store as the hierarchy that the node is in sees it.

    Raises
    ------
    NodeExistsError
        If there is a node and `overwrite` is false, or an array stands above.
    """
    with store.batch():
        return _create(store, path, metadata, overwrite=overwrite)


def _create(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> Store:
    if is_draft_node(store, metadata):
        if isinstance(metadata, ArrayMetadata) and is_begun(plain(store), key_prefix(path)):
            view = check_creation(store, path, metadata, overwrite=overwrite)
            erase_leftovers(StoredChunks(view, key_prefix(path), metadata))
        return draft.create(plain(store), path, metadata, overwrite=overwrite)
    documents = detect.render(metadata)  # so that what can't be written fails before erasing
    missing, there = _checked(store, path, metadata, overwrite=overwrite)
    with changing(store, path, whole=True) as real:
        for parent in missing:
            _put_group(real, parent, metadata)
        real.tidy(key_prefix(path))
        # Only what is a node is erased: a directory of other things is not ours to empty.
        if there:
            remove_keys(real, path)
        elif isinstance(metadata, ArrayMetadata) and (
            overwrite or is_begun(real, key_prefix(path))
        ):
            erase_leftovers(StoredChunks(real, key_prefix(path), metadata))
        if overwrite:
            put_documents(real, path, documents)
        else:
            put_new_documents(real, path, documents)
    return store


def _checked(
    store: Store, path: str, metadata: Metadata, *, overwrite: bool
) -> tuple[list[str], bool]:
    """Return the paths above at which there is no group, and whether there is a node already."""
    check_new_path(path, metadata.zarr_format)
    missing = _missing_parents(plain(store), path)
    there = node_exists(plain(store), path)
    if there and not overwrite:
        raise exists_error(store, path)
    if there:
        plain(store).check_erasable([key_prefix(path)])
    return missing, there


def _missing_parents(store: Store, path: str) -> list[str]:
    parents = ancestors(path)
    missing = []
    for parent, found in zip(parents, read_nodes(store, parents), strict=True):
        if isinstance(found, ArrayMetadata):
            raise NodeExistsError(
                "an array can't hold other nodes", key=node_location(store, parent)
            )
        if found is None:
            missing.append(parent)
    return missing


def create_parents(store: Store, path: str, metadata: Metadata) -> None:
    """Write the groups above a node that are missing, in the format of the node.

    Raises
    ------
    NodeExistsError
        If an array stands above the node.
    """
    missing = _missing_parents(plain(store), path)
    if missing:
        with changing(store, missing[0], whole=True) as real:
            for parent in missing:
                _put_group(real, parent, metadata)


def _put_group(store: Store, path: str, below: Metadata) -> None:
    """Write a group above a new node, unless another writer did so meanwhile."""
    try:
        put_new_documents(store, path, detect.render(GroupMetadata(below.zarr_format)))
    except NodeExistsError:
        _missing_parents(store, f"{path}/x" if path else "x")  # or it is an array


def put_documents(store: Store, path: str, documents: Documents) -> None:
    """Write a node's documents, those last that make it a node."""
    for name, value in _in_order(documents):
        store.set(key_prefix(path) + name, value)


def put_new_documents(store: Store, path: str, documents: Documents) -> None:
    """Write a node's documents where there is none: of several writers, one does.

    Raises
    ------
    NodeExistsError
        If another one did so first: what that one wrote is as it was.
    """
    prefix, late = key_prefix(path), []
    for name, value in _in_order(documents):
        if store.create(prefix + name, value):
            continue
        if name in detect.CHILD_NAMES:
            raise exists_error(store, path)
        # It is left from a node that was here, or of another writer, who may yet be the one.
        late.append((name, value))
    for name, value in late:
        store.set(prefix + name, value)


def _in_order(documents: Documents) -> list[tuple[str, bytes]]:
    names = sorted(documents, key=detect.CHILD_NAMES.__contains__)
    return [(name, value) for name in names if (value := documents[name]) is not None]


def exists_error(store: Store, path: str) -> NodeExistsError:
    """Return the error for a place where there is a node."""
    return NodeExistsError(
        "there is an array or group here already; overwrite=True replaces it",
        key=node_location(store, path),
    )


def write_consolidated(store: Store, path: str, zarr_format: ZarrFormat) -> None:
    """Write a group's consolidated metadata (conformance A-67, C-78).

    Raises
    ------
    MetadataError
        If a document is not JSON, or of another format than the group.
    UnsupportedError
        If the store can't be listed.
    """
    try:
        entries = documents_below(store, path)
        documents = consolidated.render(zarr_format, entries)
    except ZarrdaskError as error:
        raise error.within(node_location(store, path)) from error.__cause__
    with store.batch():
        for name, value in documents.items():
            store.set(key_prefix(path) + name, value)
