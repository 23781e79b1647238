"""The manifest that is stored in a node itself, under a name that no format uses.

Each entry says what the digest of one version of an object is. Later changes can't make it wrong:
if the object has another version now, which a listing shows, the entry is out of date. So no writer
needs to keep the manifest up to date. A writer that does notes what is stored when it ends: if
another writer has replaced an object since, the present version.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.hierarchy.resize import change_documents
from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import Entry, StoredObject
from zarrdask.formats.metadata import detect
from zarrdask.storage.concurrent_requests import request_each
from zarrdask.storage.local.open_file import is_settled
from zarrdask.storage.snapshots.digesting_store import DigestingStore, written_to
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry
from zarrdask.storage.snapshots.written_objects import WrittenObjects
from zarrdask.storage.zarr.draft_store import stored_in

NAME = ".zarrdask-manifest"
#: The beginning of the names of files that this package itself keeps beside nodes.
OWN_FILE = ".zarrdask-"
#: An ETag that may be the MD5 digest of the value.
_MD5 = re.compile(r"[0-9a-f]{32}")


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
    written = written_to(chunks.store, parts)
    if written is not None:
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
        costs = node.store.capabilities.costs
        is_listed = is_whole or len(old) < costs.listed * len(written)
        documents = _read_entries(node, detect.names(node.layout))
        replaced = _replaced(node, written, documents, is_listed=is_listed, is_whole=is_whole)
        read = documents | _read_entries(node, replaced)
        entries = {entry.key: entry for entry in old} | dict(written) | read
        kept = (entry for _, entry in sorted(entries.items()) if entry is not None)
        store_manifest(array, Manifest(node.location, tuple(kept)))

    change_documents(node, change)


def _read_entries(node: StorePath, names: Iterable[str]) -> dict[str, ManifestEntry | None]:
    """Return the entries of objects as they are now, which are read; None for missing ones."""
    store, read = node.store, WrittenObjects(node.store.capabilities.digest_algorithm)

    def read_entry(name: str) -> ManifestEntry | None:
        entry, value = store.stat(node.prefix + name), store.get(node.prefix + name)
        if entry is None or value is None:
            return None
        return lasting_entry(node, read.add_value(name, value, entry.stamp or None))

    names = [*names]
    return dict(zip(names, request_each(store, read_entry, names), strict=True))


def _replaced(
    node: StorePath,
    written: Mapping[str, ManifestEntry | None],
    documents: Mapping[str, ManifestEntry | None],
    *,
    is_listed: bool,
    is_whole: bool,
) -> list[str]:
    """Return the keys of objects that another writer has stored or erased after this one.

    `documents` are the entries of the documents, which were read just now. If a write stored all
    objects (`is_whole`), any others are of another writer, too. `is_listed` says that a listing of
    all takes less time than a request for each that was written.
    """
    has = node.store.capabilities
    now = _present(node, written, is_listed=is_listed)
    if has.stamps or not has.costs.checks:
        replaced = [key for key, entry in written.items() if not _is_same(entry, now.get(key))]
    else:
        replaced = [*written]  # in memory: nothing shows versions, and reading costs little
    if replaced and has.md5_etags and not _has_md5_etags(node, documents):
        replaced = []
    if is_whole:
        own = {*written, *detect.names(node.layout)}
        replaced += [key for key in now if key not in own and not key.startswith(OWN_FILE)]
    return replaced


def _present(node: StorePath, keys: Iterable[str], *, is_listed: bool) -> dict[str, Entry]:
    """Return what is stored now: by a listing of all objects, or by a request for each key."""
    store, prefix = node.store, node.prefix
    if is_listed and store.capabilities.listable:
        has_objects = store.capabilities.md5_etags or store.capabilities.directories
        found = store.entries(prefix, objects=has_objects)
        return {each.key[len(prefix) :]: each for each in found}
    keys = [*keys]
    stats = request_each(store, store.stat, [prefix + key for key in keys])
    return {key: each for key, each in zip(keys, stats, strict=True) if each is not None}


def _is_same(entry: ManifestEntry | None, now: Entry | None) -> bool:
    """Whether an object is as a writer has left it, as far as its version or its size shows it."""
    if entry is None or now is None:
        return entry is None and now is None
    version, tag = _plain(entry.version or ""), _version_of(now)
    # The ETag of an object that was uploaded in parts is not the digest of its value.
    are_comparable = version and tag and bool(_MD5.fullmatch(version)) == bool(_MD5.fullmatch(tag))
    return version == tag if are_comparable else now.size in (None, entry.size)


def _version_of(entry: Entry) -> str:
    """Return the ETag of an object, or the stamp of a file."""
    return entry.stamp if entry.object is None else _plain(entry.object.tag or "")


def _has_md5_etags(node: StorePath, documents: Mapping[str, ManifestEntry | None]) -> bool:
    """Whether the ETag of the document is the digest of it: not in all buckets, as with KMS."""
    return any(
        entry and _is_same(entry, node.store.stat(node.prefix + name))
        for name, entry in documents.items()
    )


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
