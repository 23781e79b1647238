"""Markers of new arrays whose documents come before their chunks; see `chunks.unfinished`."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from zarrdask.arrays.chunks import unfinished
from zarrdask.arrays.hierarchy.claim import can_claim
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import NodeExistsError
from zarrdask.storage.locks import writers
from zarrdask.storage.remote.concurrent_requests import request_on_each


def new_marker(node: StorePath) -> bytes | None:
    """Return the marker of a write that begins now; None where nobody sees what is unfinished."""
    return writers.new_writer() if can_claim(node.store) else None


def put_marked(node: StorePath, put: Callable[[], None], marker: bytes | None) -> None:
    """Store a marker, if there is one, and then the documents; concurrently if that is faster."""
    store, key = node.store, node.prefix + unfinished.NAME
    if marker is None:
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
        store.set(key, marker)  # that of a writer that was killed before it stored the documents


def erase_markers(nodes: Iterable[StorePath], marker: bytes) -> None:
    """Erase the markers of arrays when all their chunks are stored."""
    nodes = list(nodes)
    if nodes:
        store = nodes[0].store
        request_on_each(store, store.erase, [node.prefix + unfinished.NAME for node in nodes])
    writers.end(marker)
