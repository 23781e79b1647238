"""Nodes in a store: paths, and the documents that stand at them."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from zarrdask.errors import MetadataError, NodeExistsError, NodeNotFoundError, ZarrdaskError
from zarrdask.formats import detect
from zarrdask.formats.base import Documents
from zarrdask.metadata import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.resolve import resolve


def normalise(path: str | None) -> str:
    """Return a path in normal form: names joined by "/", none at either end.

    Raises
    ------
    MetadataError
        If a name is made of periods only, or has a NUL (conformance A-44, A-45, C-29).

    Examples
    --------
    >>> normalise("//foo//bar/")
    'foo/bar'
    """
    names = [name for name in (path or "").replace("\\", "/").split("/") if name]
    for name in names:
        if not name.strip(".") or "\0" in name:
            raise MetadataError(
                "a name may not be periods only, nor have a NUL", key="path", found=path
            )
    return "/".join(names)


def locate(
    url: Any, component: str | None, storage_options: dict[str, Any] | None
) -> tuple[Store, str]:
    """Return the store and path that a user means: by URL, store, mapping, or an opened node."""
    above = getattr(url, "store", None)
    if isinstance(above, Store):
        return above, join(url.path, component or "")
    return resolve(url, storage_options), normalise(component)


def check_name(path: str, zarr_format: int) -> None:
    """Check that a node may be created at a path.

    Raises
    ------
    MetadataError
        If one of its names is reserved (conformance C-29).
    """
    reserved = detect.NAMES
    for name in path.split("/"):
        if name in reserved or (zarr_format == 3 and name.startswith("__")):
            raise MetadataError("this name is reserved", key="path", found=name)


def prefix_of(path: str) -> str:
    """Return the prefix of a node's keys: "" for the root, else the path and "/"."""
    return f"{path}/" if path else ""


def location(store: Store, path: str) -> str:
    """Return where a node is, for people."""
    return f"{store.url}/{path}".rstrip("/")


def join(path: str, name: str) -> str:
    """Return the path of a node below another, in normal form."""
    return normalise(f"{path}/{name}")


def read(store: Store, path: str) -> Metadata | None:
    """Return the node at a path, or None if there is none.

    Raises
    ------
    MetadataError, UnsupportedError
        If its documents are wrong; the error names the path.
    """
    return _parse(store, path, _documents(store, [path])[0])


def _documents(store: Store, paths: list[str]) -> list[Documents]:
    """Return what documents there are of several nodes, asked for at once."""
    keys = [prefix_of(path) + name for path in paths for name in detect.NAMES]
    # Each value is valid until the next is asked for: keep them by value.
    found = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
    step = len(detect.NAMES)
    return [
        dict(zip(detect.NAMES, found[at : at + step], strict=True))
        for at in range(0, len(found), step)
    ]


def _parse(store: Store, path: str, documents: Documents) -> Metadata | None:
    try:
        return detect.parse(documents)
    except ZarrdaskError as error:
        raise error.within(location(store, path)) from error.__cause__


def exists(store: Store, path: str) -> bool:
    """Whether there is a node at a path, be it valid or not."""
    prefix = prefix_of(path)
    keys = [prefix + name for name in detect.CHILD_NAMES]
    return any(value is not None for value in store.get_many(keys, Scratch()))


def find(store: Store, path: str) -> Metadata:
    """Return the node at a path.

    Raises
    ------
    NodeNotFoundError
        If there is none.
    """
    found = read(store, path)
    if found is None:
        raise NodeNotFoundError(
            "there is no array or group here",
            key=location(store, path),
            expected=f"one of {', '.join(detect.NAMES)}",
        )
    return found


def stamp(store: Store, path: str) -> str:
    """Return what changes when the node's documents are written again, or "" if that costs."""
    prefix = prefix_of(path)
    return "".join(store.stamp(prefix + name) for name in detect.NAMES)


def write(store: Store, path: str, metadata: Metadata, *, before: Metadata | None = None) -> None:
    """Write a node's documents, and erase those that it should not have.

    Parameters
    ----------
    before : Metadata, optional
        What is there: documents that stay the same are not touched, with whatever another writer
        put in them.
    """
    prefix = prefix_of(path)
    old = {} if before is None else detect.render(before)
    for name, value in detect.render(metadata).items():
        if before is not None and old.get(name) == value:
            continue
        if value is None:
            store.erase(prefix + name)
        else:
            store.set(prefix + name, value)


def create(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> None:
    """Write a new node, and groups above it where there are none (conformance A-48, C-6).

    Raises
    ------
    NodeExistsError
        If there is a node and `overwrite` is false, or an array stands above.
    """
    check_name(path, metadata.zarr_format)
    documents = detect.render(metadata)  # so that what can't be written fails before erasing
    _make_parents(store, path, metadata.zarr_format)
    # Only what is a node is erased: a directory of other things is not ours to empty.
    if exists(store, path):
        if not overwrite:
            raise NodeExistsError(
                "there is an array or group here already; overwrite=True replaces it",
                key=location(store, path),
            )
        erase(store, path)
    prefix = prefix_of(path)
    for name, value in documents.items():
        if value is not None:
            store.set(prefix + name, value)


def _make_parents(store: Store, path: str, zarr_format: int) -> None:
    names = path.split("/")[:-1]
    parents = ["", *accumulate(names, lambda above, name: f"{above}/{name}")] if path else []
    for parent in parents:
        found = read(store, parent)
        if isinstance(found, ArrayMetadata):
            raise NodeExistsError("an array can't hold other nodes", key=location(store, parent))
        if found is None:
            write(store, parent, GroupMetadata(zarr_format))


def erase(store: Store, path: str) -> None:
    """Remove a node and everything below it. Its documents go first: what is left is no node."""
    prefix = prefix_of(path)
    for name in detect.NAMES:
        store.erase(prefix + name)
    store.erase_prefix(prefix)


def _members(store: Store, path: str) -> list[tuple[str, Documents]]:
    _, below = store.list_dir(prefix_of(path))
    names = [name for name in below if not name.startswith("__")]
    documents = _documents(store, [join(path, name) for name in names])
    return [
        (name, found)
        for name, found in zip(names, documents, strict=True)
        if any(found[key] is not None for key in detect.CHILD_NAMES)
    ]


def member_names(store: Store, path: str) -> list[str]:
    """Return the names of the nodes right below a group, be they valid or not.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    """
    return [name for name, _ in _members(store, path)]


def children(store: Store, path: str) -> Iterator[tuple[str, Metadata]]:
    """Yield the nodes right below a group, by name.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    MetadataError
        If one is not valid.
    """
    for name, documents in _members(store, path):
        found = _parse(store, join(path, name), documents)
        if found is not None:
            yield name, found
