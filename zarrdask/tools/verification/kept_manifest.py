"""Make the manifest of one side of a copy from listings and transfers, without reading objects."""

from collections.abc import Iterable, Mapping

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry
from zarrdask.tools.verification.object_listing import KnownDigests, Listing


def keep_manifest(
    node: NodePath,
    known: KnownDigests,
    listing: Listing,
    copied: Mapping[str, ManifestEntry | None],
    keys: Iterable[str],
) -> None:
    """Store the manifest of a node, unless it is the one that is stored there.

    Objects that were not `copied` are taken from a listing, with their digests if these are known.
    """
    entries = list[ManifestEntry]()
    for key in sorted(keys):
        if (written := copied.get(key)) is not None:
            entries.append(written)
        else:
            entry = listing[key]
            listed = ManifestEntry(key, entry.size, entry.tag, known.digests.get(key))
            entries.append(node.lasting_entry(listed))
    made = Manifest(node.location, tuple(entries))
    if made != known.stored:
        node.store_manifest(made)
