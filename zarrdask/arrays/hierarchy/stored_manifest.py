"""The manifest that is stored in a node itself, under a name that no format uses.

Each entry says what the digest of one version of an object is. It stays true whatever happens
later: an entry whose version is no longer that of the object is out of date, which a listing shows.
So no writer needs to keep the manifest up to date, and of two writers that store it at the same
time, one only loses digests, which are then computed again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.storage.local.open_file import is_settled
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry
from zarrdask.storage.zarr.draft_store import stored_in

NAME = ".zarrdask-manifest"


def stored_manifest(node: StorePath) -> Manifest:
    """Return the manifest that is stored in a node.

    Raises
    ------
    StoreError
        If there is none.
    """
    store, key = stored_in(node.store), f"{node.prefix}{NAME}"
    name, value = f"{store.url}/{key}", store.get(key)
    if value is None:
        raise StoreError(
            "no manifest is stored here; zarrdask.manifest(url, keep=True) and "
            "zarrdask.sync(source, target, manifest=True) store one",
            key=name,
        )
    return Manifest.parse(bytes(value), name)


def store_manifest(node: StorePath, manifest: Manifest) -> None:
    """Store a manifest in its node, in place of an older one."""
    store = stored_in(node.store)
    store.set(f"{node.prefix}{NAME}", manifest.render())


def lasting_entry(node: StorePath, entry: ManifestEntry) -> ManifestEntry:
    """Return an entry as it may be stored: without a version that a change might not change.

    That of a local file that was written just now stays the same if the file is changed at once.
    """
    is_local = node.store.capabilities.stamps and entry.version is not None
    return (
        replace(entry, version=None) if is_local and not is_settled(str(entry.version)) else entry
    )


def current_digests(
    entries: Iterable[ManifestEntry], listing: Mapping[str, StoredObject]
) -> dict[str, str]:
    """Return the digests in entries that are about the versions of objects that are there now."""
    return {
        entry.key: entry.digest
        for entry in entries
        if (now := listing.get(entry.key)) is not None
        and entry.digest is not None
        and entry.version is not None
        and now.tag is not None
        and (entry.size, _plain(entry.version)) == (now.size, _plain(now.tag))
    }


def _plain(tag: str) -> str:
    # Servers quote ETags, and some clients leave that out.
    return tag.strip('"')
