"""New nodes with a record of finished tasks, so that an interrupted run can be resumed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from zarrdask.arrays.chunks.stored_keys import erase_leftovers
from zarrdask.arrays.hierarchy.changes.journal import Journal
from zarrdask.arrays.hierarchy.claim import Claim
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeNotFoundError, ZarrdaskError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.storage.concurrent_requests import request_on_each
from zarrdask.storage.zarr.draft_store import stored_in


@dataclass
class RecordedNodes:
    """New nodes at and below a path, whose groups are written first, and arrays at the end.

    In a store whose changes appear together, all documents are written first.
    """

    #: The node at the root, in the store without a view of its hierarchy.
    node: NodePath
    #: The node at the root as its hierarchy sees it.
    view: NodePath
    #: The metadata of all nodes by their paths from the root.
    nodes: Mapping[str, Metadata]
    journal: Journal
    #: Whether an earlier run was interrupted, of this plan or another one.
    begun: bool
    #: Whether that run is resumed now.
    resumed: bool
    #: Whether a node that exists is removed.
    overwrite: bool

    @classmethod
    def prepare(
        cls,
        node: NodePath,
        nodes: Mapping[str, Metadata],
        journal: Journal,
        *,
        overwrite: bool,
        restart: bool = False,
    ) -> Self:
        """Check that the nodes can be created, or that an earlier run can be resumed.

        The caller holds the lock of the node for the purpose "rewrite".
        """
        begun, view = check_begun(node, nodes[""], overwrite=overwrite)
        metadata = nodes[""]
        if begun and isinstance(metadata, ArrayMetadata) and view.has_document():
            is_written = _has_written(journal, view, metadata)
            if not is_written and not overwrite:
                raise view.exists_error()
            restart |= not is_written
        resumed = begun and journal.resume(overwrite=overwrite, restart=restart)
        return cls(node, view, nodes, journal, begun, resumed, overwrite)

    def begin(self, claim: Claim[NodePath]) -> NodePath:
        """Remove the old node or the rest of another run; store the record and the groups.

        `claim` is the claim of the node, which the caller holds. Return the node as its hierarchy
        sees it then.
        """
        journal, nodes = self.journal, self.nodes
        if self.begun:
            self.view.tidy(recursive=True)
        if not self.resumed:
            if self.overwrite:
                _remove(self.node)
                claim.renew()
            if self.begun:
                _remove_begun(self.view, journal)
            arrays = {path: m for path, m in nodes.items() if isinstance(m, ArrayMetadata)}
            root = arrays.pop("", None)
            self.view.clear_members(arrays)
            if root is not None:
                erase_leftovers(self.view.chunks(root))
            if self.begun:
                journal.erase()
            journal.store()
        for below, metadata in nodes.items():
            is_group = isinstance(metadata, GroupMetadata)
            if is_group and not (self.resumed and self.view.join(below).has_document()):
                group = self.node.join(below).create(metadata, overwrite=False, is_recorded=True)
                self.view = self.view.via(group.store)
        if self.view.store.capabilities.bounded:
            arrays = {path: m for path, m in nodes.items() if isinstance(m, ArrayMetadata)}
            if (root := arrays.pop("", None)) is not None:
                self.node.create(root, overwrite=False, is_claimed=True)
            self.view.create_members(arrays, has_chunks=True)
        return self.view


def _has_written(journal: Journal, view: NodePath, metadata: ArrayMetadata) -> bool:
    """Whether an earlier run of the plan has written the document that the root has now."""
    if not (journal.resume(overwrite=True) and journal.has_written_root):
        return False
    stored = view.stored_metadata(metadata.zarr_format)
    return stored is not None and stored.render() == metadata.render()


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
    written. An error is raised then: another program has created them, or the run appended to them.
    """
    nodes = journal.recorded
    arrays = [node.join(below) for below, kind in nodes.items() if kind == "array"]
    exist = request_on_each(node.store, NodePath.has_document, arrays)
    existing = [array for array, exists in zip(arrays, exist, strict=True) if exists]
    if node.has_document() and isinstance(node.find()[1], ArrayMetadata):
        existing.append(node)
    if existing:
        raise existing[0].exists_error()
    with strictness(strict=False, quiet=True):
        recorded = {
            below: detect.parse(documents, node.layout)
            for below, documents in journal.recorded_arrays().items()
        }
    with node.changing(whole=True) as real:
        store = real.store
        for below in nodes:
            member = real.join(below)
            prefix = member.prefix
            store.erase_values([prefix + name for name in detect.names(member.layout)])
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
    if node.layout.base == node.prefix:
        node.via(stored_in(node.store)).remove_keys()
    else:
        node.erase()
