"""The nodes below a group."""

from collections.abc import Container, Iterator

from zarrdask.errors import MetadataError, ZarrdaskError
from zarrdask.hierarchy.find import _check_ascii, is_implicit_group, parse_node, read_documents
from zarrdask.hierarchy.implicit import implied
from zarrdask.hierarchy.path import join_path, key_prefix
from zarrdask.metadata import consolidated as forms
from zarrdask.metadata import detect, v2
from zarrdask.metadata.detect import ANY, Search
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import Metadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import ConsolidatedStore
from zarrdask.storage.v3_draft import DraftStore


def check_new_path(path: str, zarr_format: ZarrFormat) -> None:
    """Check that a node may be created at a path.

    Raises
    ------
    MetadataError
        If one of its names is reserved (conformance C-29); in strict mode, if it is not ASCII in
        v2.
    """
    if zarr_format == 2:
        _check_ascii(path)
    reserved = (*detect.NAMES, forms.KEY)
    for name in path.split("/"):
        if name in reserved or (zarr_format == 3 and is_reserved_name(name)):
            raise MetadataError("this name is reserved", key="path", found=name)


def _members(
    store: Store,
    path: str,
    search: Search = ANY,
    *,
    skip: Container[str] = (),
    reserved: bool = False,
) -> list[tuple[str, Documents]]:
    _, below = store.list_dir(key_prefix(path))
    names = [name for name in below if _is_name(name) and name not in skip]
    documents = read_documents(
        store, [join_path(path, name) for name in names], search.rounds(store)
    )
    return [
        (name, found)
        for name, found in zip(names, documents, strict=True)
        if _is_member(store, name, found, reserved=reserved)
        or (search.accepts(3) and _is_implied_member(store, path, name))
    ]


def _is_implied_member(store: Store, path: str, name: str) -> bool:
    if isinstance(store, DraftStore) or is_reserved_name(name):
        return False
    return is_implicit_group(store, join_path(path, name))


def _is_member(store: Store, name: str, documents: Documents, *, reserved: bool) -> bool:
    keys = [key for form in detect.formats_of(store) for key in form.CHILD_NAMES]
    if is_reserved_name(name) and not reserved and not isinstance(store, DraftStore):
        keys = [*v2.CHILD_NAMES]
    return any(documents.get(key) is not None for key in keys)


def is_reserved_name(name: str) -> bool:
    """Whether v3 keeps a name for others than nodes (conformance C-29)."""
    return name.startswith("__")


def _is_name(name: str) -> bool:
    """Whether something in a store can be a node: it may be a directory of another purpose."""
    return bool(name.strip(".")) and "\\" not in name


def documents_below(store: Store, path: str) -> forms.Entries:
    """Return the documents of a group and of every node below it, by path from the group.

    Raises
    ------
    MetadataError
        If one is not JSON.
    UnsupportedError
        If the store can't be listed.
    """
    start = len(key_prefix(path))
    found = {"": forms.parse_documents("", read_documents(store, [path], ANY.rounds(store))[0])}
    groups = [path]
    while groups:
        group = groups.pop(0)
        for name, documents in _members(store, group):
            node = join_path(group, name)
            below = node[start:]
            found[below] = forms.parse_documents(below, documents)
            if forms.is_group(found[below]):
                groups.append(node)
    return found


def member_names(store: Store, path: str, search: Search = ANY) -> list[str]:
    """Return the names of the nodes right below a group, be they valid or not.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    """
    held = store.members(path) if isinstance(store, ConsolidatedStore) else None
    return [name for name, _ in _members(store, path, search)] if held is None else held


def child_nodes(
    store: Store,
    path: str,
    search: Search = ANY,
    *,
    skip: Container[str] = (),
    reserved: bool = False,
) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
    """Yield the nodes right below a group, by name; for one that is not valid, the error.

    The store is listed once, and each document is read once.

    Parameters
    ----------
    skip : container of str
        Names of nodes that are not looked at.
    reserved : bool
        Whether v3 nodes are included whose names v3 reserves, such as xarray's ``__values__``.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    """
    for name, documents in _members(store, path, search, skip=skip, reserved=reserved):
        below = join_path(path, name)
        try:
            metadata = parse_node(store, below, documents)
            if metadata is None and search.accepts(3):
                metadata = implied(store, key_prefix(below))
        except ZarrdaskError as error:
            yield name, error
            continue
        if metadata is not None:
            yield name, metadata
