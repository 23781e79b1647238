"""New nodes: their documents are written before the chunks, or after them."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain

from zarrdask.arrays import writers
from zarrdask.arrays.chunks import unfinished
from zarrdask.arrays.chunks.stored_keys import erase_leftovers
from zarrdask.arrays.hierarchy.changes.journal import BESIDE, erase_beside, is_begun
from zarrdask.arrays.hierarchy.changes.later_claim import LaterClaim
from zarrdask.arrays.hierarchy.changes.marker import erase_markers, is_marked
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.claim import Claim, claimed
from zarrdask.arrays.hierarchy.node_creation import put_first_members
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import key_prefix
from zarrdask.errors import NodeExistsError, UnsupportedError
from zarrdask.formats.compliance import strictness
from zarrdask.formats.metadata.consolidated_documents import render_with_members
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.storage.concurrent_requests import request_on_each


@dataclass
class NewArray(Change):
    """A new array whose documents are written before its chunks; a failure erases them again."""

    #: The location of the array, in a store that may have read its documents already.
    node: NodePath
    metadata: ArrayMetadata
    #: Whether an existing node is erased first.
    overwrite: bool
    #: Whether there was a node when the write was requested.
    existed: bool
    #: A value that stands beside the documents until all chunks are stored.
    marker: bytes | None = field(default=None, kw_only=True, compare=False)
    #: The array as its hierarchy sees it, once the documents are written.
    created: NodePath | None = field(default=None, init=False, compare=False)

    @property
    def location(self) -> str:
        """The location of the array."""
        return self.node.location

    @property
    def is_blank(self) -> bool:
        """Whether chunks that were left here can be found, and are erased by `begin`."""
        is_listable = self.node.store.capabilities.listable
        return is_listable and not self.node.is_in_draft(self.metadata)

    def begin(self) -> None:
        """Erase the old node, if there is one, and write the documents."""
        node, metadata = self.node, self.metadata
        with ExitStack() as held:
            claims = list[Claim[NodePath]]()

            def exclude() -> None:
                # Another writer that creates the array may be writing chunks by now.
                claims.append(held.enter_context(claimed(node.fresh)))
                node.fresh.check_creation(metadata, overwrite=False)

            if not self.overwrite and not node.is_in_draft(metadata):
                erase_leftovers(node.chunks(metadata), unless=exclude)
            self.created = node.create(
                metadata, overwrite=self.overwrite, is_claimed=bool(claims), marker=self.marker
            )

    @property
    def has_commit(self) -> bool:
        """Whether there is a marker to erase."""
        return self.marker is not None

    def commit(self) -> None:
        """Erase the marker: all chunks are stored."""
        if self.marker is not None and self.created is not None:
            erase_markers([self.created.fresh], self.marker)

    def abort(self) -> str:
        """Erase the documents, so that the array does not open, and describe what is left."""
        if self.marker is not None:
            writers.end(self.marker)
        erased = "the previous content was erased; " if self.existed else ""
        if self.created is None:
            return f"{erased}no array was created; run the same call again"
        try:
            if not (self._is_own() and self._erase_documents(self.created.fresh)):
                return f"{erased}another writer has replaced the array"
        except UnsupportedError:
            return f"{erased}chunks or shards that were not written read as the fill value"
        return (
            f"{erased}no array was created; run the same call again, which replaces leftover chunks"
        )

    def _is_own(self) -> bool:
        """Whether this write has stored the documents and the marker that are there now."""
        if self.created is None:
            return False
        node = self.created.fresh
        is_marked_so = self.marker is None or is_marked(node, self.marker)
        return is_marked_so and _is_stored(node, self.metadata)

    def _erase_documents(self, node: NodePath) -> bool:
        """Erase the documents, unless another writer has replaced the array by now."""
        names = [name for name, data in self.metadata.render().items() if data is not None]
        names += [unfinished.NAME] if self.marker is not None else []
        # The lock comes last, as consolidated metadata that is dropped has locks of its own.
        with node.changing(whole=True) as real, exclusive(node, "owner"):
            is_own = self._is_own()
            if is_own:
                real.store.erase_values([real.prefix + name for name in names])
        return is_own


@dataclass
class LateArray(Change):
    """A new array whose documents are written after its chunks."""

    #: The location of the array.
    node: NodePath
    #: The location as its hierarchy sees it.
    view: NodePath
    metadata: ArrayMetadata
    #: Whether an existing node may have to be erased first.
    erases: bool = False
    #: Whether there was a node when the write was requested.
    existed: bool = False
    #: Whether the values are stored by this call, and by no later one, so that it excludes others.
    is_immediate: bool = field(default=False, kw_only=True)
    #: Whether the record of this write stands beside the array; see `ResumableChanges`.
    is_recorded: bool = field(default=False, kw_only=True)
    #: Whether the record of another write is discarded, too, if an existing node is replaced.
    overwrites: bool = field(default=False, kw_only=True)
    #: Whether an earlier run may have written the documents.
    is_again: bool = field(default=False, init=False)
    #: The claim of the array, from the beginning to the end; None if it is not held now.
    claim: Claim[NodePath] | None = field(default=None, init=False, compare=False)
    #: The claim that tasks hold if they store the values later.
    later: LaterClaim | None = field(default=None, kw_only=True)

    @property
    def location(self) -> str:
        """The location of the array."""
        return self.node.location

    def begin(self) -> None:
        """Exclude other writers; erase the old node, if there is one, or what others left here."""
        if self.is_immediate:
            self.exclude()
        seen = self._look(self.node) if self.claim is None else self.claim.seen
        view = seen.check_creation(self.metadata, overwrite=self.erases)
        if self.erases:
            self.view.erase()
            if self.claim is not None:
                self.claim.renew()
        else:
            self._erase_leftovers(view)
            if not self.is_recorded and is_begun(view):
                erase_beside(view)  # with a record, the commit would take the chunks for leftovers

    def _erase_leftovers(self, view: NodePath) -> None:
        """Erase the chunks that others left here, unless a writer that still runs stores them."""
        with ExitStack() as held:

            def exclude() -> None:
                held.enter_context(claimed(self.node.fresh))
                self.node.fresh.check_creation(self.metadata, overwrite=False)

            is_excluded = self.later is None
            erase_leftovers(view.chunks(self.metadata), unless=None if is_excluded else exclude)

    def exclude(self) -> None:
        """Claim the array: no other writer creates it until this one ends."""
        claim = Claim(self.node, read=self._look)
        claim.take()
        self.claim = claim

    def check_claim(self) -> None:
        """Check that no other writer has taken the array over."""
        if self.claim is not None:
            self.claim.check()

    def _look(self, node: NodePath) -> NodePath:
        """Read the existing documents, in one round trip."""
        return node.prefetched(self.metadata, listed=True)

    def release(self) -> None:
        """Let other writers create the array."""
        if self.claim is not None:
            self.claim.release()
            self.claim = None

    def commit(self) -> None:
        """Write the documents; a task may do it again."""
        if self.claim is not None:
            seen = self.node.prefetched(self.metadata)
            self.claim.check(seen)
            located = seen, self.view, self.metadata
            create_after_chunks(*located, is_recorded=self.is_recorded, is_again=self.is_again)
            self.release()
            return
        with claimed(self.node) if self.later is None else self.later.committing():
            create_after_chunks(self.node, self.view, self.metadata)

    def abort(self) -> str:
        """Let others create the array, and describe what the location holds now."""
        if self.is_immediate and self.claim is None:
            return "nothing was changed"
        self.release()
        erased = ", and the previous content was erased" if self.existed else ""
        return (
            f"no array was created{erased}; run the same call again, which replaces leftover chunks"
        )


def create_after_chunks(
    node: NodePath,
    view: NodePath,
    metadata: Metadata,
    *,
    is_recorded: bool = False,
    is_again: bool = True,
) -> NodePath:
    """Write the documents of a new node after everything below it. The caller holds its claim.

    `view` is the node as its hierarchy sees it; `is_recorded` and the result are as in
    `NodePath.create`. With `is_again`, this may have been done before: then equal documents were
    stored by this writer.
    """
    # Warnings about the metadata were emitted when the write was requested.
    with strictness(strict=False, quiet=True):
        try:
            return node.create(metadata, overwrite=False, is_recorded=is_recorded, is_claimed=True)
        except NodeExistsError:
            # In a session of icechunk the document comes first, and no other writer sees it.
            is_own = is_again or node.store.capabilities.bounded
            if not (is_own and _is_stored(view, metadata)):
                raise
            return view


def create_group_after_chunks(
    node: NodePath,
    view: NodePath,
    metadata: GroupMetadata,
    members: Mapping[str, Metadata],
    *,
    consolidate: bool,
    claim: Claim[NodePath] | None = None,
) -> bool:
    """Write the documents of new nodes after everything below them, and then of their group.

    `members` has the nodes by their paths from the group; `node` and `view` are as in
    `create_after_chunks`; and `claim` is the claim of the group, if the caller holds one. Return
    whether the group got its consolidated metadata, too: if it is requested, and no other nodes are
    below the group.
    """
    own, consolidated, capabilities = None, dict[str, bytes](), view.store.capabilities
    consolidate &= capabilities.listable
    with node.store.batch():
        # Another writer may have created the group since the chunks were written. That is read
        # while the members are written: until the group exists, they are not part of anything.
        seen = node.prefetched(metadata, listed=consolidate)
        # The claim is read, too. Unless another writer may have taken it over, that can wait.
        is_late = claim is not None and seen is not node and claim.is_recent
        if claim is not None and not is_late:
            claim.check()
        put_first_members(view, {path: each.render() for path, each in members.items()})
        if claim is not None and is_late:
            claim.check(seen)
        if consolidate and not _has_others(view.via(seen.store), members):
            own, consolidated = render_with_members(metadata, members)
        with strictness(strict=False, quiet=True):
            try:
                seen.create(metadata, overwrite=False, documents=own)
            except NodeExistsError:
                if not _is_stored(view, metadata):
                    raise
                return False  # Another writer of the same group may have created other members.
        if own is None:
            return False
        if consolidated:
            # Not before the group: a writer that has not created it would replace the document.
            create, prefix = view.store.create, view.prefix
            items = consolidated.items()
            return capabilities.create_exclusive and all(create(prefix + k, v) for k, v in items)
        # Otherwise, of several writers that created the group the last one finds all nodes.
        return capabilities.create_exclusive or not _has_others(view, members)


def _is_stored(node: NodePath, metadata: Metadata) -> bool:
    """Whether the stored documents of a node represent some metadata."""
    stored = node.stored_metadata(metadata.zarr_format)
    return stored is not None and stored.render() == metadata.render()


def _has_others(group: NodePath, members: Mapping[str, Metadata]) -> bool:
    """Whether there may be nodes below a group besides some members."""
    groups = ["", *(path for path, each in members.items() if isinstance(each, GroupMetadata))]

    def below(path: str) -> list[str]:
        names = group.store.list_dir(group.join(path).prefix)[1]
        return [key_prefix(path) + name for name in names if f"{name}/" != BESIDE]

    paths = request_on_each(group.store, below, groups)
    return any(path not in members for path in chain.from_iterable(paths))
