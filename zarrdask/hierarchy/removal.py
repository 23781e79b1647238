"""Erase a node and everything below it, in an order that can be cut short.

What is left then is sound: an array that still has its document has all its chunks, and a group
keeps its document until it is empty, so that removing it once more erases the rest.
"""

from contextlib import suppress

from zarrdask.compliance import strictness
from zarrdask.errors import LinkError, MetadataError
from zarrdask.hierarchy.path import StorePath
from zarrdask.metadata import consolidated, detect
from zarrdask.metadata.model import GroupMetadata
from zarrdask.storage.base import Scratch
from zarrdask.storage.in_flight import in_flight


def remove_keys(node: StorePath) -> None:
    """Erase the keys of a node and of everything below it.

    Consolidated metadata of groups above it stay.
    """
    store, prefix = node.store, node.prefix
    if store.capabilities.listable:
        documents = [prefix + name for name in detect.names(store)]
        if _is_group(node):
            _remove_members(node)
            documents.reverse()  # The document that makes it a group comes after its attributes.
        # A node that is a symbolic link is erased below; its target stays.
        with suppress(LinkError):
            store.erase_values(documents)
    store.erase_prefix(prefix)


def _is_group(node: StorePath) -> bool:
    """Whether the documents of a node are those of a group."""
    names = detect.names(node.store)
    values = node.store.get_many([node.prefix + name for name in names], Scratch())
    documents = {
        name: None if value is None else bytes(value)
        for name, value in zip(names, values, strict=True)
    }
    with strictness(strict=False, quiet=True), suppress(MetadataError):
        return isinstance(detect.parse(documents, node.store), GroupMetadata)
    return False


def _remove_members(group: StorePath) -> None:
    """Erase everything below a group but its own documents: those of members before chunks."""
    store, prefix = group.store, group.prefix
    names = {*detect.names(store), consolidated.KEY}
    with suppress(LinkError):  # A member that is a symbolic link is erased below.
        documents = [
            key
            for key in store.list_prefix(prefix)
            if "/" in key[len(prefix) :] and key.rpartition("/")[2] in names
        ]
        documents.sort(key=lambda key: key.count("/"), reverse=True)
        store.erase_values(documents)
    keys, members = store.list_dir(prefix)
    below = [f"{prefix}{name}/" for name in members]
    for _ in (in_flight if store.capabilities.concurrent else map)(store.erase_prefix, below):
        pass
    store.erase_values([prefix + name for name in keys if name not in names])
