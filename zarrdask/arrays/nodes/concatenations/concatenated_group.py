"""Groups whose arrays consist of the elements of other stored arrays."""

from typing import Any

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.concatenations.concatenated import Refreshed, refreshed, save
from zarrdask.arrays.nodes.group import Group


class ConcatenatedGroup(Group):
    """A group whose arrays are concatenations; `concat` returns it for groups."""

    def save(self, url: Any, storage_options: dict[str, Any] | None = None) -> None:
        """Save the list of members; see `ConcatenatedArray.save`."""
        save(self.store, url, storage_options)  # type: ignore[arg-type]

    def refresh(self) -> Refreshed:
        """Find new, changed and removed members; see `ConcatenatedArray.refresh`."""
        store, changes = refreshed(self.store)  # type: ignore[arg-type]
        self.node_path = NodePath(store, self.path)
        self.metadata = store.groups[self.path]
        return changes


def as_concatenated(node: Array | Group) -> Array | Group:
    """Return a group of concatenations as one that can be saved; anything else as it is."""
    if isinstance(node, Group) and isinstance(node.store, ConcatenatedStore):
        return ConcatenatedGroup(node.node_path, node.metadata, strict=node.strict)
    return node
