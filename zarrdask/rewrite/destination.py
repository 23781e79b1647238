"""The target of a rewrite: what happens before its chunks are stored, and afterwards."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.chunks.stored import StoredChunks
from zarrdask.errors import StoreError
from zarrdask.execution.locks import shape_lock
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.change import erase_node
from zarrdask.hierarchy.create import check_creation, create_node
from zarrdask.hierarchy.find import has_document
from zarrdask.hierarchy.journal import Journal, beside
from zarrdask.hierarchy.path import exists_error, key_prefix, node_location
from zarrdask.hierarchy.resize import check_shape, grow, lock_node, stored_metadata
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.nodes.array import Array
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain

#: A store, and a prefix of keys in it: "" or ends with "/".
KeyPrefix = tuple[Store, str]


def clear_prefix(place: KeyPrefix) -> None:
    """Remove all keys below a prefix."""
    store, prefix = place
    if store.listable:
        store.erase_prefix(prefix)


def is_resumed(journal: Journal, place: str, *, restart: bool) -> bool:
    """Return whether an earlier run of the same plan was interrupted, and goes on now."""
    recorded = None if restart else journal.read()
    if recorded in (None, journal.plan):
        return recorded is not None
    raise StoreError(
        "a run of another plan was interrupted here: repeat that one to finish it, or begin again "
        "with restart=True",
        key=place,
    )


@dataclass(frozen=True)
class Destination:
    """The node that is written: a new one, or an array that grows."""

    store: Store
    #: The store, as the hierarchy of the node sees it.
    view: Store
    path: str
    metadata: ArrayMetadata
    #: The position of the first new element: not the origin if the array grows.
    start: Shape
    #: The axis along which an existing array grows.
    along: int | None = None

    @classmethod
    def new(cls, store: Store, view: Store, path: str, metadata: ArrayMetadata) -> "Destination":
        """Return a new array."""
        return cls(store, view, path, metadata, (0,) * len(metadata.shape))

    @property
    def prefix(self) -> str:
        """The prefix of the node's keys."""
        return key_prefix(self.path)

    @property
    def location(self) -> str:
        """The location of the node, for messages."""
        return node_location(self.store, self.path)

    @property
    def chunks(self) -> StoredChunks:
        """The stored chunks of the array."""
        return StoredChunks(self.view, self.prefix, self.metadata)

    @property
    def exists(self) -> bool:
        """Whether there is a node already."""
        return has_document(self.view, self.path)

    @property
    def _old_shape(self) -> Shape:
        """The shape of the array that grows, before it does."""
        axes = enumerate(zip(self.start, self.metadata.shape, strict=True))
        return tuple(start if axis == self.along else n for axis, (start, n) in axes)

    def locked(self) -> AbstractContextManager[Any]:
        """Return a lock: no other process may rewrite or resize the node meanwhile."""
        if self.along is not None:
            return shape_lock(self.store, self.path)
        return lock_node(self.store, self.path, "rewrite")

    def check_unchanged(self, *, resumed: bool) -> None:
        """Check that the node is as it was when the plan was made."""
        if self.along is not None:
            metadata = stored_metadata(self.store, self.path, self.metadata.zarr_format)
            check_shape(metadata, (self._old_shape,), self.location)
        elif resumed and self.exists:
            raise exists_error(self.view, self.path)

    def prepare(self, *, overwrite: bool) -> None:
        """Remove what earlier runs have left, and the node that is replaced."""
        clear_prefix(beside(self.view, self.prefix))
        if self.along is not None:
            return
        if self.exists:
            check_creation(self.store, self.path, self.metadata, overwrite=overwrite)
            erase_node(self.view, self.path)
        erase_leftovers(self.chunks)

    def commit(self) -> Array:
        """Write the document of the new array, or the new shape of the array that grows."""
        store, metadata = self.store, self.metadata
        if self.along is None:
            store = create_node(store, self.path, metadata, overwrite=False)
        else:
            zarr_format, shape = metadata.zarr_format, metadata.shape
            metadata = grow(store, self.path, zarr_format, self._old_shape, shape)
        return Array(plain(store), self.path, metadata, "r+")
