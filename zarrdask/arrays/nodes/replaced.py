"""Detect that another writer has replaced an open array, before chunks are stored in it."""

from collections.abc import Mapping
from typing import Protocol

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.resize import existing_array
from zarrdask.errors import StoreError
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.storage.base import Store


class OpenArray(Protocol):
    """The needed properties of an open array."""

    node_path: NodePath
    #: The version stamp of its documents when they were compared last; "" before.
    stamp: str

    @property
    def metadata(self) -> ArrayMetadata:
        """The metadata of the array as it was opened."""


def check_not_replaced(array: OpenArray) -> None:
    """Check that the chunks of an open array are encoded as its documents say now.

    Nothing is checked in stores where that needs a request.

    Raises
    ------
    NodeNotFoundError
        If the array no longer exists.
    StoreError
        If another writer has replaced it by one with another grid, data type or other codecs.
    """
    node, metadata = array.node_path.current, array.metadata
    stamp = node.version_stamp(metadata.format.node_documents)
    if stamp == array.stamp and (stamp or not _tells_stamps(node.store)):
        return
    if not _is_stored(node, metadata.documents):
        stored = existing_array(node.stored_metadata(metadata.zarr_format), node.location)
        if not has_same_chunks(metadata, stored):
            raise StoreError(
                "another writer has replaced this array since it was opened, and its chunks are "
                "encoded in another way now: nothing was written; open it again",
                key=node.location,
            )
    array.stamp = stamp


def _tells_stamps(store: Store) -> bool:
    """Whether a document without a version stamp is one that is not there."""
    return store.identity.directory is not None or store.capabilities.bounded


def _is_stored(node: NodePath, documents: Mapping[str, bytes | None] | None) -> bool:
    """Whether the documents of a node are those that it was opened with."""
    if documents is None:
        return False
    get, prefix = node.store.get, node.prefix
    return all(get(prefix + name) == value for name, value in documents.items() if value)


def has_same_chunks(opened: ArrayMetadata, stored: ArrayMetadata) -> bool:
    """Whether chunks are encoded in the same way; the shape may differ."""
    if len(opened.shape) != len(stored.shape):
        return False
    opened, stored = opened.resized(stored.shape).without_labels(), stored.without_labels()
    # Codecs passed as objects may differ from those that a document gives, and mean the same.
    return opened == stored or opened.render() == stored.render()
