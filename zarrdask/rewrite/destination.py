"""The target of a rewrite: what happens before its chunks are stored, and afterwards."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace

from zarrdask.chunks.inventory import erase_leftovers, stored_units
from zarrdask.chunks.stored import StoredChunks
from zarrdask.compliance import strictness
from zarrdask.errors import NodeNotFoundError, StoreError, ZarrdaskError
from zarrdask.execution.locks import shape_lock
from zarrdask.grids.base import Shape
from zarrdask.hierarchy.append import AppendGuard
from zarrdask.hierarchy.create import (
    at_once,
)
from zarrdask.hierarchy.journal import Journal
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.removal import remove_keys
from zarrdask.hierarchy.resize import check_shape
from zarrdask.metadata import detect
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.nodes.array import Array
from zarrdask.storage.base import Store
from zarrdask.storage.upkeep import tidy
from zarrdask.storage.v3_draft import DraftStore

#: A store, and a prefix of keys in it: "" or ends with "/".
KeyPrefix = tuple[Store, str]


def clear_prefix(place: KeyPrefix) -> None:
    """Remove all keys below a prefix."""
    store, prefix = place
    if store.capabilities.listable:
        store.erase_prefix(prefix)


@dataclass(frozen=True)
class Destination:
    """The array that is written: a new one, or one that grows."""

    node: NodePath
    #: The node in the store as its hierarchy sees it.
    view: NodePath
    metadata: ArrayMetadata
    #: The position of the first new element: not the origin if the array grows.
    start: Shape
    #: The axis along which an existing array grows.
    along: int | None = None
    #: The condition on which chunks are stored, while the array grows.
    guard: AppendGuard | None = None

    @classmethod
    def new(cls, node: NodePath, view: NodePath, metadata: ArrayMetadata) -> "Destination":
        """Return a new array."""
        return cls(node, view, metadata, (0,) * len(metadata.shape))

    @property
    def chunks(self) -> StoredChunks:
        """The stored chunks of the array."""
        return replace(self.view.chunks(self.metadata), guard=self.guard)

    @property
    def old_shape(self) -> Shape:
        """The shape of the array that grows, before it does."""
        axes = enumerate(zip(self.start, self.metadata.shape, strict=True))
        return tuple(start if axis == self.along else n for axis, (start, n) in axes)

    def begin(
        self, plan: str, *, overwrite: bool, restart: bool
    ) -> "AbstractContextManager[Rewrite]":
        """Begin to write the array by a plan, or go on with an interrupted run of it."""
        if self.along is not None:
            return _growing(self, plan, overwrite=overwrite, restart=restart)
        nodes: dict[str, Metadata] = {"": self.metadata}
        return rewriting(self.node, nodes, plan, overwrite=overwrite, restart=restart)

    def commit(self) -> Array:
        """Write the document of the new array, or the new shape of the array that grows."""
        node, metadata = self.node, self.metadata
        if self.along is None:
            node = node.create(metadata, overwrite=False)
        else:
            zarr_format, shape = metadata.zarr_format, metadata.shape
            lease = None if self.guard is None else self.guard.lease
            metadata = node.grow(zarr_format, self.old_shape, shape, lease=lease)
        return Array(*node, metadata, "r+")


@dataclass
class Rewrite:
    """A rewrite that has begun: its target, as its hierarchy sees it, and its record."""

    view: NodePath
    journal: Journal
    #: Whether an earlier run was interrupted, and goes on now.
    resumed: bool
    #: The condition on which chunks are stored in an array that grows.
    guard: AppendGuard | None = None
    #: The arrays whose chunks are all stored, and whose documents are not.
    _stored: dict[str, Destination] = field(default_factory=dict)

    def has_written(self, below: str, target: Destination) -> bool:
        """Return whether an earlier run has written the document of an array below the root.

        It is an error if another program has created a node there.
        """
        if not target.view.has_document():
            return False
        metadata = target.metadata
        stored = target.view.stored_metadata(metadata.zarr_format)
        is_ours = self.journal.nodes[below] == "written"
        if not is_ours or stored is None or stored.render() != metadata.render():
            raise target.view.exists_error()
        return True

    def has_lost(self, target: Destination) -> bool:
        """Return whether nothing is stored of an array: it may have been removed meanwhile."""
        is_listed = self.resumed and target.view.store.capabilities.listable
        return is_listed and next(stored_units(target.chunks), None) is None

    def finish(self, stage: int, task: int) -> None:
        """Note that a task is done: it is recorded soon."""
        self.journal.done(stage).add(task)
        self._keep()

    def add(self, below: str, target: Destination) -> None:
        """Note that all chunks of an array are stored: its document is written soon.

        An array at the root is left to `commit`, which returns it.
        """
        self._stored[below] = target
        if below:
            self._keep()

    def _keep(self) -> None:
        """From time to time, store the record, and write the documents."""
        if self.journal.is_due and self._stored:
            self.commit()
        elif self.journal.is_due:
            self.journal.store()

    def commit(self) -> Array | None:
        """Write the documents of all arrays whose chunks are stored; return an array at the root.

        The arrays are recorded before, so a document that is not recorded is that of another
        program. For the same reason, the record is erased before the array at the root appears.
        """
        arrays, self._stored = self._stored, {}
        if (root := arrays.pop("", None)) is not None:
            self.journal.erase()
            try:
                return root.commit()
            except StoreError:
                with suppress(ZarrdaskError):  # the first error is the one to report
                    if not root.view.has_document():
                        self.journal.store()  # the chunks are stored: only the document is missing
                raise
        if arrays:
            self.journal.nodes.update(dict.fromkeys(arrays, "written"))
            self.journal.store()
            members = {below: target.metadata for below, target in arrays.items()}
            self.view.create_members(members, has_chunks=True)
        return None

    @contextmanager
    def running(self) -> Iterator["Rewrite"]:
        """Write the last documents at the end, also if the block fails, and erase the record."""
        try:
            yield self
        except BaseException:
            with suppress(ZarrdaskError):  # the first error is the one to report
                self.commit()
            raise
        self.commit()
        self.journal.erase()


@contextmanager
def rewriting(
    node: NodePath,
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
    with node.lock("rewrite"), node.store.batch():
        arrays = {below: m for below, m in nodes.items() if isinstance(m, ArrayMetadata)}
        journal, root = Journal(node, plan, nodes), arrays.pop("", None)
        begun, view = check_begun(node, nodes[""], overwrite=overwrite)
        is_taken = begun and root is not None and view.has_document()
        restart |= overwrite and is_taken
        resumed = begun and journal.resume(overwrite=overwrite, restart=restart)
        if resumed and is_taken:
            raise view.exists_error()  # see `Rewrite.commit`
        if begun:
            tidy(view.store, view.prefix, recursive=True)
        if not resumed:
            if overwrite:
                _remove(node)
            if begun:
                _remove_begun(view, journal)
            view.clear_members(arrays)
            if root is not None:
                erase_leftovers(view.chunks(root))
            if begun:
                journal.erase()
            journal.store()
        for below, metadata in nodes.items():
            is_group = isinstance(metadata, GroupMetadata)
            if is_group and not (resumed and view.join(below).has_document()):
                group = node.join(below).create(metadata, overwrite=False, is_recorded=True)
                view = view.via(group.store)
        with Rewrite(view, journal, resumed).running() as rewrite:
            yield rewrite


@contextmanager
def _growing(
    target: Destination, plan: str, *, overwrite: bool, restart: bool
) -> Iterator[Rewrite]:
    """Begin to append to an array, or go on with an earlier run of the same plan."""
    node = target.node
    with shape_lock(node) as lease, node.store.batch():
        journal = Journal(node, plan)
        resumed = journal.resume(overwrite=overwrite, restart=restart)
        stored = node.stored_metadata(target.metadata.zarr_format)
        metadata = check_shape(stored, (target.old_shape,), node.location)
        if resumed:
            tidy(node.store, node.prefix, recursive=True)
        else:
            journal.erase()
            journal.store()
        guard = AppendGuard(node, metadata.zarr_format, metadata.shape, lease)
        with Rewrite(node, journal, resumed, guard).running() as rewrite:
            yield rewrite


def check_begun(node: NodePath, metadata: Metadata, *, overwrite: bool) -> tuple[bool, NodePath]:
    """Return whether a rewrite of a node was interrupted, and the node as its hierarchy sees it.

    Otherwise the node must not exist, except with `overwrite`.
    """
    known = node.prefetched(metadata)
    begun = known.is_begun()
    view = known.check_creation(metadata, overwrite=overwrite or begun)
    return begun, view.fresh


def _remove_begun(node: NodePath, journal: Journal) -> None:
    """Remove the documents and the chunks that an interrupted run has stored of its nodes.

    Nothing else is removed: neither other files, nor arrays whose documents the run has not
    written. That is an error: another program has created them, or the run appended to them.
    """
    nodes = journal.recorded
    arrays = [node.join(below) for below, kind in nodes.items() if kind == "array"]
    exist = at_once(node.store, NodePath.has_document, arrays)
    taken = [array for array, exists in zip(arrays, exist, strict=True) if exists]
    if node.has_document() and isinstance(node.find()[1], ArrayMetadata):
        taken.append(node)
    if taken:
        raise taken[0].exists_error()
    with strictness(strict=False, quiet=True):
        recorded = {
            below: detect.parse(documents, node.store)
            for below, documents in journal.recorded_arrays().items()
        }
    with node.changing(whole=True) as real:
        store = real.store
        for below in nodes:
            member = real.join(below)
            prefix = member.prefix
            store.erase_values([prefix + name for name in detect.names(store)])
            metadata = recorded.get(below)
            if not isinstance(metadata, ArrayMetadata):
                continue
            erase_leftovers(member.chunks(metadata))
            if store.capabilities.listable and next(store.list_prefix(prefix), None) is None:
                store.erase_prefix(prefix)  # the directories of the chunks


def _remove(node: NodePath) -> None:
    """Remove a node, if there is one, with all below it."""
    try:
        node, _ = node.find()
    except NodeNotFoundError:
        return
    except ZarrdaskError:
        pass  # a node that can't be read is removed as well
    if isinstance(node.store, DraftStore) and node.store.base == node.prefix:
        remove_keys(node.via(node.store.inner))
    else:
        node.erase()
