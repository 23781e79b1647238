"""Changes of datasets, in an order in which readers never see half of one, even after a crash.

Values come first: readers can't see the values of new arrays yet, nor values beyond the end of
arrays that get longer. Then the shapes, of index coordinates last: only they make the new elements
part of the dataset. Then consolidated metadata, all in one document: readers that use it see the
complete old dataset until that document is replaced.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial

from zarrdask import config
from zarrdask.arrays.hierarchy.changes.later_claim import LaterClaim
from zarrdask.arrays.hierarchy.changes.marker import erase_markers, new_marker
from zarrdask.arrays.hierarchy.changes.new_array import create_group_after_chunks
from zarrdask.arrays.hierarchy.changes.replace import ReplacedNode
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.claim import Claim, claimed
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import join_path
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.storage.concurrent_requests import request_on_each
from zarrdask.xarray.writing.plan import GroupWrite, VariableWrite

#: The state after a failed write of a new dataset, or of new variables.
_LATE_DATASET = (
    "no dataset was created, unless its last document was stored before the error; run the same "
    "call again, or one with mode='w', which replaces leftover chunks"
)
_EARLY_DATASET = (
    "the new dataset is incomplete: chunks that were not stored read as the fill value; replace "
    "it with mode='w', or write the rest"
)
_LATE_VARIABLES = "new variables may be missing"
_EARLY_VARIABLES = (
    "new variables are incomplete: chunks that were not stored read as the fill value"
)


@dataclass(frozen=True)
class ChangedDataset(Change):
    """A dataset that is created or changed: its new nodes, shapes and consolidated metadata."""

    #: The first group, in the store without views of it.
    node: NodePath
    #: The same, in a store that may have read its documents already.
    seen: NodePath
    #: The groups that are written, without values; the first one is above all others.
    writes: Sequence[GroupWrite]
    #: The path of the group that gets consolidated metadata, if any does.
    root: str | None
    #: Whether new groups and arrays get their documents after their values.
    late: bool
    #: Whether nodes that are found may be replaced.
    overwrites: bool
    #: Whether there is a node at the location of the first group, which is replaced.
    replaces: bool
    #: Whether the values are written by this call, so that other writers are excluded.
    is_immediate: bool
    #: The claim that tasks hold if they store the values of new arrays later.
    later: LaterClaim | None = None
    #: The claims of new nodes, from the beginning to the end.
    _claims: list[Claim[NodePath]] = field(default_factory=list, compare=False)
    _held: ExitStack = field(default_factory=ExitStack, compare=False)

    @cached_property
    def _marker(self) -> bytes | None:
        """The marker of new arrays whose documents come before their values in this call."""
        return new_marker(self.node) if self.is_immediate and not self.late else None

    @property
    def location(self) -> str:
        """The location of the first group."""
        return self.node.location

    @property
    def first(self) -> GroupWrite:
        """The first group."""
        return self.writes[0]

    @property
    def _is_new(self) -> bool:
        """Whether the first group is created."""
        return self.first.before is None

    @cached_property
    def _members(self) -> dict[str, Metadata]:
        """The new nodes below the first group."""
        return new_members(self.writes)

    def _view(self, node: NodePath) -> NodePath:
        """Return the first group: `node`, unless the hierarchy has its own view of the store."""
        return self.first.node if self.first.node.layout.base is not None else node

    def begin(self) -> None:
        """Write the documents of new nodes, or erase what former nodes left at their locations."""
        with ExitStack() as held:
            if self.later is not None:
                # Another writer may be storing what would be erased.
                held.enter_context(claimed(self.node, self.later.members))
            self._begin()

    def _begin(self) -> None:
        self.exclude()
        claims = self._claims
        if claims and self._is_new and not self.overwrites and self._listed.exists():
            raise self.node.exists_error()
        if self.late:
            if self.replaces:
                config.check()
                self.node.erase()
                for claim in claims:
                    claim.renew()
            if creates_nodes(self.writes):
                known = self._listed if claims else self.seen
                group = self._view(self.node if self.replaces else known)
                group.clear_members(self._members, "always" if self.overwrites else "same")
        else:
            if self._is_new:
                self.seen.create(self.first.metadata, overwrite=self.overwrites)
            self._view(self.seen).create_members(self._members, keep=self.root, marker=self._marker)
        for each in (variable for write in self.writes for variable in write.variables):
            each.array.node_path.store_repaired(chunks_of(each.array))
        longer = [each.array for write in self.writes for each in write.appends]
        request_on_each(
            self.node.store,
            lambda array: array.node_path.discard_append(chunks_of(array)),
            longer,
        )
        if self.first.node.store.capabilities.bounded:
            _grow_arrays(self.first, self.root)

    @property
    def _listed(self) -> NodePath:
        """The first group, as read when it was claimed."""
        return self._claims[0].seen

    def exclude(self) -> None:
        """Claim the new dataset, or the new arrays of one that exists."""
        is_early = not (self.late and self.is_immediate)
        if self._claims or is_early or any(write.appends for write in self.writes):
            return
        if not (self._is_new or self._members):
            self.node.discard_dead_claim()
            return
        members = () if self._is_new else self._members
        read = partial(NodePath.prefetched, metadata=self.first.metadata, listed=True)
        self._claims.append(self._held.enter_context(claimed(self.node, members, read)))

    def release(self) -> None:
        """Release the claims."""
        self._held.close()
        self._claims.clear()

    def commit(self) -> None:
        """Make what was written part of the dataset; the first group comes last."""
        with self._held if self.later is None else self.later.committing():
            self._commit()

    def _commit(self) -> None:
        root = None if self.late and self._create_late() else self.root
        first, *others = self.writes
        for each in reversed(others):
            _complete(each, None)
        nodes = [each.node.path for each in others]
        nodes += [variable.array.path for each in self.writes for variable in each.variables]
        _complete(first, root, nodes)
        if self._marker is not None:
            group, members = self._view(self.node), self._members.items()
            arrays = [group.join(path) for path, m in members if isinstance(m, ArrayMetadata)]
            erase_markers(arrays, self._marker)

    def _create_late(self) -> bool:
        """Write the documents of new nodes after their values, the first group's last.

        The result is whether consolidated metadata is written, too.
        """
        group, members = self.first, self._members
        claim = self._claims[0] if self._claims else None
        if self._is_new:
            own, nodes = self.root == group.node.path, (self.node, group.node)
            return create_group_after_chunks(
                *nodes, group.metadata, members, consolidate=own, claim=claim
            )
        if claim is not None:
            claim.check()
        self._view(self.node).create_members(members, has_chunks=True, keep=self.root)
        return False

    def abort(self) -> str:
        """Erase what was appended to arrays, and describe what the dataset holds now."""
        self.release()
        if self._marker is not None:
            erase_markers([], self._marker)  # they stay, but the write has ended
        appends = [each.append for write in self.writes for each in write.appends]
        states = {append.abort() for append in appends if append is not None}
        if self._is_new:
            states.add(_LATE_DATASET if self.late else _EARLY_DATASET)
        elif self._members:
            states.add(_LATE_VARIABLES if self.late else _EARLY_VARIABLES)
        unchanged = "each stored chunk or shard has either its old or its new content"
        return "; ".join(sorted(states)) or unchanged


@dataclass(frozen=True)
class ReplacedDataset(Change):
    """A dataset that is written beside the group that it replaces, which stays until then."""

    replaced: ReplacedNode
    #: The group that is replaced.
    node: NodePath
    #: The groups that are written, without values.
    writes: Sequence[GroupWrite]
    #: The path of the group that gets consolidated metadata, if any does.
    root: str | None

    @property
    def location(self) -> str:
        """The location of the group."""
        return self.node.location

    def begin(self) -> None:
        """Write all documents of the new group."""
        group = self.replaced.new
        self.replaced.begin()
        group.create_members(new_members(self.writes))
        if self.root == self.node.path:
            _consolidate(group, "", self.writes[0].metadata.zarr_format)
        self.replaced.seal()

    def commit(self) -> None:
        """Replace the group."""
        self.replaced.commit()
        if self.root not in (None, self.node.path):
            _consolidate(self.node, self.root, self.writes[0].metadata.zarr_format)

    def abort(self) -> str:
        """Remove the new group, and describe what is left."""
        return self.replaced.abort()


def creates_nodes(writes: Sequence[GroupWrite]) -> bool:
    """Whether any group or array is created."""
    return writes[0].before is None or bool(new_members(writes))


def claim_later(node: NodePath, writes: Sequence[GroupWrite]) -> LaterClaim | None:
    """Return the claim for new arrays whose values tasks store later, below a first group.

    None if no other writer sees what is stored.
    """
    first, members = writes[0], new_members(writes)
    if first.node.store.capabilities.bounded:
        return None
    view = first.node if first.node.layout.base is not None else node
    if first.before is None:
        return LaterClaim(node, view, {"": first.metadata, **members})
    return LaterClaim(node, view, members, [*members])


def new_members(writes: Sequence[GroupWrite]) -> dict[str, Metadata]:
    """Return the new nodes below the first of some groups, by their paths from it."""
    first, members = writes[0], dict[str, Metadata]()
    for group in writes:
        path = group.node.path.removeprefix(first.node.path).lstrip("/")
        if group is not first and group.before is None:
            members[path] = group.metadata
        for name, metadata in group.new_arrays.items():
            members[join_path(path, name) if path else name] = metadata
    return members


def _complete(write: GroupWrite, root: str | None, nodes: Iterable[str] = ()) -> None:
    """Make what was written to a group part of it, when all values are there.

    `root` is the path of the group that gets consolidated metadata: this one, or one above it; and
    `nodes` are the paths of nodes that it will probably have, to read all of them at once.
    """
    node, metadata = write.node, write.metadata
    _grow_arrays(write, root)
    changed = metadata if write.before not in (None, metadata) else None
    if changed is not None and root != node.path:
        node.write(changed, before=write.before)
    if root is not None:
        _consolidate(node, root, metadata.zarr_format, changed, nodes)


def _grow_arrays(write: GroupWrite, root: str | None) -> None:
    """Write the new shapes of arrays, index coordinates last."""
    if not write.appends:
        return
    with write.node.changing(whole=False, keep=root) as real:

        def grow(variable: VariableWrite) -> None:
            if variable.append is not None:
                variable.append.grow(real.store)

        for is_index in (False, True):
            variables = [each for each in write.appends if each.is_index is is_index]
            request_on_each(real.store, grow, variables)


def _consolidate(
    node: NodePath,
    root: str,
    zarr_format: ZarrFormat,
    changed: GroupMetadata | None = None,
    nodes: Iterable[str] = (),
) -> None:
    """Write the consolidated metadata of a group, the root, above a changed one, or of that one.

    If the root cannot have any, as it holds nodes of several formats or has no document, the
    changed group itself gets it. Its new metadata, if it has any, is written with it. `nodes` are
    paths that are probably below the root.
    """
    try:
        own = changed if node.path == root else None
        node.at(root).consolidate(zarr_format, group=own, nodes=nodes)
    except MetadataError:
        if node.path == root:
            raise
        with node.changing(whole=False) as real:  # consolidated metadata above is out of date
            real.consolidate(zarr_format, group=changed, nodes=())
