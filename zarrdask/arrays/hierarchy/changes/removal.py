"""Remove a node and everything below it, in an order that makes an interruption harmless.

The document of an array is erased before its chunks, so that no reader sees an array that lacks
some of them. The document of a group is erased last, so that the same call can remove the rest.

An array whose write has not ended is first taken from its writer, whom the marker beside the
documents names (`chunks.unfinished`). That writer, if it fails, checks that the marker is its own,
and erases the documents, under the same lock under which the marker is erased here. So it either
has erased its documents before another writer stores its own, or finds its marker gone.
"""

from contextlib import suppress

from zarrdask.arrays.chunks import unfinished
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import LinkError, ZarrdaskError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.model import GroupMetadata
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.concurrent_requests import request_each


def remove_keys(node: StorePath) -> None:
    """Erase the keys of a node and of everything below it.

    Consolidated metadata of groups above it stay.
    """
    store, prefix = node.store, node.prefix
    if store.capabilities.listable:
        documents = [prefix + name for name in detect.names(node.layout)]
        # A node that is a symbolic link is removed below; its target stays.
        with suppress(LinkError):
            is_group, is_unfinished = _read(node)
            if is_unfinished:
                _disown(node)
            if is_group:
                _remove_members(node)
                documents.reverse()  # The document that makes it a group follows its attributes.
            store.erase_values(documents)
    store.erase_prefix(prefix)


def disown_unfinished(node: StorePath) -> None:
    """Take an array from the writer that is still creating it, if there is one."""
    if node.store.get(node.prefix + unfinished.NAME) is not None:
        _disown(node)


def disown_members(node: StorePath) -> None:
    """Take arrays below a node, if it is a group, from the writers that are still creating them."""
    if _read(node)[0]:
        keys = node.store.list_prefix(node.prefix)
        markers = [key for key in keys if key.endswith(f"/{unfinished.NAME}")]
        for marker in markers:
            _disown(node.at(marker.rpartition("/")[0]))


def _disown(node: StorePath) -> None:
    """Erase the marker of an array: it no longer belongs to the writer that created it."""
    with exclusive(node, "owner"):
        node.store.erase(node.prefix + unfinished.NAME)


def _read(node: StorePath) -> tuple[bool, bool]:
    """Return whether the documents of a node describe a group, and whether it has a marker."""
    names = [*detect.names(node.layout), unfinished.NAME]
    values = node.store.get_many([node.prefix + name for name in names], Scratch())
    documents = {
        name: None if value is None else bytes(value)
        for name, value in zip(names, values, strict=True)
    }
    is_unfinished = documents.pop(unfinished.NAME) is not None
    with strictness(strict=False, quiet=True), suppress(ZarrdaskError):
        return isinstance(detect.parse(documents, node.layout), GroupMetadata), is_unfinished
    return False, is_unfinished


def _remove_members(group: StorePath) -> None:
    """Erase everything below a group but its own documents: first the documents of members."""
    store, prefix = group.store, group.prefix
    names = {*detect.names(group.layout), consolidated.KEY}
    # A member that is a symbolic link is removed below.
    with suppress(LinkError):
        documents, arrays = list[str](), list[StorePath]()
        for key in store.list_prefix(prefix):
            parent, _, name = key.rpartition("/")
            if "/" in key[len(prefix) :] and name in names:
                documents.append(key)
            elif name == unfinished.NAME:
                arrays.append(group.at(parent))
        for _ in request_each(store, _disown, arrays):
            pass
        documents.sort(key=lambda key: key.count("/"), reverse=True)
        store.erase_values(documents)
    keys, members = store.list_dir(prefix)
    below = [f"{prefix}{name}/" for name in members]
    for _ in request_each(store, store.erase_prefix, below):
        pass
    store.erase_values([prefix + name for name in keys if name not in names])
