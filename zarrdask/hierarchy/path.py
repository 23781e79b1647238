"""Paths of nodes, and the stores that they are in."""

from typing import Any

from zarrdask.errors import MetadataError
from zarrdask.storage.base import Store
from zarrdask.storage.resolve import resolve
from zarrdask.storage.retry import retrying
from zarrdask.storage.zarr_python import split_node


def normalise_path(path: str | None) -> str:
    """Return a path in normal form: names joined by "/", none at either end.

    Raises
    ------
    MetadataError
        If it is no text, or a name is made of periods only, or has a NUL (conformance A-44, A-45,
        C-29).

    Examples
    --------
    >>> normalise_path("//foo//bar/")
    'foo/bar'
    """
    if not isinstance(path, str | None) or any("\ud800" <= c <= "\udfff" for c in path or ""):
        raise MetadataError("not a path", key="path", found=path, expected="Unicode text")
    names = [name for name in (path or "").replace("\\", "/").split("/") if name]
    for name in names:
        if not name.strip(".") or "\0" in name:
            raise MetadataError(
                "a name may not be periods only, nor have a NUL", key="path", found=path
            )
    return "/".join(names)


def locate_node(
    url: Any, component: str | None, storage_options: dict[str, Any] | None
) -> tuple[Store, str]:
    """Return the store and path that a user means: by URL, store, mapping, or an opened node."""
    above = getattr(url, "store", None)
    if isinstance(above, Store) and not isinstance(url, Store):
        return above, join_path(url.path, component or "")
    url, path = split_node(url)
    return retrying(resolve(url, storage_options)), join_path(normalise_path(path), component or "")


def inherited_strictness(url: Any, strict: bool | None) -> bool | None:  # noqa: FBT001
    """Return whether what is opened by a node has to be strict: as there, if nobody says."""
    above = getattr(url, "strict", None)
    return above if strict is None and isinstance(above, bool) else strict


def key_prefix(path: str) -> str:
    """Return the prefix of a node's keys: "" for the root, else the path and "/"."""
    return f"{path}/" if path else ""


def node_location(store: Store, path: str) -> str:
    """Return where a node is, for people."""
    return f"{store.url}/{path}".rstrip("/")


def join_path(path: str, name: str) -> str:
    """Return the path of a node below another, in normal form."""
    below = normalise_path(name)
    return f"{path}/{below}" if path and below else path or below
