"""The manifests of both sides of a copy, of what was listed and transferred: no object is read."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.formats.byte_ranges import Buffer, StoredObject
from zarrdask.storage.snapshots.digests import digest_of
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry
from zarrdask.tools.verification.object_listing import KnownDigests, Listing, md5_of


class CopiedObjects(dict[str, ManifestEntry]):
    """Objects that were copied, by their keys: their versions and digests in the target.

    Parameters
    ----------
    by_md5 : bool
        Whether the target is an object store, whose ETags may be MD5 digests: if they are
        something else, the entries are not those of the versions that are there.
    """

    def __init__(self, *, by_md5: bool) -> None:
        super().__init__()
        self.by_md5 = by_md5

    def add_value(
        self, key: str, value: Buffer, source: StoredObject | None, version: str | None
    ) -> None:
        """Note a value that was stored, with the version of a file; `source` was its listing."""
        known = None if source is None else md5_of(source)
        if known is not None:
            digest = f"md5:{known}"
        else:
            digest = digest_of(value, "md5" if self.by_md5 else "sha256")
        if self.by_md5:
            version = f'"{digest.partition(":")[2]}"'
        self[key] = ManifestEntry(key, len(value), version, digest)

    def add_file(self, key: str, size: int, version: str, hashed: Any) -> None:
        """Note a file that was copied, of which `hashing` was fed the bytes."""
        self[key] = ManifestEntry(key, size, version, f"sha256:{hashed.hexdigest()}")

    def hashing(self) -> Any:
        """Return what computes the digest of a file that is copied block by block."""
        return sha256()

    def digests(self) -> dict[str, str]:
        """Return the digests by key."""
        return {key: entry.digest for key, entry in self.items() if entry.digest is not None}

    def add_below(self, prefix: str, copied: "CopiedObjects") -> None:
        """Note what was copied to a node below, whose keys get its prefix."""
        for key, entry in copied.items():
            self[prefix + key] = ManifestEntry(
                prefix + key, entry.size, entry.version, entry.digest
            )


def keep_manifest(
    node: NodePath,
    known: KnownDigests,
    listing: Listing,
    copied: Mapping[str, ManifestEntry],
    keys: Iterable[str],
) -> None:
    """Store the manifest of a node, unless it is the one that is stored there.

    Objects that were not `copied` are those of a listing, with digests as far as they are known.
    """
    entries = list[ManifestEntry]()
    for key in sorted(keys):
        if key in copied:
            entries.append(copied[key])
        else:
            entry = listing[key]
            listed = ManifestEntry(key, entry.size, entry.tag, known.digests.get(key))
            entries.append(node.lasting_entry(listed))
    made = Manifest(node.location, tuple(entries))
    if made != known.stored:
        node.store_manifest(made)
