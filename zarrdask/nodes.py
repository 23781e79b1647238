"""Making nodes: what must be so before, and in what order it is done."""

from zarrdask import drafts, hierarchy
from zarrdask.chunkio import Chunks
from zarrdask.consolidation import ancestors, changing
from zarrdask.errors import NodeExistsError, ZarrdaskError
from zarrdask.formats import consolidated, detect
from zarrdask.formats.base import Documents
from zarrdask.hierarchy import check_name, location, prefix_of
from zarrdask.journal import is_begun
from zarrdask.metadata import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.storage.draft import DraftStore
from zarrdask.stored import erase_leftovers


def is_draft(store: Store, metadata: Metadata) -> bool:
    """Whether a new node will be in a hierarchy of the v3 draft."""
    return isinstance(store, DraftStore) or drafts.is_draft(metadata.zarr_format)


def prepare(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> Store:
    """Check that a node can be created; nothing is written.

    Returns
    -------
    Store
        The store as the hierarchy that the node is to be in will see it.

    Raises
    ------
    NodeExistsError
        As `create`.
    """
    detect.render(metadata)
    if is_draft(store, metadata):
        return drafts.prepare(plain(store), path, metadata, overwrite=overwrite)[0]
    _checked(store, path, metadata, overwrite=overwrite)
    return store


def create(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> Store:
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
    if is_draft(store, metadata):
        if isinstance(metadata, ArrayMetadata) and is_begun(plain(store), prefix_of(path)):
            view = prepare(store, path, metadata, overwrite=overwrite)
            erase_leftovers(Chunks(view, prefix_of(path), metadata))
        return drafts.create(plain(store), path, metadata, overwrite=overwrite)
    documents = detect.render(metadata)  # so that what can't be written fails before erasing
    missing, there = _checked(store, path, metadata, overwrite=overwrite)
    with changing(store, path, whole=True) as real:
        for parent in missing:
            _put_group(real, parent, metadata)
        real.tidy(prefix_of(path))
        # Only what is a node is erased: a directory of other things is not ours to empty.
        if there:
            hierarchy.remove(real, path)
        elif isinstance(metadata, ArrayMetadata) and (overwrite or is_begun(real, prefix_of(path))):
            erase_leftovers(Chunks(real, prefix_of(path), metadata))
        if overwrite:
            put(real, path, documents)
        else:
            put_new(real, path, documents)
    return store


def _checked(
    store: Store, path: str, metadata: Metadata, *, overwrite: bool
) -> tuple[list[str], bool]:
    """Return the paths above at which there is no group, and whether there is a node already."""
    check_name(path, metadata.zarr_format)
    missing = _missing_parents(plain(store), path)
    there = hierarchy.exists(plain(store), path)
    if there and not overwrite:
        raise taken(store, path)
    if there:
        plain(store).check_erasable([prefix_of(path)])
    return missing, there


def _missing_parents(store: Store, path: str) -> list[str]:
    parents = ancestors(path)
    missing = []
    for parent, found in zip(parents, hierarchy.read_each(store, parents), strict=True):
        if isinstance(found, ArrayMetadata):
            raise NodeExistsError("an array can't hold other nodes", key=location(store, parent))
        if found is None:
            missing.append(parent)
    return missing


def _put_group(store: Store, path: str, below: Metadata) -> None:
    """Write a group above a new node, unless another writer did so meanwhile."""
    try:
        put_new(store, path, detect.render(GroupMetadata(below.zarr_format)))
    except NodeExistsError:
        _missing_parents(store, f"{path}/x" if path else "x")  # or it is an array


def put(store: Store, path: str, documents: Documents) -> None:
    """Write a node's documents, those last that make it a node."""
    for name, value in _in_order(documents):
        store.set(prefix_of(path) + name, value)


def put_new(store: Store, path: str, documents: Documents) -> None:
    """Write a node's documents where there is none: of several writers, one does.

    Raises
    ------
    NodeExistsError
        If another one did so first: what that one wrote is as it was.
    """
    prefix, late = prefix_of(path), []
    for name, value in _in_order(documents):
        if store.create(prefix + name, value):
            continue
        if name in detect.CHILD_NAMES:
            raise taken(store, path)
        # It is left from a node that was here, or of another writer, who may yet be the one.
        late.append((name, value))
    for name, value in late:
        store.set(prefix + name, value)


def _in_order(documents: Documents) -> list[tuple[str, bytes]]:
    names = sorted(documents, key=detect.CHILD_NAMES.__contains__)
    return [(name, value) for name in names if (value := documents[name]) is not None]


def taken(store: Store, path: str) -> NodeExistsError:
    """Return the error for a place where there is a node."""
    return NodeExistsError(
        "there is an array or group here already; overwrite=True replaces it",
        key=location(store, path),
    )


def consolidate(store: Store, path: str, zarr_format: ZarrFormat) -> None:
    """Write a group's consolidated metadata (conformance A-67, C-78).

    Raises
    ------
    MetadataError
        If a document is not JSON, or of another format than the group.
    UnsupportedError
        If the store can't be listed.
    """
    try:
        entries = hierarchy.entries(store, path)
        documents = consolidated.render(zarr_format, entries)
    except ZarrdaskError as error:
        raise error.within(location(store, path)) from error.__cause__
    with store.batch():
        for name, value in documents.items():
            store.set(prefix_of(path) + name, value)
