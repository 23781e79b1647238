"""Open the nodes that are arguments of commands, and describe nodes as JSON values."""

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click

import zarrdask
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.info import dtype_name
from zarrdask.display.words import nearest
from zarrdask.errors import NodeNotFoundError, ZarrdaskError
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.resolve import options_of_each
from zarrdask.tools.cli.output import one_line

#: Options of fsspec, as the user passes them.
Options = dict[str, Any] | None


class Location(NamedTuple):
    """Where a node is: as the user names it."""

    url: str
    component: str | None
    storage_options: Options

    def open(self, mode: str = "r") -> Array | Group:
        """Open the node; if there is none, the error suggests the member with the nearest name."""
        url, component, storage_options = self
        with suggestions(self):
            return zarrdask.open(url, component, mode, storage_options=storage_options)


def both_locations(
    first: str, second: str | None, arguments: dict[str, Any]
) -> tuple[Location, Location]:
    """Return the locations of two nodes, each with the options that are meant for it."""
    of_first, of_second = options_of_each(
        arguments.get("storage_options"),
        (first, arguments.get("source_options")),
        (second, arguments.get("target_options")),
    )
    component = arguments.get("component")
    return Location(first, component, of_first), Location(second or "", None, of_second)


@contextmanager
def suggestions(*locations: Location) -> Iterator[None]:
    """Add the nearest name to the error of a node that does not exist, also in remote stores.

    Parameters
    ----------
    *locations : Location
        The locations of the nodes that have to exist.
    """
    try:
        yield
    except NodeNotFoundError as error:
        if "the nearest name" in str(error):
            raise
        for name in filter(None, map(_nearest, locations)):
            text = f"{one_line(error)}; the nearest name is {name!r}"
            raise click.ClickException(text) from error
        raise


def _nearest(location: Location) -> str | None:
    """Return a URL or component that exists, and differs from the given one in its last name."""
    url, component, storage_options = location
    parent, name = posixpath.split((component or url).rstrip("/"))
    above = (url, parent or None) if component else (parent or ".", None)
    try:
        names = list(zarrdask.open_group(*above, storage_options=storage_options))
    except (ZarrdaskError, OSError, ValueError):
        return None  # there is no group in which names could be compared
    match = nearest(name, names) if name not in names else None
    return match and posixpath.join(parent, match)


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
        "dtype": dtype_name(node),
        "chunks": node.read_grid.chunks,
        "shards": None if node.shard is None else node.grid.chunks,
    }
