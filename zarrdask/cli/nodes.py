"""Open the nodes that commands are about, and describe them as JSON values."""

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import zarrdask
from zarrdask.cli.output import one_line
from zarrdask.display.words import nearest
from zarrdask.errors import NodeNotFoundError, ZarrdaskError
from zarrdask.grids.base import extents
from zarrdask.hierarchy.members import walk_nodes
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.storage.base import Store


def open_node(
    url: str, component: str | None, storage_options: dict[str, Any] | None, mode: str = "r"
) -> Array | Group:
    """Open a node; if there is none, the error suggests the member with the nearest name."""
    with suggestions((url, component, storage_options)):
        return zarrdask.open(url, component, mode, storage_options=storage_options)


@contextmanager
def suggestions(
    *places: tuple[str | None, str | None, dict[str, Any] | None],
) -> Iterator[None]:
    """Add the nearest name to the error of a node that does not exist, also in remote stores.

    Parameters
    ----------
    *places : (str or None, str or None, dict or None)
        The URL, the component and the storage options of each node that has to exist.
    """
    try:
        yield
    except NodeNotFoundError as error:
        if "the nearest name" in str(error):
            raise
        for url, component, storage_options in places:
            name = url and _nearest(url, component, storage_options)
            if name:
                text = f"{one_line(error)}; the nearest name is {name!r}"
                raise click.ClickException(text) from error
        raise


def _nearest(url: str, component: str | None, storage_options: dict[str, Any] | None) -> str | None:
    """Return a URL or component that exists, and differs from a given one in its last name."""
    path = (component or url).rstrip("/")
    parent, name = posixpath.split(path)
    place = (url, parent or None) if component else (parent or ".", None)
    try:
        group = zarrdask.open_group(*place, storage_options=storage_options)
        names = list(group)
    except (ZarrdaskError, OSError, ValueError):
        return None  # there is no group in which names could be compared
    match = nearest(name, names) if name not in names else None
    return match and posixpath.join(parent, match)


def walk(
    store: Store, path: str, depth: int | None = None
) -> Iterator[tuple[str, Metadata | ZarrdaskError]]:
    """Return the nodes below a group by their paths from there; for invalid nodes, the error."""
    return walk_nodes(
        store, path, descend=lambda below: depth is None or below.count("/") + 1 < depth
    )


def summary(path: str, node: Metadata | ZarrdaskError) -> dict[str, Any]:
    """Return a short description of a node as JSON values."""
    if isinstance(node, ZarrdaskError):
        return {"path": path, "kind": "invalid", "error": one_line(node)}
    if not isinstance(node, ArrayMetadata):
        return {"path": path, "kind": "group"}
    return {
        "path": path,
        "kind": "array",
        "shape": node.shape,
        "dtype": str(node.dtype),
        "chunks": extents(node.read_grid),
        "shards": None if node.shard is None else extents(node.grid),
    }
