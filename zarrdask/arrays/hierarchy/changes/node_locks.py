"""Locks of nodes, each for a purpose, which exclude other writers.

A lock of chunks and a lock of a node are never the same, as the name of the latter ends with "/",
and the key of a chunk does not.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

from zarrdask.arrays.hierarchy.changes.journal import BESIDE
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.storage.locks.chunk_locks import ChunkLocks, Lock
from zarrdask.storage.locks.leases import Lease

#: The purpose of a lock of a node: changing the shape of an array, rewriting a node, changing its
#: documents and consolidated metadata, or changing the writer that an unfinished array belongs to.
Purpose = Literal["shape", "rewrite", "documents", "owner"]
#: The names of leases, in the directory beside a node.
_LEASES = {"shape": "lease", "owner": "owner-lease"}


def lock_node(
    node: StorePath, purpose: Purpose, among: Lock | None = None
) -> AbstractContextManager[object]:
    """Return a lock of a node that one writer on this machine at a time holds, for a purpose.

    `among` is another lock to take first, which excludes writers on other machines. Entering the
    lock raises `StoreError` if other processes can't be excluded.
    """
    return ChunkLocks(node.store, among).hold(f"{node.canonical_location}{purpose}/")


@contextmanager
def exclusive(
    node: StorePath, purpose: Literal["shape", "owner"], among: Lock | None = None
) -> Iterator[Lease | None]:
    """Hold a lock of a node that excludes the writers of all machines, if the store can do that.

    The arguments are the same as for `lock_node`; where the store can exclude other machines,
    `among` is not needed. The result is the lease that excludes them, if there is one.
    """
    capabilities = node.store.capabilities
    if capabilities.compare_and_swap and capabilities.shared:
        with lock_node(node, purpose), Lease.hold(node.store, lease_key(node, purpose)) as held:
            yield held
    else:
        with lock_node(node, purpose, among):
            yield None


def lease_key(node: StorePath, purpose: Literal["shape", "owner"] = "shape") -> str:
    """Return the key of the lease of a writer that holds the lock of a node for a purpose."""
    return f"{node.prefix}{BESIDE}{_LEASES[purpose]}"
