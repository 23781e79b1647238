"""The new groups and arrays of a dataset: documents before the values, or after them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from zarrdask.errors import NodeExistsError
from zarrdask.hierarchy.create import (
    Replace,
    clear_members,
    create_members,
    create_node,
    prefetched,
)
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.path import join_path
from zarrdask.metadata.model import Metadata
from zarrdask.storage.base import Store
from zarrdask.storage.v3_draft import DraftStore
from zarrdask.xarray.plan import GroupWrite


@dataclass(frozen=True)
class NewNodes:
    """The groups and arrays that a write creates.

    If their documents are written first, `create` does it; else `clear` is called before the values
    are written, and `create_late` afterwards.
    """

    #: The store of the first group, without views of it.
    store: Store
    #: The first group, which may exist, without values.
    first: GroupWrite
    #: The others by their paths from the first group.
    members: Mapping[str, Metadata]
    #: The path of the group that gets consolidated metadata, if any does.
    root: str | None

    @classmethod
    def of(cls, writes: Sequence[GroupWrite], store: Store, root: str | None) -> Self:
        """Return the new nodes of the groups that are written, the first of which is above all."""
        first, members = writes[0], dict[str, Metadata]()
        for group in writes:
            path = group.path.removeprefix(first.path).lstrip("/")
            if group is not first and group.before is None:
                members[path] = group.metadata
            for name, metadata in group.new_arrays.items():
                members[join_path(path, name) if path else name] = metadata
        return cls(store, first.without_values(), members, root)

    @property
    def includes_first(self) -> bool:
        """Whether the first group is new."""
        return self.first.before is None

    def __bool__(self) -> bool:
        """Whether anything is created."""
        return bool(self.members) or self.includes_first

    def _view(self, store: Store) -> Store:
        """Return the store of the members: `store`, unless the hierarchy has its own view of it."""
        return self.first.store if isinstance(self.first.store, DraftStore) else store

    def create(self, seen: Store, *, overwrite: bool) -> None:
        """Write the documents, before the values.

        `seen` is the store, which may know what is there already. With `overwrite`, the first group
        is replaced, with all that it holds.
        """
        path = self.first.path
        if self.includes_first:
            create_node(seen, path, self.first.metadata, overwrite=overwrite)
        create_members(self._view(seen), path, self.members, keep=self.root)

    def clear(self, seen: Store, replace: Replace) -> None:
        """Erase what former nodes left at the paths of the new ones; see `clear_members`."""
        clear_members(self._view(seen), self.first.path, self.members, replace)

    def create_late(self) -> None:
        """Write the documents after the values, that of the first group last.

        It may be done again.
        """
        path, metadata = self.first.path, self.first.metadata
        seen = prefetched(self.store, path) if self.includes_first else self.store
        members = self._view(seen), path, self.members
        create_members(*members, has_chunks=True, keep=self.root)
        if not self.includes_first:
            return
        try:
            create_node(seen, path, metadata, overwrite=False)
        except NodeExistsError:
            if NodePath(self.store, path).stored_metadata(metadata.zarr_format) != metadata:
                raise
