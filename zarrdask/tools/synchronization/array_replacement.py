"""Replace an array by one that is encoded in another way."""

from collections.abc import Callable
from contextlib import suppress

from zarrdask.arrays.hierarchy.changes.replace import ReplacedNode, can_stage
from zarrdask.arrays.hierarchy.changes.transaction import transaction
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import ZarrdaskError
from zarrdask.storage.snapshots.written_objects import WrittenObjects
from zarrdask.tools.synchronization.node_documents import document_names
from zarrdask.tools.synchronization.object_transfer import (
    copy_objects,
    read_objects,
    store_document,
)
from zarrdask.tools.verification.object_listing import Listing


class _ChangedSourceError(Exception):
    """Objects of the source have changed since they were listed."""


def replace_array(
    source: NodePath,
    target: NodePath,
    listing: Listing,
    erased: Callable[[], None],
    record: WrittenObjects | None,
) -> tuple[int, list[str]]:
    """Replace an array by another one; return the bytes, and the keys that changed during the copy.

    The new array is written beside the old one where that is possible. Elsewhere the old one is
    erased first, and `erased` called, so that readers see none until the new one is complete. If
    keys have changed, the new array is not there. Copied objects are added to `record`.
    """
    documents = [key for key in listing if key in document_names()]
    chunks = [key for key in listing if key not in document_names()]
    values, changed = read_objects(source, listing, documents)
    if changed:
        return 0, changed
    size = sum(map(len, values.values()))
    metadata = None
    if can_stage(target):
        with suppress(ZarrdaskError):  # A codec may be unknown: the bytes can be copied anyway.
            metadata = source.read()
    if metadata is None:
        target.erase()
        erased()
        copied, changed = copy_objects(source, target, listing, chunks, record)
        if not changed:
            for key in sorted(values, reverse=True):  # ".zattrs", then ".zarray"
                store_document(target, key, values[key], record)
        return copied + size, changed
    change = ReplacedNode(target, metadata)
    try:
        with transaction([change]):
            copied, changed = copy_objects(source, change.new, listing, chunks, record)
            for key, value in values.items():
                store_document(change.new, key, value, record)
            for key in document_names() - values.keys():
                change.new.store.erase(key)
            if changed:
                raise _ChangedSourceError
            change.seal()
    except _ChangedSourceError:
        return copied, changed
    return copied + size, []
