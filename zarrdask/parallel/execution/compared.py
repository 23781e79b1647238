"""Repeat a completed write: its values are compared with the stored ones instead of stored."""

from collections.abc import Iterable
from dataclasses import replace

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.changes.later_claim import is_complete
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeExistsError, NodeNotFoundError
from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.formats.metadata.model import Metadata
from zarrdask.storage.wrapper import WrappedStore


class ComparedStore(WrappedStore):
    """Chunks and shards that are compared with what a write would store; none is changed."""

    def set(self, key: str, value: Buffer) -> None:
        self._compare(key, value)

    def create(self, key: str, value: Buffer) -> bool:
        self._compare(key, value)
        return True

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        self._compare(key, value)
        return True

    def erase(self, key: str) -> None:
        self._compare(key, None)

    def erase_values(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._compare(key, None)

    def erase_prefix(self, prefix: str) -> None:
        self.erase_values(self.inner.list_prefix(prefix))

    def _compare(self, key: str, value: Buffer | None) -> None:
        stored = self.inner.get(key)
        if (stored is None) == (value is None) and bytes(stored or b"") == bytes(value or b""):
            return
        raise NodeExistsError(
            "there is an array already, and this chunk or shard differs from what this call "
            "stores; nothing was changed. Another writer has created or changed the array, or the "
            "call computes other values each time. overwrite=True (of a dataset, mode='w') "
            "replaces the array",
            key=f"{self.url}/{key}",
        )


def compared(chunks: StoredChunks) -> StoredChunks:
    """Return the chunks of a complete array; writing to them compares them with what is written."""
    return replace(chunks, guard=ComparedStore)


def find_complete_node(node: NodePath, metadata: Metadata) -> NodePath | None:
    """Return a node as its hierarchy sees it, if its documents are the documents of `metadata`.

    If the documents are there, but the write that created the node was killed before all chunks
    were stored, the error says what to do: there is no record of those that were.

    In stores whose changes appear together, an interrupted write leaves nothing to be resumed.
    """
    if node.store.capabilities.bounded or node.store.capabilities.forks or node.is_begun():
        return None
    try:
        view, _ = node.find()
    except NodeNotFoundError:
        return None
    return view if is_complete(view, metadata) else None
