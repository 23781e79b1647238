"""The manifest that is stored in a node itself, under a name that no format uses.

Each entry says what the digest of one version of an object is. It stays true whatever happens
later: if the object has another version now, which a listing shows, the entry is out of date.
So no writer needs to keep the manifest up to date, and of two writers that store it at the same
time, one only loses digests, which are then computed again.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.hierarchy.resize import change_documents
from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.formats.metadata import detect
from zarrdask.storage.local.open_file import is_settled
from zarrdask.storage.snapshots.digesting_store import DigestingFork, DigestingStore
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry
from zarrdask.storage.snapshots.written_objects import WrittenObjects
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


def digested(chunks: StoredChunks) -> StoredChunks:
    """Return the chunks of an array whose digests are computed when they are stored here.

    Sessions of icechunk have versions of their own, and no manifests.
    """
    if chunks.store.capabilities.forks:
        return chunks
    return replace(chunks, store=DigestingStore(chunks.store))


def keep_manifest(
    node: StorePath,
    chunks: StoredChunks,
    parts: Mapping[str, list[bytes]] = MappingProxyType({}),
    *,
    is_whole: bool = False,
) -> None:
    """Note in the manifest of an array what was stored in its chunks, if digests were computed.

    `parts` are what forks of other processes have returned, by their names; `is_whole` is as in
    `update_manifest`.
    """
    store = chunks.store
    if isinstance(store, DigestingStore):
        written = store.written
    elif isinstance(store, DigestingFork):
        written = store.written_with(parts.get(store.name, ()))
    else:
        return
    update_manifest(node, written.below(chunks.prefix), is_whole=is_whole)


def begin_manifest(node: StorePath) -> None:
    """Store the manifest of a new array without chunks."""
    if not node.store.capabilities.forks:
        update_manifest(node, {}, is_whole=True)


def update_manifest(
    node: StorePath, written: Mapping[str, ManifestEntry | None], *, is_whole: bool
) -> None:
    """Note in the manifest of an array what was written and erased, and its documents.

    If there is no manifest, one is stored only if all objects of the array were written
    (`is_whole`).
    """

    def change(array: StorePath) -> None:
        stored = None
        with suppress(StoreError, MetadataError):
            stored = stored_manifest(array)
        if stored is None and not is_whole:
            return
        old = () if stored is None or is_whole else stored.entries
        entries = {entry.key: entry for entry in old} | dict(written) | _documents(node)
        kept = (entry for _, entry in sorted(entries.items()) if entry is not None)
        store_manifest(array, Manifest(node.location, tuple(kept)))

    change_documents(node, change)


def _documents(node: StorePath) -> dict[str, ManifestEntry | None]:
    """Return the entries of the documents of an array."""
    entries = WrittenObjects(node.store.capabilities.digest_algorithm)
    for name in detect.names(node.layout):
        entry, value = node.store.stat(node.prefix + name), node.store.get(node.prefix + name)
        entries[name] = None
        if entry is not None and value is not None:
            written = entries.add_value(name, value, entry.stamp or None)
            entries[name] = lasting_entry(node, written)
    return entries


def lasting_entry(node: StorePath, entry: ManifestEntry) -> ManifestEntry:
    """Return an entry as it may be stored: without a version that a change might not change.

    The version of a local file that was just written stays the same if the file is changed at once.
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
