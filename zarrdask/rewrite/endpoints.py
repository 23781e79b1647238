"""The source and the target of a copy or a rechunk."""

from dataclasses import replace
from typing import Any, NamedTuple

from zarrdask.errors import NodeExistsError
from zarrdask.hierarchy.find import look_up
from zarrdask.hierarchy.path import key_prefix, locate_node, node_location
from zarrdask.metadata.model import Metadata
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.runtime.locks import location_of
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import ConsolidatedStore, plain


class Origin(NamedTuple):
    """The node that is read; `store` is as the hierarchy of the node sees it."""

    store: Store
    path: str
    metadata: Metadata
    consolidated: bool


def find_origin(source: Any, storage_options: dict[str, Any] | None) -> Origin:
    """Return the node that a user passes as the source."""
    place = look_up(source, None, storage_options)
    place = replace(place, store=plain(place.store))
    view, metadata = place.find(None, default="own")
    return Origin(view, place.path, metadata, isinstance(view, ConsolidatedStore))


def locate_target(
    target: Any, component: str | None, storage_options: dict[str, Any] | None
) -> tuple[Store, str]:
    """Return the store and the path that a user passes as the target."""
    if isinstance(target, Array | Group):
        target.check_writable()
    return locate_node(target, component, storage_options)


def check_apart(source: tuple[Store, str], target: tuple[Store, str], *, replaces: bool) -> None:
    """Check that the target does not lie in the source, nor (if it `replaces`) around it."""
    read, written = place_of_node(*source), place_of_node(*target)
    if written.startswith(read) or (replaces and read.startswith(written)):
        raise NodeExistsError(
            "the target can't be the source itself, nor lie in it or around it; write to another "
            "place",
            key=node_location(*target),
            found=node_location(*source),
        )


def place_of_node(store: Store, path: str) -> str:
    """Return a text that begins with the same characters for all nodes that lie in a node."""
    return location_of(store, key_prefix(path))
