"""Update the manifests of arrays at the end of writes, if ``zarrdask.manifests`` is set."""

from collections.abc import Sequence
from dataclasses import dataclass

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.storage.adapters.forks import Changes
from zarrdask.storage.concurrent_requests import request_on_each


@dataclass(frozen=True)
class ManifestUpdate:
    """The update of the manifest of an array, when all blocks were stored.

    Attributes
    ----------
    node : NodePath
        The array as it is after the write.
    chunks : StoredChunks
        The chunks that tasks write to, in a store that computes digests, or in one that does not.
    is_whole : bool
        Whether these tasks write all chunks of a new array.
    """

    node: NodePath
    chunks: StoredChunks
    is_whole: bool


def update_manifests(
    updates: Sequence[ManifestUpdate], changes: Changes | None = None
) -> Changes | None:
    """Note what was written in the manifests of arrays; return the other changes.

    `changes` were made by tasks in other processes, and have not been merged in this one.
    """
    if not updates:
        return changes
    parts = {} if changes is None else changes.parts

    def update(each: ManifestUpdate) -> None:
        each.node.current.keep_manifest(each.chunks, parts, is_whole=each.is_whole)

    request_on_each(updates[0].node.store, update, updates)
    own = {getattr(each.chunks.store, "name", None) for each in updates}
    others = {name: part for name, part in parts.items() if name not in own}
    return Changes(others) if others else None
