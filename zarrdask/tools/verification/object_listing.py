"""List the stored objects of a node: their sizes and versions, as far as the store has them."""

import re
from contextlib import suppress
from hashlib import md5
from typing import NamedTuple

from zarrdask.arrays.chunks.unfinished import Marker
from zarrdask.arrays.hierarchy import stored_manifest
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import MetadataError, StoreError, UnsupportedError
from zarrdask.formats.byte_ranges import Buffer, StoredObject
from zarrdask.formats.store_keys import check_relative
from zarrdask.storage.listing import listed_entries, listed_objects, value_sizes
from zarrdask.storage.snapshots.digests import algorithm_of, digest_of
from zarrdask.storage.snapshots.object_manifest import Manifest


class Listing(dict[str, StoredObject]):
    """The objects at and below a node, by their keys below it."""

    #: The keys of files that this package keeps there, which are not among the objects.
    own: frozenset[str] = frozenset()


#: The ETag of an object of S3: the MD5 digest of its value, or of the digests of its parts.
_MD5 = re.compile(r"[0-9a-f]{32}")
_MD5_OF_PARTS = re.compile(r"[0-9a-f]{32}(-\d+)?")


def list_node(node: StorePath) -> Listing:
    """Return the objects at and below a node, without the files that this package keeps there.

    Raises
    ------
    MetadataError
        If a key would lead out of the node, as one with the name ``..`` would on a disk.
    UnsupportedError
        If the store can't be listed.
    """
    store, prefix = node.store, node.prefix
    if not store.capabilities.listable:
        raise UnsupportedError("the store can't be listed", key=node.location)
    try:
        listed = [*listed_objects(store, prefix)]
    except UnsupportedError:
        sizes = {each.key: each.size for each in listed_entries(store, prefix)}
        unknown = [key for key, size in sizes.items() if size is None]
        sizes |= dict(zip(unknown, value_sizes(store, unknown), strict=True))
        listed = [StoredObject(k, "", size, None) for k, size in sizes.items() if size is not None]
    objects = {each.key[len(prefix) :]: each for each in listed}
    for key in objects:
        check_relative(key, node.location)
        if (marker := Marker.at(store, prefix + key)) is not None:
            marker.warn()
    own = frozenset(key for key in objects if f"/{stored_manifest.OWN_FILE}" in f"/{key}")
    listing = Listing((k, each) for k, each in sorted(objects.items()) if k not in own)
    listing.own = own
    return listing


def md5_of(entry: StoredObject) -> str | None:
    """Return the MD5 digest of a value that the ETag of its object is, or None."""
    tag = _etag(entry)
    return tag if _MD5.fullmatch(tag) else None


class KnownDigests(NamedTuple):
    """Digests of objects that need no reading, by key; and the manifest that is stored there."""

    stored: Manifest | None
    digests: dict[str, str]


def listed_digests(node: NodePath, listing: Listing) -> KnownDigests:
    """Return the digests of objects that need no reading.

    These are those that manifests that are stored in the node, and in arrays below it, have for the
    present versions of objects, and MD5 digests in ETags. A manifest that can't be read is of no
    use here, and is left out.
    """
    stored, digests = None, dict[str, str]()
    name = stored_manifest.NAME
    prefixes = {key.removesuffix(name) for key in listing.own if key.endswith(f"/{name}")}
    if name in listing.own or node.layout.base is not None:
        prefixes.add("")
    for prefix in sorted(prefixes):
        with suppress(MetadataError, UnsupportedError, StoreError):
            manifest = node.join(prefix).stored_manifest()
            stored = stored if prefix else manifest
            entries = (entry.at(prefix + entry.key) for entry in manifest.entries)
            digests |= stored_manifest.current_digests(entries, listing)
    for key, entry in listing.items():
        if (md5_digest := md5_of(entry)) is not None:
            digests[key] = f"md5:{md5_digest}"
    return KnownDigests(stored, digests)


def have_equal_digests(one: StoredObject, other: StoredObject) -> bool | None:
    """Whether two objects have equal digests in their ETags; None if these do not show it."""
    tags = _etag(one), _etag(other)
    if tags[0] == tags[1] and _MD5_OF_PARTS.fullmatch(tags[0]):
        return True
    return False if all(map(_MD5.fullmatch, tags)) else None


def has_digest(value: Buffer, digest: str) -> bool:
    """Whether a value has a digest."""
    return digest_of(value, algorithm_of(digest)) == digest


def compared(one: str | None, other: str | None) -> bool | None:
    """Whether two digests are equal; None if one is missing, or by another algorithm."""
    if one is None or other is None or algorithm_of(one) != algorithm_of(other):
        return None
    return one == other


def is_version(value: Buffer, entry: StoredObject) -> bool:
    """Whether a value may be the value of a listed object, by its size and MD5 digest."""
    digest = md5_of(entry)
    if len(value) != entry.size:
        return False
    return digest is None or md5(value, usedforsecurity=False).hexdigest() == digest


def _etag(entry: StoredObject) -> str:
    return (entry.tag or "").strip('"')
