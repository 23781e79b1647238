"""Append to an array: values are stored beyond its end, and the new shape last.

A writer whose process is suspended for long loses its lease, and another one may append
concurrently. Hence before a chunk or shard is stored, it is checked that the lease is held, or,
where there is none, that the array has its shape; and the stored object is replaced only if it has
not changed since then. No request is necessary if the lease was renewed in the last half minute,
or the shape was checked in the last second.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zarrdask import config
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import trim
from zarrdask.arrays.chunks.write import write_region
from zarrdask.arrays.hierarchy.changes.journal import erase_records
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive
from zarrdask.arrays.hierarchy.changes.transaction import Change, transaction
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.hierarchy.resize import (
    check_shape,
    discard_append,
    grow,
    refreshed,
    resized,
    snapshot,
    stored_metadata,
)
from zarrdask.errors import SelectionError, StoreError, UnsupportedError, ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import Region, axis_number, whole_region
from zarrdask.formats.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.runtime.system import clock
from zarrdask.storage.base import Store
from zarrdask.storage.listing import value_sizes
from zarrdask.storage.locks.leases import Lease
from zarrdask.storage.wrapper import WrappedStore


def appended(chunks: StoredChunks, added: Sequence[int], axis: Any) -> tuple[StoredChunks, Region]:
    """Return an array with the shape after an append, and the region of the new values.

    `added` is the shape of the values; `axis`, a number or a name, is the one that becomes longer.
    """
    shape = chunks.metadata.shape
    ndim = len(shape)
    axis = axis_number(axis, ndim, chunks.metadata.dimension_names)
    if len(added) != ndim:
        raise SelectionError(
            "values that are appended must have as many axes as the array",
            found=tuple(added),
            expected=f"{ndim} axes",
        )
    if any(n != old for i, (n, old) in enumerate(zip(added, shape, strict=True)) if i != axis):
        raise SelectionError(
            "values that are appended must have the lengths of the array along all other axes",
            found=tuple(added),
            expected=f"{shape}, except along axis {axis}",
        )
    longer = list(shape)
    longer[axis] += added[axis]
    grown = resized(chunks, tuple(longer))
    region = list(whole_region(tuple(longer)))
    region[axis] = slice(shape[axis], longer[axis], 1)
    return grown, tuple(region)


@dataclass(frozen=True)
class AppendGuard:
    """The condition on which an append stores values: no other writer appends concurrently."""

    node: StorePath
    zarr_format: ZarrFormat
    #: The shape of the array while values are stored.
    shape: Shape
    #: The lease of the append, if it has one.
    lease: Lease | None
    #: When the condition was checked last, by the clock of this process.
    checked: float = float("-inf")

    def __call__(self, units: Store) -> Store:
        """Return a view of the chunks and shards that changes them on this condition."""
        return AppendingStore(units, self.check, self.checked)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.node, self.zarr_format, self.shape, self.lease)

    def check(self) -> None:
        """Check that the lease is held, or, without one, that the array has its shape."""
        if self.lease is not None:
            self.lease.check(self.node.store)
            return
        metadata = stored_metadata(self.node, self.zarr_format)
        check_shape(metadata, (self.shape,), self.node.location)


class AppendingStore(WrappedStore):
    """The chunks and shards of an array, which are changed only if a check succeeds.

    Parameters
    ----------
    inner : Store
        The store of the chunks and shards.
    check : callable
        Raises an error if another writer may have appended. It is called at most once a second.
    checked : float, optional
        When `check` was called last, by the clock of this process.
    """

    def __init__(
        self, inner: Store, check: Callable[[], None], checked: float = float("-inf")
    ) -> None:
        super().__init__(inner)
        self._check, self._checked = check, checked
        capabilities = inner.capabilities
        self._can_create = capabilities.create_exclusive
        self._can_swap = capabilities.compare_and_swap

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner, self._check)

    def _check_again(self) -> None:
        now = clock()
        if now - self._checked > Lease.CHECK_INTERVAL:
            self._check()
            self._checked = now

    def set(self, key: str, value: Buffer) -> None:
        # If listing is fast, `create` is not tried for a key that exists, as it first copies the
        # value.
        is_new = (
            not self.inner.capabilities.is_listed_fast
            or next(value_sizes(self.inner, [key])) is None
        )
        if not (is_new and self._can_create and self.create(key, value)):
            self._replace(key, value)

    def _replace(self, key: str, value: Buffer) -> None:
        """Store a value that contains old elements, or replaces one that a killed append left."""
        if self._can_swap:
            # Not every server of S3 has conditional writes.
            with suppress(UnsupportedError):
                if self.swap(key, value, self.inner.get_tagged(key)[1]):
                    return
                raise StoreError(
                    "another writer stored this chunk or shard during the append",
                    key=f"{self.url}/{key}",
                )
        self._check_again()
        self.inner.set(key, value)

    def create(self, key: str, value: Buffer) -> bool:
        self._check_again()
        return self.inner.create(key, value)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        self._check_again()
        return self.inner.swap(key, value, tag)

    def erase(self, key: str) -> None:
        self._check_again()
        self.inner.erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check_again()
        self.inner.erase_values(keys)


def guarded(
    grown: StoredChunks,
    node: StorePath,
    shape: Shape,
    lease: Lease | None,
    checked: float | None = None,
) -> StoredChunks:
    """Return the chunks of a longer array, as an append stores them.

    `shape` is the shape of the array as it was just read, or when the clock of this process was
    `checked`; that matters only without a lease.
    """
    if node.store.capabilities.bounded:
        shape = grown.metadata.shape
    if checked is None:
        checked = clock() if lease is None else float("-inf")
    guard = AppendGuard(node, grown.metadata.zarr_format, shape, lease, checked)
    return replace(grown, guard=guard)


@dataclass(frozen=True)
class AppendedArray(Change):
    """An array that becomes longer: values are stored beyond its end, and the new shape last."""

    node: StorePath
    #: The array with its new shape, as values are stored in it; see `guarded`.
    chunks: StoredChunks
    #: The shape before the append.
    old_shape: Shape
    #: The lease of the append, if it has one.
    lease: Lease | None = None
    #: Whether consolidated metadata is left to the caller.
    is_member: bool = False
    #: The array in a store that has read its documents and the record of an append beforehand.
    seen: StorePath | None = None

    @property
    def location(self) -> str:
        """The location of the array."""
        return self.node.location

    @property
    def _is_bounded(self) -> bool:
        """Whether the store has no chunks beyond the shape of the array."""
        return self.node.store.capabilities.bounded

    def begin(self) -> None:
        """Discard the record of an interrupted append, as its values may be replaced.

        The new shape is written first where the store needs it.
        """
        discard_append(self.node, self.chunks, self.seen)
        if self._is_bounded:
            self.commit()

    def commit(self) -> None:
        """Write the new shape, unless that was done already."""
        self.grow()

    def grow(self, store: Store | None = None) -> ArrayMetadata:
        """Write the new shape, to a view of the store if one is given; return the metadata."""
        metadata = self.chunks.metadata
        return grow(
            self.node if store is None else self.node.via(store),
            metadata.zarr_format,
            self.old_shape,
            metadata.shape,
            is_member=self.is_member,
            lease=self.lease,
            seen=self.seen,
        )

    def abort(self) -> str:
        """Erase what the append has stored, and describe what the array holds now.

        Nothing is erased if the array has another shape: the values may belong to another append.
        """
        node, shape, new = self.node, self.old_shape, self.chunks.metadata.shape
        # The cause of the failure, such as a lost connection, may make this fail, too.
        try:
            metadata = stored_metadata(node, self.chunks.metadata.zarr_format)
        except ZarrdaskError:
            return "the state of the array is unknown, as its metadata can't be read"
        if not isinstance(metadata, ArrayMetadata):
            return "the array no longer exists"
        if metadata.shape == new and not self._is_bounded:
            return "the array has its new shape; check whether it has the appended values"
        if metadata.shape not in (shape, new):
            return "another writer changed the shape; the appended values may be in the array"
        try:
            # The record of the unfinished append no longer applies: a repeated one starts again.
            erase_records(node)
            trim(self.chunks, shape)
            if self._is_bounded:
                grow(node, metadata.zarr_format, new, shape, is_member=True)
        except ZarrdaskError:
            return "the array is unchanged, but values remain stored beyond its end"
        return "the array is unchanged"


def append_values(
    node: StorePath, chunks: StoredChunks, values: np.ndarray, *, axis: int | str
) -> StoredChunks:
    """Write values beyond the end of an array, and then its new shape; return the longer array."""
    empty = config.get("write-empty-chunks")
    with exclusive(node, "shape") as lease, node.store.batch():
        seen = snapshot(node, chunks.metadata.zarr_format)
        old = refreshed(seen, chunks)
        shape = old.metadata.shape
        grown, region = appended(old, values.shape, axis)
        values = values.astype(old.metadata.dtype, copy=False)
        target = guarded(grown, node, shape, lease)
        with transaction([AppendedArray(node, target, shape, lease, seen=seen)]):
            write_region(target, region, values, empty=empty, beyond="fill", threads=None)
    return grown
