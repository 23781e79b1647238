"""List the stored objects of a node: their sizes and versions, as far as the store has them."""

import re
from hashlib import md5

from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import UnsupportedError
from zarrdask.formats.byte_ranges import Buffer, StoredObject
from zarrdask.formats.store_keys import check_relative
from zarrdask.storage.listing import listed_entries, listed_objects, value_sizes


class Listing(dict[str, StoredObject]):
    """The objects at and below a node, by their keys below it."""

    #: The keys of files that this package keeps there, which are not among the objects.
    own: frozenset[str] = frozenset()


#: The beginning of the names of files that this package itself keeps beside nodes.
OWN_FILE = ".zarrdask-"
#: The ETag of an object of S3: the MD5 digest of its value, or of those of its parts.
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
        found = {each.key: each.size for each in listed_entries(store, prefix)}
        unknown = [key for key, size in found.items() if size is None]
        found |= dict(zip(unknown, value_sizes(store, unknown), strict=True))
        listed = [StoredObject(k, "", size, None) for k, size in found.items() if size is not None]
    objects = {each.key[len(prefix) :]: each for each in listed}
    for key in objects:
        check_relative(key, node.location)
    own = frozenset(key for key in objects if f"/{OWN_FILE}" in f"/{key}")
    listing = Listing((k, each) for k, each in sorted(objects.items()) if k not in own)
    listing.own = own
    return listing


def md5_of(entry: StoredObject) -> str | None:
    """Return the MD5 digest of a value that the ETag of its object is, or None."""
    tag = _etag(entry)
    return tag if _MD5.fullmatch(tag) else None


def have_equal_digests(one: StoredObject, other: StoredObject) -> bool | None:
    """Whether two objects have equal digests in their ETags; None if these do not show it."""
    tags = _etag(one), _etag(other)
    if tags[0] == tags[1] and _MD5_OF_PARTS.fullmatch(tags[0]):
        return True
    return False if all(map(_MD5.fullmatch, tags)) else None


def is_version(value: Buffer, entry: StoredObject) -> bool:
    """Whether a value is that of an object as it was listed, as far as its listing shows it."""
    digest = md5_of(entry)
    if len(value) != entry.size:
        return False
    return digest is None or md5(value, usedforsecurity=False).hexdigest() == digest


def _etag(entry: StoredObject) -> str:
    return (entry.tag or "").strip('"')
