"""The array that a rewrite writes: a new one, or an existing one that grows."""

from dataclasses import dataclass, replace

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.changes.append import AppendedArray, AppendGuard
from zarrdask.arrays.hierarchy.changes.new_array import create_after_chunks
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.storage.base import Store

#: A store, and a prefix of keys in it: "" or ends with "/".
KeyPrefix = tuple[Store, str]


def clear_prefix(location: KeyPrefix) -> None:
    """Remove all keys below a prefix."""
    store, prefix = location
    if store.capabilities.listable:
        store.erase_prefix(prefix)


@dataclass(frozen=True)
class Destination:
    """The array that is written: a new one, or one that grows."""

    node: NodePath
    #: The node in the store as its hierarchy sees it.
    view: NodePath
    metadata: ArrayMetadata
    #: The position of the first new element: not the origin if the array grows.
    start: Shape
    #: The axis along which an existing array grows.
    along: int | None = None
    #: The condition on which chunks are stored, while the array grows.
    guard: AppendGuard | None = None

    @classmethod
    def new(cls, node: NodePath, view: NodePath, metadata: ArrayMetadata) -> "Destination":
        """Return a new array."""
        return cls(node, view, metadata, (0,) * len(metadata.shape))

    @property
    def chunks(self) -> StoredChunks:
        """The stored chunks of the array."""
        return replace(self.view.chunks(self.metadata), guard=self.guard, is_stored=False)

    @property
    def old_shape(self) -> Shape:
        """The shape of the array that grows, before it does."""
        axes = enumerate(zip(self.start, self.metadata.shape, strict=True))
        return tuple(start if axis == self.along else n for axis, (start, n) in axes)

    def commit(self, *, is_again: bool) -> Array:
        """Write the document of the new array, or the new shape of the array that grows.

        `is_again` says whether that may have been done before. The record of the rewrite stays.
        """
        node, metadata = self.node, self.metadata
        if self.along is None:
            located = node, self.view, metadata
            node = create_after_chunks(*located, is_recorded=True, is_again=is_again)
        else:
            lease = None if self.guard is None else self.guard.lease
            metadata = AppendedArray(node, self.chunks, self.old_shape, lease).grow()
        return Array(node, metadata, "r+")
