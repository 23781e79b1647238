"""Paths of nodes, and the stores that the nodes are in; the error for a path that is taken."""

import os
from itertools import accumulate
from typing import Any

from zarrdask.compliance import report_deviation
from zarrdask.errors import MetadataError, NodeExistsError
from zarrdask.storage.base import Store
from zarrdask.storage.resolve import resolve
from zarrdask.storage.retry import retrying
from zarrdask.storage.zarr_python import split_node


def normalise_path(path: str | None) -> str:
    """Return a user's path in normal form: names joined by "/", without "/" at either end.

    None and "" are the root. A backslash separates names, too (conformance A-44, A-45, C-29).

    >>> normalise_path("//foo//bar/")
    'foo/bar'
    """
    if not isinstance(path, str | None) or any("\ud800" <= c <= "\udfff" for c in path or ""):
        raise MetadataError(
            "a path must be Unicode text", key="path", found=path, expected="names joined by '/'"
        )
    names = [name for name in (path or "").replace("\\", "/").split("/") if name]
    for name in names:
        if not name.strip(".") or "\0" in name:
            raise MetadataError(
                "a name in a path must not consist of periods only or contain a NUL; choose "
                "another name",
                key="path",
                found=path,
            )
    return "/".join(names)


def check_ascii(path: str) -> None:
    """Report a path of Zarr v2 that is not ASCII, which not all Zarr software reads (A-1)."""
    if not path.isascii():
        report_deviation("A-1", "a path in Zarr v2 is ASCII text", key="path", found=path)


def locate_node(
    url: Any, component: str | None, storage_options: dict[str, Any] | None
) -> tuple[Store, str]:
    """Return the store and the path of the node that a user names; the node need not exist.

    The arguments are those of `zarrdask.open`. Of an opened node its own store is returned.
    """
    store_above = getattr(url, "store", None)
    if isinstance(store_above, Store) and not isinstance(url, Store):
        store, path = store_above, url.path
    else:
        path = ""
        if not isinstance(url, str | os.PathLike):
            url, path = split_node(url)
            path = normalise_path(path)
        store = retrying(resolve(url, storage_options))
    return store, join_path(path, component) if component else path


def key_prefix(path: str) -> str:
    """Return the prefix of a node's keys: "" for the root, else the path and "/"."""
    return f"{path}/" if path else ""


def ancestors(path: str) -> list[str]:
    """Return the paths of the groups above a node, the root first.

    >>> ancestors("a/b/c")
    ['', 'a', 'a/b']
    """
    names = path.split("/")[:-1]
    return ["", *accumulate(names, lambda above, name: f"{above}/{name}")] if path else []


def node_location(store: Store, path: str) -> str:
    """Return where a node is, for messages: the URL of its store and its path."""
    return f"{store.url}/{path}".rstrip("/")


def join_path(path: str, name: str) -> str:
    """Return the path, in normal form, of the node at a name or a path below another node."""
    below = normalise_path(name)
    return f"{path}/{below}" if path and below else path or below


def exists_error(store: Store, path: str) -> NodeExistsError:
    """Return the error for a path where a node exists already."""
    return NodeExistsError(
        "there is an array or group here already; overwrite=True replaces it",
        key=node_location(store, path),
    )
