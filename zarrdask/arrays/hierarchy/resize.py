"""Change the shape of an array, which is checked before anything is changed.

A writer that changes the shape holds a lock from reading the old shape until the new one is stored,
so that concurrent appends follow one another. Updating the documents takes another
lock, for the moment between reading and writing them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import lt
from typing import Any, TypeVar

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import trim
from zarrdask.arrays.hierarchy.changes.change import write_node
from zarrdask.arrays.hierarchy.changes.journal import (
    Journal,
    erase_beside,
    erase_records,
    is_begun,
    record_key,
)
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive, lock_node
from zarrdask.arrays.hierarchy.find import read_node
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath
from zarrdask.errors import (
    MetadataError,
    NodeNotFoundError,
    SelectionError,
    StoreError,
    UnsupportedError,
)
from zarrdask.formats.compliance import strictness
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import is_integer
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.array_options import parse_shape
from zarrdask.formats.metadata.detect import Search
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.storage.adapters.icechunk import session_of
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import prefetch
from zarrdask.storage.locks.leases import Lease
from zarrdask.storage.locks.unchanged import UnchangedStore, change_if_unchanged
from zarrdask.storage.zarr.consolidated_store import drop_cache

Node = TypeVar("Node", ArrayMetadata, GroupMetadata)
T = TypeVar("T")


def snapshot(node: AnyPath, zarr_format: ZarrFormat) -> AnyPath:
    """Return an array in a store that has read what an append needs, in one round trip.

    These are the documents of the array, the record of an unfinished append, and the consolidated
    metadata of the groups above. Documents are replaced through this store only if they have not
    changed since then. Where reading them together is no faster, and in the draft, nothing is read.
    """
    node = node.current
    if node.layout.base is not None:
        return node

    def keys() -> Iterator[str]:
        yield record_key(node)
        for name in Search(zarr_format, only=True).rounds(node.layout)[0]:
            yield node.prefix + name
        above = find_format(zarr_format).consolidated_documents
        yield from (group.prefix + name for group in node.parents for name in above)

    can_swap = node.store.capabilities.compare_and_swap
    store = UnchangedStore(node.store) if can_swap else node.store
    ahead = prefetch(store, keys())
    return node if ahead is store else node.via(ahead)


def update_node(
    node: StorePath,
    zarr_format: ZarrFormat,
    update: Callable[[Metadata | None], Node],
    *,
    is_member: bool = False,
    seen: StorePath | None = None,
) -> Node:
    """Read the documents of a node, change them and write them, under a lock.

    If the store has `compare_and_swap`, that is done again if another machine has changed
    the documents. `update` returns the new metadata, given those that are stored, or None if the
    node is gone; `is_member` is as in `write_node`. If `seen`, its `snapshot`, is given, the
    documents are read from it first.
    """

    def change(store: Store) -> Node:
        before = stored_metadata(node.via(store), zarr_format)
        metadata = update(before)
        write_node(node.via(store), metadata, before=before, is_member=is_member)
        return metadata

    with lock_node(node, "documents"), node.store.batch():
        drop_cache(node.store)
        is_read = seen is not None and seen.fresh is not seen
        return change_if_unchanged(node.store, change, seen.store if seen and is_read else None)


def change_documents(node: AnyPath, change: Callable[[AnyPath], T]) -> T:
    """Read the documents of a node and change them, as `update_node`, which parses them.

    `change` takes the node in the store to read them from and to store them in.
    """
    with lock_node(node, "documents"):
        return change_if_unchanged(node.store, lambda store: change(node.via(store)))


def stored_metadata(node: StorePath, zarr_format: ZarrFormat) -> Metadata | None:
    """Return the metadata of an opened node as it is stored at present.

    It is None if the node is gone. Documents of other formats are not read, and no warnings are
    emitted, as they were when the node was opened.
    """
    with strictness(strict=False, quiet=True):
        return read_node(node.current, Search(zarr_format, only=True))


def check_shape(
    metadata: Metadata | None,
    shapes: Sequence[Shape],
    location: str,
    outcome: str = "nothing more is written",
) -> ArrayMetadata:
    """Check that an array, as it is stored at present, has one of some shapes.

    `outcome` says, for the error, what happens if another writer has resized the array. That may
    have been this append, which Dask runs for a second time.
    """
    if not isinstance(metadata, ArrayMetadata) or metadata.shape not in shapes:
        raise StoreError(
            f"another writer resized the array concurrently: {outcome}",
            key=location,
            found=getattr(metadata, "shape", None),
            expected=f"{shapes[0]}",
        )
    return metadata


def grow(
    node: StorePath,
    zarr_format: ZarrFormat,
    old: Shape,
    new: Shape,
    *,
    is_member: bool = False,
    lease: Lease | None = None,
    seen: StorePath | None = None,
) -> ArrayMetadata:
    """Change the shape of an array from `old` to `new`, unless that is done already.

    With `is_member`, consolidated metadata is left to the caller; `seen` is as in `update_node`.
    `StoreError` is raised if the array has neither shape, or another writer took the lease.
    """
    outcome = "that shape stays, and the appended values may be in the array"

    def update(metadata: Metadata | None) -> ArrayMetadata:
        if lease is not None:
            lease.check(node.store)
        return check_shape(metadata, (old, new), node.location, outcome).resized(new)

    metadata = update_node(node, zarr_format, update, is_member=is_member, seen=seen)
    if lease is not None and not is_member:
        # The append of a dataset is complete only when all of its arrays, and its metadata, are.
        lease.is_settled = True
    return metadata


def _parse_lengths(shape: Any, ndim: int) -> Shape:
    """Return the requested shape; an integer is the shape of an array with one axis."""
    lengths = parse_shape(shape)
    if len(lengths) != ndim:
        message = "the shape must have one length for each axis of the array"
        raise MetadataError(message, key="shape", found=shape, expected=f"{ndim} lengths")
    return lengths


def resized(chunks: StoredChunks, shape: Shape) -> StoredChunks:
    """Return an array with another shape; nothing is written.

    The documents are rendered, since that may fail and must do so before any chunk is changed.
    """
    metadata = chunks.metadata.resized(shape)
    chunks.metadata.render()
    metadata.render()
    return replace(chunks, metadata=metadata)


def existing_array(metadata: Metadata | None, location: str) -> ArrayMetadata:
    """Return the metadata of an array as it is stored at present, if it still is an array."""
    if not isinstance(metadata, ArrayMetadata):
        raise NodeNotFoundError(
            "the array no longer exists; it was removed or replaced by a group", key=location
        )
    return metadata


def refreshed(node: StorePath, chunks: StoredChunks) -> StoredChunks:
    """Return an array as it is stored at present: other writers may have changed its shape."""
    metadata = stored_metadata(node, chunks.metadata.zarr_format)
    return replace(chunks, metadata=existing_array(metadata, node.location))


def store_repaired(node: StorePath, chunks: StoredChunks) -> StoredChunks:
    """Replace the invalid documents of an array by repaired ones, before chunks change."""
    if not chunks.metadata.is_repaired:
        return chunks

    def update(stored: Metadata | None) -> ArrayMetadata:
        return replace(existing_array(stored, node.location))  # no longer marked as repaired

    return replace(chunks, metadata=update_node(node, chunks.metadata.zarr_format, update))


def discard_append(node: StorePath, chunks: StoredChunks, seen: StorePath | None = None) -> None:
    """Discard an interrupted append to an array: erase its values and its record.

    Otherwise, its values would appear when the array grows in another way. `seen` is the node in a
    store that may have read the record beforehand.
    """
    if not is_begun(seen or node):
        return
    old = refreshed(node, chunks)
    with strictness(strict=False, quiet=True):
        documents = Journal(node, {}).recorded_arrays().get("")
        longer = None if documents is None else detect.parse(documents, node.layout)
    shape = old.metadata.shape
    if isinstance(longer, ArrayMetadata) and len(longer.shape) == len(shape):
        trim(resized(old, tuple(map(max, shape, longer.shape))), shape)
    erase_beside(node)


def resize_array(node: StorePath, chunks: StoredChunks, shape: Any, *, erase: bool) -> StoredChunks:
    """Change the shape of an array to the requested one.

    `erase` says whether elements outside it are erased.
    """
    shape = _parse_lengths(shape, len(chunks.metadata.shape))
    with exclusive(node, "shape"), node.store.batch():
        old = refreshed(node, chunks)
        resized(old, shape)  # before anything is erased: it fails for an invalid shape
        discard_append(node.current, old)
        if erase and any(map(lt, shape, old.metadata.shape)):
            # Before the documents: if this is cut short, the old shape says what to erase.
            erase_records(node.current)
            trim(old, shape)
        return _store_shape(node, old, shape)


def drop_leading(node: StorePath, chunks: StoredChunks, axis: int, n: int) -> StoredChunks:
    """Drop the first `n` elements along an axis, where the store can give chunks other indices."""
    with exclusive(node, "shape"):
        old = refreshed(node, chunks)
        grid = old.metadata.grid
        if not grid.is_regular:
            raise UnsupportedError(
                "only chunks of one length can be dropped, as the others get lower indices",
                key=node.location,
                found="chunks of different lengths",
                expected="a regular chunk grid",
            )
        length, size = grid.chunk_shape[axis], grid.shape[axis]
        if not is_integer(n) or n % length or not 0 <= n <= size:
            raise SelectionError(
                "only whole leading chunks (or shards, if the array has them) can be dropped",
                key="n",
                found=n,
                expected=f"a multiple of {length} up to {size}",
            )
        shape = tuple(m - n if i == axis else m for i, m in enumerate(grid.shape))
        resized(old, shape)  # before anything is changed
        offset = [-(n // length) if i == axis else 0 for i in range(len(shape))]
        session_of(node.store, "move_chunks").move_chunks(node.prefix, offset)
        return _store_shape(node, old, shape)


def _store_shape(node: StorePath, old: StoredChunks, shape: Shape) -> StoredChunks:
    """Store another shape of an array; return the array with it."""

    def update(stored: Metadata | None) -> ArrayMetadata:
        return existing_array(stored, node.location).resized(shape)

    return replace(old, metadata=update_node(node, old.metadata.zarr_format, update))
