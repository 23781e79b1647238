"""Exclude that a failing write erases the documents of another one, which has replaced its array.

A marker (`chunks.unfinished`) names the writer that a new array belongs to. A writer that fails
checks that the marker is its own, and erases the documents, under a lock; a writer that replaces
the array erases the marker under the same lock, before anything else. So a failing writer either
has erased its documents before those of the other one are stored, or finds its marker gone.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from zarrdask.arrays.chunks import unfinished
from zarrdask.arrays.hierarchy.changes.journal import beside
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.locks.leases import lease


@contextmanager
def owner_lock(node: StorePath) -> Iterator[None]:
    """Hold the lock of the marker of an array, on all machines if the store can exclude them.

    No other lock is taken while it is held.
    """
    capabilities, (store, prefix) = node.store.capabilities, beside(node)
    is_global = capabilities.compare_and_swap and capabilities.shared
    # The key of a chunk does not end with "/": this is not the lock of a chunk.
    with (
        ChunkLocks(store).hold(f"{node.canonical_location}owner/"),
        lease(store, f"{prefix}owner") if is_global else nullcontext(),
    ):
        yield


def disown(node: StorePath) -> None:
    """Erase the marker of an array: it no longer belongs to the writer that created it."""
    with owner_lock(node):
        node.store.erase(node.prefix + unfinished.NAME)
