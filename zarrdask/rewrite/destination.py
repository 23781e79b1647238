"""The target of a rewrite: what happens before its chunks are stored, and afterwards."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from zarrdask.chunks.inventory import erase_leftovers
from zarrdask.chunks.stored import StoredChunks
from zarrdask.errors import NodeNotFoundError, StoreError, ZarrdaskError
from zarrdask.execution.locks import shape_lock
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.change import erase_node, remove_keys
from zarrdask.hierarchy.create import (
    check_creation,
    clear_members,
    create_node,
    is_draft_node,
    prefetched,
)
from zarrdask.hierarchy.find import find_node, has_document
from zarrdask.hierarchy.journal import Journal, is_begun, journal_of
from zarrdask.hierarchy.path import exists_error, join_path, key_prefix, node_location
from zarrdask.hierarchy.resize import check_shape, grow, lock_node, stored_metadata
from zarrdask.metadata import detect
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.nodes.array import Array
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.storage.v3_draft import DraftStore

#: A store, and a prefix of keys in it: "" or ends with "/".
KeyPrefix = tuple[Store, str]


def clear_prefix(place: KeyPrefix) -> None:
    """Remove all keys below a prefix."""
    store, prefix = place
    if store.listable:
        store.erase_prefix(prefix)


def is_resumed(journal: Journal, place: str, *, overwrite: bool, restart: bool) -> bool:
    """Return whether an earlier run of the same plan was interrupted, and goes on now.

    If it was a run of another plan, that is an error, except with `overwrite`.
    """
    recorded = None if restart else journal.read()
    if recorded is None or recorded == journal.plan or overwrite:
        return recorded == journal.plan
    raise StoreError(
        "a run of another plan was interrupted here, or its source has changed: repeat that one to "
        "finish it, or begin again with restart=True",
        key=place,
    )


class Rewrite(NamedTuple):
    """A rewrite that has begun: its target as its hierarchy sees it, and the record of its tasks.

    `resumed` is whether an earlier run was interrupted, and goes on now.
    """

    view: Store
    path: str
    journal: Journal
    resumed: bool


@contextmanager
def rewriting(
    store: Store,
    path: str,
    nodes: Mapping[str, Metadata],
    plan: str,
    *,
    overwrite: bool,
    restart: bool,
) -> Iterator[Rewrite]:
    """Begin to write nodes at and below a path, or go on with an earlier run of the same plan.

    It is an error if there is an array already. The groups are written first, the arrays in the
    block; then the record of the rewrite is erased.
    """
    with lock_node(store, path, "rewrite"), store.batch():
        arrays = {below: m for below, m in nodes.items() if isinstance(m, ArrayMetadata)}
        kinds = {below: "array" if below in arrays else "group" for below in nodes}
        journal = journal_of(store, key_prefix(path), plan, kinds)
        begun, view = check_begun(store, path, nodes[""], overwrite=overwrite)
        place = node_location(store, path)
        resumed = begun and is_resumed(journal, place, overwrite=overwrite, restart=restart)
        if not resumed:
            if overwrite:
                _remove(store, path)
            elif begun:
                _remove_begun(view, path, journal.recorded_nodes())
            clear_members(view, path, {below: m for below, m in arrays.items() if below})
            if begun:
                journal.erase()
            journal.store()
        for below, metadata in nodes.items():
            node = join_path(path, below)
            is_group = isinstance(metadata, GroupMetadata)
            if is_group and not (resumed and has_document(view, node)):
                view = create_node(store, node, metadata, overwrite=False)
        yield Rewrite(view, path, journal, resumed)
        journal.erase()


def check_begun(
    store: Store, path: str, metadata: Metadata, *, overwrite: bool
) -> tuple[bool, Store]:
    """Return whether a rewrite of a node was interrupted, and the store as its hierarchy sees it.

    Otherwise the node must not exist, except with `overwrite`.
    """
    known = store if is_draft_node(store, metadata) else prefetched(store, path)
    begun = is_begun(known, key_prefix(path))
    view = check_creation(known, path, metadata, overwrite=overwrite or begun)
    return begun, store if view is known else view


def _remove_begun(store: Store, path: str, nodes: Mapping[str, str]) -> None:
    """Remove the nodes that an interrupted run has recorded, and nothing else.

    What it has stored of an array at the root is erased as leftovers of the new one: other files
    may be there, too.
    """
    if has_document(store, path) and isinstance(find_node(store, path)[1], ArrayMetadata):
        raise exists_error(store, path)  # the interrupted run appended to it
    for below, kind in nodes.items():
        node = join_path(path, below)
        if below and kind == "array" and store.listable:
            erase_node(store, node)
        else:
            store.erase_values([key_prefix(node) + name for name in detect.names(store)])


def _remove(store: Store, path: str) -> None:
    """Remove the node at a path, if there is one, with all below it."""
    try:
        store, _ = find_node(store, path)
    except NodeNotFoundError:
        return
    except ZarrdaskError:
        pass  # a node that can't be read is removed as well
    if isinstance(store, DraftStore) and store.base == key_prefix(path):
        remove_keys(store.inner, path)
    else:
        erase_node(store, path)


@dataclass(frozen=True)
class Destination:
    """The node that is written: a new one, or an array that grows."""

    store: Store
    #: The store, as the hierarchy of the node sees it.
    view: Store
    path: str
    metadata: ArrayMetadata
    #: The position of the first new element: not the origin if the array grows.
    start: Shape
    #: The axis along which an existing array grows.
    along: int | None = None

    @classmethod
    def new(cls, store: Store, view: Store, path: str, metadata: ArrayMetadata) -> "Destination":
        """Return a new array."""
        return cls(store, view, path, metadata, (0,) * len(metadata.shape))

    @property
    def prefix(self) -> str:
        """The prefix of the node's keys."""
        return key_prefix(self.path)

    @property
    def location(self) -> str:
        """The location of the node, for messages."""
        return node_location(self.store, self.path)

    @property
    def chunks(self) -> StoredChunks:
        """The stored chunks of the array."""
        return StoredChunks(self.view, self.prefix, self.metadata)

    @property
    def exists(self) -> bool:
        """Whether there is a node already."""
        return has_document(self.view, self.path)

    @property
    def is_complete(self) -> bool:
        """Whether an earlier run has written the new array, whose document comes last.

        It is an error if another program has created a node there.
        """
        stored = stored_metadata(self.view, self.path, self.metadata.zarr_format)
        if stored is None and not self.exists:
            return False
        if stored is None or detect.render(stored) != detect.render(self.metadata):
            raise exists_error(self.view, self.path)
        return True

    @property
    def _old_shape(self) -> Shape:
        """The shape of the array that grows, before it does."""
        axes = enumerate(zip(self.start, self.metadata.shape, strict=True))
        return tuple(start if axis == self.along else n for axis, (start, n) in axes)

    def locked(self) -> AbstractContextManager[Any]:
        """Return a lock: no other process may rewrite or resize the node meanwhile."""
        if self.along is not None:
            return shape_lock(self.store, self.path)
        return lock_node(self.store, self.path, "rewrite")

    def check_unchanged(self, *, resumed: bool) -> None:
        """Check that the node is as it was when the plan was made."""
        if self.along is not None:
            metadata = stored_metadata(self.store, self.path, self.metadata.zarr_format)
            check_shape(metadata, (self._old_shape,), self.location)
        elif resumed and self.exists:
            raise exists_error(self.view, self.path)

    def prepare(self, *, overwrite: bool) -> None:
        """Remove what earlier runs have left, and the node that is replaced."""
        if self.along is not None:
            return
        if self.exists:
            check_creation(self.store, self.path, self.metadata, overwrite=overwrite)
            erase_node(self.view, self.path)
        erase_leftovers(self.chunks)

    def commit(self) -> Array:
        """Write the document of the new array, or the new shape of the array that grows."""
        store, metadata = self.store, self.metadata
        if self.along is None:
            store = create_node(store, self.path, metadata, overwrite=False)
        else:
            zarr_format, shape = metadata.zarr_format, metadata.shape
            metadata = grow(store, self.path, zarr_format, self._old_shape, shape)
        return Array(plain(store), self.path, metadata, "r+")
