"""Write and erase the documents of a node."""

from zarrdask.errors import LinkError
from zarrdask.hierarchy import draft
from zarrdask.hierarchy.consolidated import changing
from zarrdask.hierarchy.path import key_prefix
from zarrdask.metadata import detect
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.base import Store
from zarrdask.storage.v3_draft import DraftStore


def write_node(
    store: Store, path: str, metadata: Metadata, *, before: Metadata | None = None
) -> None:
    """Write a node's documents, and erase those that it should not have.

    Parameters
    ----------
    before : Metadata, optional
        What is there: documents that stay the same are not touched, with whatever another writer
        put in them.
    """
    prefix = key_prefix(path)
    documents = detect.render(metadata)
    if before is not None:
        old = detect.render(before)
        documents = {n: value for n, value in documents.items() if old.get(n) != value}
    if not documents:
        return
    is_array = isinstance(metadata, ArrayMetadata)
    with changing(store, path, whole=False, is_array=is_array) as real:
        for name, value in documents.items():
            if value is None:
                real.erase(prefix + name)
            else:
                real.set(prefix + name, value)


def erase_node(store: Store, path: str) -> None:
    """Remove a node and everything below it; of a node that is a symbolic link, the link."""
    store.check_erasable([key_prefix(path)])
    with changing(store, path, whole=True) as real:
        remove_keys(real, path)
        if isinstance(real, DraftStore):
            draft.keep_parent(real, path)


def remove_keys(store: Store, path: str) -> None:
    """Remove a node, whatever consolidated metadata tell of it."""
    prefix = key_prefix(path)
    if store.listable:
        # Documents go first: what is left is no node.
        try:
            for name in detect.names(store):
                store.erase(prefix + name)
        except LinkError:
            pass  # The node is a link, which is removed at once; what it points to stays.
    store.erase_prefix(prefix)
