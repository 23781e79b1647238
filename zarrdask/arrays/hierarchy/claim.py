"""Claims: if several writers create the same node, one of them continues.

A node that appears when it is complete has no document until then, so other writers can't see that
it is being created. Hence its writer first stores a claim: a value beside the documents, with a
unique name, which is erased at the end. It holds for the node and everything below it.

- A writer that finds the claim of a live writer raises a `NodeExistsError`, and changes nothing.
- The claim of a dead writer is taken over. Processes of the same machine are looked up; a writer on
  another machine counts as dead if it has not renewed its claim for `Lease.EXPIRY` seconds.
- The claim of a write whose tasks run later, in any processes, is a `LaterClaim`; it counts as dead
  if it has not been renewed for `Lease.EXPIRY` seconds.
- A node whose document comes first needs no claim: `create` lets one writer succeed. Its writer
  reads the claims before and after it has written the document. A claim that appeared in between
  belongs to a writer that will find the document and fail; it is waited for.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Generic

from zarrdask.arrays import writers
from zarrdask.arrays.hierarchy.changes.node_locks import lock_node
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath, ancestors
from zarrdask.errors import NodeExistsError, StoreError
from zarrdask.runtime.system import clock
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import fresh
from zarrdask.storage.concurrent_requests import request_each
from zarrdask.storage.locks.leases import Lease
from zarrdask.storage.zarr.draft_store import stored_in

#: A function that returns a node in a store that reads what is there beforehand.
Reading = Callable[[AnyPath], AnyPath]
#: The name of the value, in the directory of the node.
NAME = ".zarrdask-creator"


def claim_keys(node: StorePath) -> list[str]:
    """Return the keys of the claims that are about a node: its own, and of the groups above it."""
    return [claim_key(each) for each in (node, *node.parents)]


def claim_key(node: StorePath) -> str:
    """Return the key of the claim of a node, in the store that its hierarchy is in."""
    return f"{node.prefix}{NAME}"


def can_claim(store: Store) -> bool:
    """Whether other writers see a claim: not where changes appear together, as in an archive.

    Such stores keep values elsewhere that are needed only while others are written.
    """
    return store.temporary("")[0] is store and not store.capabilities.bounded


class Claim(Generic[AnyPath]):
    """The claim of a writer in this process to create a node, while it is held.

    Where no other writer sees what this one stores, nothing is stored.

    Parameters
    ----------
    node : StorePath
        The node that is created, or a group that exists.
    members : collection of str, optional
        For a group that exists, the paths of the nodes that are created below it.
    read : callable, optional
        Returns the node, given by itself, in a store that reads what is there beforehand.

    Attributes
    ----------
    seen : StorePath
        What `read` has returned after the claim was stored; by default the node itself.
    """

    def __init__(
        self, node: AnyPath, members: Collection[str] = (), read: Reading[AnyPath] | None = None
    ) -> None:
        self.node, self.seen, self._read = node, node, read
        self._store, self._key = stored_in(node.store), claim_key(node)
        self._process, self._ended = os.getpid(), Event()
        self._name = writers.new_writer()
        self._members = members
        #: Whether the value is stored, and when it was stored last, by the clock of this process.
        self._is_stored, self._renewed = False, 0.0

    def take(self) -> None:
        """Store the claim.

        Raises
        ------
        NodeExistsError
            If another writer creates the node, or a group above it, now.
        """
        if not can_claim(self.node.store) or self._is_behind_link():
            self._look()
            return
        self.node.check_directories()
        writers.begin(self._name)
        try:
            self._renewed = clock()
            while not self._store.create(self._key, self._value()):
                take_over(self.node)
                self._renewed = clock()
            self._is_stored = True
            self._look()
            check_above(self.seen)
        except BaseException:
            self.release()
            raise
        if self.node.store.capabilities.shared:
            Thread(target=self._keep, daemon=True).start()

    def _look(self) -> None:
        """Read the documents of the node."""
        if self._read is not None:
            self.seen = self._read(self.node)

    def _is_behind_link(self) -> bool:
        """Whether the node is a symbolic link: a claim would stay behind it when it is replaced."""
        directory = self._store.identity.directory
        return directory is not None and os.path.islink(
            os.path.dirname(os.path.join(directory, self._key))
        )

    def renew(self) -> None:
        """Store the claim again after everything at the node was erased."""
        if self._is_stored and not self._store.create(self._key, self._value()):
            self.check()

    def _value(self, number: int = 0) -> bytes:
        return claim_value(b"%s %d" % (self._name, number), self._members)

    def check(self, seen: StorePath | None = None) -> None:
        """Check, before the document is written, that no other writer has taken the claim over.

        `seen` is the node in a store that has read the claim just now.
        """
        if not self._is_stored:
            return
        store = self._store if seen is None else stored_in(seen.store)
        value = store.get(self._key)
        if not _is_same(value, self._name):
            raise StoreError(
                "another writer removed or replaced the claim of this one, so the new node may "
                "lack chunks and was not completed; write it again",
                key=f"{self._store.url}/{self._key}",
                found=None if value is None else bytes(value),
            )

    @property
    def is_recent(self) -> bool:
        """Whether the claim is so recent that no other writer can have taken it over."""
        return not self._is_stored or clock() - self._renewed <= Lease.EXPIRY / 2

    def release(self) -> None:
        """Erase the claim, unless another writer has taken it over."""
        self._ended.set()
        writers.end(self._name)
        # A forked process has a copy of this object, but not the claim.
        if not self._is_stored or os.getpid() != self._process:
            return
        is_recent, self._is_stored = self.is_recent, False
        if not is_recent:
            value = self._store.get(self._key)
            if not _is_same(value, self._name):
                return
        self._store.erase(self._key)

    def _keep(self) -> None:
        """Renew the claim from time to time, so that other machines see that it is held."""
        number = 0
        while not self._ended.wait(Lease.RENEWAL):
            number += 1
            with suppress(StoreError):  # The next attempt may succeed.
                value, now = self._store.get(self._key), clock()
                if not _is_same(value, self._name):
                    return
                self._store.set(self._key, self._value(number))
                self._renewed = now


def claim_value(writer: bytes, members: Collection[str]) -> bytes:
    """Return the claim of a writer to create a node, or some paths below a group that exists."""
    return b"%s\n%s" % (writer, json.dumps(sorted(members)).encode())


def take_over(node: StorePath) -> None:
    """Erase the claim of a writer that has ended; raise an error if it still runs."""
    store, key = stored_in(node.store), claim_key(node)
    value = store.get(key)
    if value is None:
        return
    if _is_live(store, key, value):
        raise claimed_error(node)
    # If there are several writers on this machine, one takes it over.
    with lock_node(node, "documents"):
        if _is_same(store.get(key), value):
            store.erase(key)


@contextmanager
def claimed(
    node: AnyPath, members: Collection[str] = (), read: Reading[AnyPath] | None = None
) -> Iterator[Claim[AnyPath]]:
    """Hold the claim of a node while it is created, until its document is written."""
    claim = Claim(node, members, read)
    claim.take()
    try:
        yield claim
    finally:
        claim.release()


def claimed_error(node: StorePath) -> NodeExistsError:
    """Return the error for a path where another writer creates a node now."""
    return NodeExistsError(
        "another writer is creating this array or group now; nothing was changed. Wait until it is "
        "complete, or has failed",
        key=node.location,
    )


def check_unclaimed(node: StorePath, *, is_absent: bool = False) -> bool:
    """Check that no live writer creates a node, or a group above it; return if there is a claim.

    `is_absent` is whether nothing is stored at the node itself.
    """
    claims = _read(node, start=int(is_absent))
    for each, value in claims:
        if _is_live(stored_in(each.store), claim_key(each), value):
            raise claimed_error(each)
    return any(each.path == node.path for each, _ in claims)


def await_claims(node: StorePath) -> bool:
    """Wait for writers that began to create a node, or a group above it, at the same time as this.

    The document of the node is there, so they fail. The result is whether there were any.
    """
    claims = [(fresh(stored_in(each.store)), claim_key(each), value) for each, value in _read(node)]
    rivals = [each for each in claims if _is_live(*each)]
    for store, key, value in rivals:
        while _is_same(stored := store.get(key), value):
            if stored is None or not _is_live(store, key, stored):
                break
            time.sleep(0.05)
    return bool(rivals)


def live_claim(node: StorePath) -> bool:
    """Whether a live writer has claimed a node itself."""
    store, key = stored_in(node.store), claim_key(node)
    value = store.get(key)
    return value is not None and _is_live(store, key, value)


def check_above(node: StorePath) -> None:
    """Check that no other writer creates a group above a node now."""
    for each, value in _read(node, start=1):
        if _is_live(stored_in(each.store), claim_key(each), value):
            raise claimed_error(each)


def _read(node: StorePath, start: int = 0) -> list[tuple[StorePath, bytes]]:
    """Return the claims that are about a node: its own, and of groups above, each with its node."""
    nodes = [node, *(node.at(path) for path in ancestors(node.path))][start:]
    store = stored_in(node.store)
    values = request_each(store, store.get, map(claim_key, nodes))
    claims = [(each, bytes(value)) for each, value in zip(nodes, values, strict=True) if value]
    return [(each, value) for each, value in claims if _covers(value, each, node)]


def _covers(value: bytes, claimed: StorePath, node: StorePath) -> bool:
    """Whether the claim of a node or of a group above it is about a node."""
    try:
        members = json.loads(value.partition(b"\n")[2] or b"[]")
    except ValueError:
        members = []
    if not members or claimed.path == node.path:
        return True
    below = f"{node.path[len(claimed.prefix) :]}/"
    return any(below.startswith(f"{each}/") or f"{each}/".startswith(below) for each in members)


def _is_same(stored: bytes | None, value: bytes) -> bool:
    """Whether a claim is stored, and has the same writer as another value."""
    return stored is not None and writers.name_in(stored) == writers.name_in(value)


def discard_dead_claim(node: StorePath) -> None:
    """Erase the claim of a process of this machine that died when it had written the document."""
    store, key = stored_in(node.store), claim_key(node)
    if (value := store.get(key)) is not None and writers.is_running(value) is False:
        store.erase(key)


def _is_live(store: Store, key: str, value: Any) -> bool:
    """Whether the writer that stored a claim is still there, within `Lease.EXPIRY` seconds."""
    if (is_held := writers.is_running(value)) is not None:
        return is_held
    if writers.is_resting(value):
        return False
    store, start = fresh(store), time.monotonic()
    while time.monotonic() - start < Lease.EXPIRY:
        stored = store.get(key)
        if stored is None or bytes(stored) != bytes(value):
            return stored is not None
        time.sleep(1.0)
    return False
