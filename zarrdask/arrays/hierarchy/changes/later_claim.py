"""The claim of new nodes whose chunks are computed later, and whose documents come last.

The tasks of such a write run in any processes, more than once if a worker is lost, and maybe long
after another writer has created the same nodes. Hence the first task stores a claim with the unique
name of the write, which all its processes share, and the last task erases it. Each task finds

- the claim: it stores its chunks;
- neither the claim nor the nodes: it stores the claim, unless its process has done that before;
- no claim, but nodes with equal documents: this write has completed them, or another one. It
  compares its chunks with those that are stored, and changes nothing;
- anything else: it raises an error.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from uuid import uuid4

from zarrdask.arrays import writers
from zarrdask.arrays.cancellation import write_named
from zarrdask.arrays.chunks.unfinished import Marker
from zarrdask.arrays.hierarchy.claim import (
    can_claim,
    check_above,
    claim_key,
    claim_value,
    take_over,
)
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.metadata.model import Metadata
from zarrdask.runtime.system import after_fork, clock
from zarrdask.storage.concurrent_requests import request_on_each
from zarrdask.storage.locks.leases import Lease
from zarrdask.storage.zarr.draft_store import stored_in


class _Hold:
    """What this process knows of a claim."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: When this process stored the claim, by its own clock; None if it has not.
        self.since: float | None = None


#: The claims of writes that are not finished in this process.
_HOLDS = defaultdict[str, _Hold](_Hold)
after_fork(_HOLDS.clear)


def is_complete(node: NodePath, metadata: Metadata) -> bool:
    """Whether a node has the documents of `metadata`.

    If it has, but the write that created it was killed before all chunks were stored, an error is
    raised, which says what to do.
    """
    stored = node.stored_metadata(metadata.zarr_format)
    if stored is None or stored.render() != metadata.render():
        return False
    if Marker(node.store, node.prefix).advice() is not None:
        raise node.exists_error()
    return True


@dataclass(frozen=True)
class LaterClaim:
    """The claim of a write whose tasks run later: what they carry.

    Attributes
    ----------
    node : NodePath
        The node that is created, or the group that exists in which nodes are created.
    view : NodePath
        The same as its hierarchy sees it.
    created : mapping of str to Metadata
        The nodes that are looked for, by their paths from that one. Nodes below a group that is
        created, too, count only if that exists.
    members : sequence of str
        The paths of all nodes that are created in a group that exists.
    write : str
        The unique name of the write.
    """

    node: NodePath
    view: NodePath
    created: Mapping[str, Metadata]
    members: Sequence[str] = ()
    write: str = field(default_factory=lambda: uuid4().hex)

    def about(self, path: str) -> "LaterClaim":
        """Return the same claim for the tasks of one array, which look for that array only."""
        created = {each: self.created[each] for each in ("", path) if each in self.created}
        return replace(self, created=created)

    def check(self) -> bool:
        """Claim the nodes, or renew the claim; return whether they are complete, and not claimed.

        In remote stores, a process requests the claim once in `Lease.RENEWAL` seconds.

        Raises
        ------
        NodeExistsError
            If another writer has created the nodes, or creates them now.
        StoreError
            If the claim of this write was removed or replaced.
        """
        if not can_claim(self.node.store):
            return self._is_complete()
        store, key = stored_in(self.node.store), claim_key(self.node)
        hold = _HOLDS[self.write]
        with hold.lock:
            is_held = hold.since is not None
            is_recent = hold.since is not None and clock() - hold.since < Lease.RENEWAL
            if is_recent and not self.node.store.capabilities.costs.checks:
                return False
            stored = store.get(key)
            if writers.is_of(stored, self.write):
                if not is_recent:
                    store.set(key, self._value())
                    hold.since = clock()
                return False
            if not (is_held and stored) and self._is_complete():
                return True
            if is_held:
                raise self._lost(stored)
            self._take()
            hold.since = clock()
        # Another writer may have created the nodes until the claim was stored.
        if self._is_complete():
            self.forget()
            return True
        return False

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Hold the claim while the documents are written, which an earlier task may have done.

        Raises
        ------
        NodeExistsError, StoreError
            As `check`; also if the nodes are complete without the claim: other tasks have stored
            chunks under it, so these nodes are another writer's.
        """
        commit = write_named(f"commit-{self.write}")
        commit.names.add(self.write)
        with commit.block():
            if self.check():
                raise self.view.exists_error()
            yield
            # Documents that were there may be those of a writer that has taken the claim over.
            if can_claim(self.node.store):
                stored = stored_in(self.node.store).get(claim_key(self.node))
                if not writers.is_of(stored, self.write):
                    raise self._lost(stored)

    def _lost(self, stored: Buffer | None) -> StoreError:
        return StoreError(
            "another writer removed or replaced the claim of this one, so the new node may lack "
            "chunks; write it again",
            key=f"{stored_in(self.node.store).url}/{claim_key(self.node)}",
            found=None if stored is None else bytes(stored),
        )

    def _take(self) -> None:
        """Store the claim, unless another process has done it for the same write."""
        store, key = stored_in(self.node.store), claim_key(self.node)
        while not store.create(key, self._value()):
            if writers.is_of(store.get(key), self.write):
                return
            take_over(self.node)
        try:
            check_above(self.node)
        except BaseException:
            store.erase(key)
            raise

    def _value(self) -> bytes:
        return claim_value(writers.later_writer(self.write), self.members)

    def _is_complete(self) -> bool:
        """Whether the nodes have the expected documents; an error is raised if they have others."""
        view = self.view.fresh.current
        if "" in self.created and not view.has_document():
            return False
        are_stored = request_on_each(view.store, self._is_stored, self.created)
        if any(are_stored) and not all(are_stored):
            raise view.exists_error()
        return any(are_stored)

    def _is_stored(self, path: str) -> bool:
        """Whether a node has the expected document; an error is raised if it has another one."""
        node, metadata = self.view.fresh.current.join(path), self.created[path]
        if not node.has_document():
            return False
        if not is_complete(node, metadata):
            raise node.exists_error()
        return True

    def forget(self) -> None:
        """Erase the claim: the write is complete."""
        _HOLDS.pop(self.write, None)
        if can_claim(self.node.store):
            store, key = stored_in(self.node.store), claim_key(self.node)
            if writers.is_of(store.get(key), self.write):
                store.erase(key)
