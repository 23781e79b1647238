"""The new groups and arrays of a dataset: documents before the values, or after them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from zarrdask.errors import NodeExistsError
from zarrdask.hierarchy.create import Replace
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.path import join_path
from zarrdask.metadata.model import Metadata
from zarrdask.storage.v3_draft import DraftStore
from zarrdask.xarray.plan import GroupWrite


@dataclass(frozen=True)
class NewNodes:
    """The groups and arrays that a write creates.

    If their documents are written first, `create` does it; else `clear` is called before the values
    are written, and `create_late` afterwards.
    """

    #: The location of the first group, in the store without views of it.
    node: NodePath
    #: The first group, which may exist, without values.
    first: GroupWrite
    #: The others by their paths from the first group.
    members: Mapping[str, Metadata]
    #: The path of the group that gets consolidated metadata, if any does.
    root: str | None

    @classmethod
    def of(cls, writes: Sequence[GroupWrite], node: NodePath, root: str | None) -> Self:
        """Return the new nodes of the groups that are written, the first of which is above all."""
        first, members = writes[0], dict[str, Metadata]()
        for group in writes:
            path = group.node.path.removeprefix(first.node.path).lstrip("/")
            if group is not first and group.before is None:
                members[path] = group.metadata
            for name, metadata in group.new_arrays.items():
                members[join_path(path, name) if path else name] = metadata
        return cls(node, first.without_values(), members, root)

    @property
    def includes_first(self) -> bool:
        """Whether the first group is new."""
        return self.first.before is None

    def __bool__(self) -> bool:
        """Whether anything is created."""
        return bool(self.members) or self.includes_first

    def _view(self, seen: NodePath) -> NodePath:
        """Return the first group: `seen`, unless the hierarchy has its own view of the store."""
        return self.first.node if isinstance(self.first.node.store, DraftStore) else seen

    def create(self, seen: NodePath, *, overwrite: bool) -> None:
        """Write the documents, before the values.

        `seen` is the first group in a store that may know what is there already. With `overwrite`,
        the group is replaced, with all that it holds.
        """
        if self.includes_first:
            seen.create(self.first.metadata, overwrite=overwrite)
        self._view(seen).create_members(self.members, keep=self.root)

    def clear(self, seen: NodePath, replace: Replace) -> None:
        """Erase what former nodes left at the paths of the new ones; see `clear_members`."""
        self._view(seen).clear_members(self.members, replace)

    def create_late(self) -> None:
        """Write the documents after the values, that of the first group last.

        It may be done again.
        """
        metadata = self.first.metadata
        seen = self.node.prefetched(metadata) if self.includes_first else self.node
        self._view(seen).create_members(self.members, has_chunks=True, keep=self.root)
        if not self.includes_first:
            return
        try:
            seen.create(metadata, overwrite=False)
        except NodeExistsError:
            if self.node.stored_metadata(metadata.zarr_format) != metadata:
                raise
