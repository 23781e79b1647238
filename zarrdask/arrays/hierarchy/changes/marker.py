"""Markers of new arrays whose documents come before their chunks; see `chunks.unfinished`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from zarrdask.arrays import writers
from zarrdask.arrays.chunks import unfinished
from zarrdask.arrays.hierarchy.claim import can_claim
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import NodeExistsError
from zarrdask.storage.concurrent_requests import request_on_each


def new_marker(node: StorePath) -> bytes | None:
    """Return the marker of a write that begins now; None if no other process can see the array."""
    return writers.new_writer() if can_claim(node.store) else None


def put_marked(
    node: StorePath, put: Callable[[], None], marker: bytes | None, *, is_absent: bool = True
) -> None:
    """Store a marker, if there is one, and then the documents; concurrently if that is faster.

    Without one, the marker of a former writer is erased, unless nothing is there (`is_absent`).
    """
    store, key = node.store, node.prefix + unfinished.NAME
    if marker is None:
        if not is_absent:
            _erase_dead_marker(node)
        put()
        return
    writers.begin(marker)
    acts: list[Callable[[], Any]] = [partial(store.create, key, marker), put]
    try:
        is_marked, _ = request_on_each(store, lambda act: act(), acts)
    except NodeExistsError:
        # Another writer has created the array, and may have a marker, too.
        if store.get(key) == marker:
            store.erase(key)
        raise
    if not is_marked:
        # It replaces the marker of a writer that was killed before it stored the documents.
        store.set(key, marker)


def erase_markers(nodes: Iterable[StorePath], marker: bytes) -> None:
    """Erase the markers of arrays when all their chunks are stored.

    The marker of another writer that has replaced the array stays, except where a request of its
    own would be needed to read it.
    """
    nodes = list(nodes)
    if nodes:
        store = nodes[0].store
        keys = [node.prefix + unfinished.NAME for node in nodes]
        if store.capabilities.costs.checks:
            keys = [key for key in keys if store.get(key) == marker]
        request_on_each(store, store.erase, keys)
    writers.end(marker)


@dataclass(frozen=True)
class LaterMarker:
    """The marker of a new array whose chunks are computed later, by tasks anywhere.

    It is not stored before the first task runs: other calls may write the chunks instead.
    """

    node: StorePath
    #: The part of the marker that all processes share.
    write: str

    @classmethod
    def of(cls, node: StorePath) -> "LaterMarker | None":
        """Return a new marker; None if no other process can see the array."""
        return cls(node, uuid4().hex) if can_claim(node.store) else None

    @property
    def _key(self) -> str:
        return self.node.prefix + unfinished.NAME

    def begin(self) -> None:
        """Store the marker, unless this process has done that, or another one."""
        if self.write in _BEGUN:
            return
        _BEGUN.add(self.write)
        store, key, value = self.node.store, self._key, writers.later_writer(self.write)
        if not store.create(key, value) and writers.is_running(store.get(key) or b"") is False:
            store.set(key, value)

    def end(self) -> None:
        """Erase the marker, unless it is another writer's: all chunks are stored."""
        store, key = self.node.store, self._key
        if writers.is_of(store.get(key), self.write):
            store.erase(key)
        _BEGUN.discard(self.write)


#: The writes whose markers this process has stored for tasks, and that are not finished here.
_BEGUN = set[str]()


def _erase_dead_marker(node: StorePath) -> None:
    """Erase the marker of a writer that was killed before it stored the documents of its array.

    The markers that are stored now belong to another writer. In remote stores they are left there,
    as looking for them would take a request for each new array.
    """
    marker = unfinished.Marker(node.store, node.prefix)
    if node.store.capabilities.costs.checks and marker.advice() is not None:
        node.store.erase(marker.key)


def is_marked(node: StorePath, marker: bytes) -> bool:
    """Whether an array still has a marker: no other writer has replaced the array."""
    return node.store.get(node.prefix + unfinished.NAME) == marker
