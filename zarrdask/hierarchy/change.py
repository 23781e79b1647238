"""Write and erase the documents of a node."""

from zarrdask.errors import LinkError
from zarrdask.hierarchy import draft
from zarrdask.hierarchy.consolidated import changing
from zarrdask.hierarchy.path import key_prefix
from zarrdask.metadata import detect
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.base import Store
from zarrdask.storage.v3_draft import DraftStore


def write_node(
    store: Store, path: str, metadata: Metadata, *, before: Metadata | None = None
) -> None:
    """Write a node's documents, and erase those that the node no longer has.

    Parameters
    ----------
    store : Store
    path : str
        The path of the node in the store.
    metadata : Metadata
        The node.
    before : Metadata, optional
        The node as it is stored at present. Documents that stay the same are not written: another
        writer may have added members to them that are not known here.
    """
    documents = _changed_documents(metadata, before)
    if documents:
        is_array = isinstance(metadata, ArrayMetadata)
        with changing(store, path, whole=False, is_array=is_array) as real:
            _put(real, path, documents)


def write_member(store: Store, path: str, metadata: Metadata, *, before: Metadata) -> None:
    """Write a node's documents as `write_node`, but leave consolidated metadata to the caller."""
    _put(store, path, _changed_documents(metadata, before))


def _changed_documents(metadata: Metadata, before: Metadata | None) -> Documents:
    documents = detect.render(metadata)
    if before is None:
        return documents
    old = detect.render(before)
    return {name: value for name, value in documents.items() if old.get(name) != value}


def _put(store: Store, path: str, documents: Documents) -> None:
    prefix = key_prefix(path)
    for name, value in documents.items():
        if value is None:
            store.erase(prefix + name)
        else:
            store.set(prefix + name, value)


def erase_node(store: Store, path: str) -> None:
    """Erase a node and everything below it; of a node that is a symbolic link, the link."""
    store.check_erasable([key_prefix(path)])
    with changing(store, path, whole=True) as real:
        remove_keys(real, path)
        if isinstance(real, DraftStore):
            draft.keep_parent(real, path)


def remove_keys(store: Store, path: str) -> None:
    """Erase the keys of a node and of everything below it; consolidated metadata stay."""
    prefix = key_prefix(path)
    if store.listable:
        # Documents are erased first: if this is cut short, the rest is not a node.
        try:
            for name in detect.names(store):
                store.erase(prefix + name)
        except LinkError:
            pass  # The node is a symbolic link, which is erased below; its target stays.
    store.erase_prefix(prefix)
