"""``manifest``: list the objects of a node with digests; and check a node against a manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal

from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.nodes.arguments import checks_booleans, suggests_arguments
from zarrdask.errors import NodeNotFoundError, ReadOnlyError, StoreError, one_of
from zarrdask.formats.byte_ranges import Buffer, StoredObject
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.concurrent_requests import request_each
from zarrdask.storage.snapshots.digests import Algorithm, algorithm_of, digest_of
from zarrdask.storage.snapshots.object_manifest import (
    Manifest,
    ManifestDifferences,
    ManifestEntry,
)
from zarrdask.tools.verification.object_listing import Listing, is_version, list_node, md5_of


@suggests_arguments
@checks_booleans
def manifest(
    url: Any,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    digest: Algorithm | None = "sha256",
    versions: bool = False,
    keep: bool = False,
) -> Manifest:
    """Return the keys, sizes, versions and digests of all objects of a node.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Array or Group
        The node, as in `zarrdask.open`.
    component : str, optional
        The path of the node below `url`.
    storage_options : dict, optional
        Options of fsspec for a URL.
    digest : {"sha256", "crc32c"}, optional
        The algorithm of the digests for which objects are read; None for only the digests that the
        store has. Objects whose ETags are MD5 digests, as in S3, are not read in any case.
    versions : bool, default False
        Whether the ID of each object's version is requested, by one request an object, where a
        bucket keeps versions. A snapshot of these versions can be read while others write.
    keep : bool, default False
        Whether the manifest is stored in the node, too, under a name that no format uses.
        `zarrdask.sync` then uses the digests of objects that have not changed since, and
        ``zarrdask.verify(url, manifest=True)`` compares the node with it.

    Returns
    -------
    Manifest
        It can be saved, compared with another one by `zarrdask.compare`, used to check a copy of
        the node by `zarrdask.verify`, and read as a snapshot by `zarrdask.from_zarr`.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    NodeNotFoundError
        If nothing is stored there.
    StoreError
        If an object changes while the manifest is made.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=4, dtype="i4", chunks=2)
    >>> z[...] = 7
    >>> before = zarrdask.manifest(z)
    >>> z[0] = 1
    >>> zarrdask.compare(before, zarrdask.manifest(z)).changed
    ('c/0',)
    """
    if digest is not None:
        one_of(digest, "digest", ("sha256", "crc32c"))
    node = locate_node(url, component, storage_options).current.in_own_hierarchy()
    if keep:
        if getattr(url, "mode", None) == "r":
            raise ReadOnlyError(
                "the node was opened for reading only, so no manifest can be stored in it",
                key=node.location,
                expected='mode="r+"',
            )
        node.store.check_writable()
    listing = list_node(node)
    if not listing:
        raise NodeNotFoundError("there is no array or group here", key=node.location)
    if versions:
        listing = _with_version_ids(node, listing)
    algorithms: dict[str, str] = {}
    for key, entry in listing.items():
        if md5_of(entry) is not None:
            algorithms[key] = "md5"
        elif digest is not None:
            algorithms[key] = digest
    made = _manifest(node, listing, algorithms)
    if keep:
        lasting = (node.lasting_entry(entry) for entry in made.entries)
        node.store_manifest(replace(made, entries=tuple(lasting)))
    return made


def verify_manifest(
    node: NodePath, manifest: Manifest | str | PathLike[str] | Literal[True]
) -> ManifestDifferences:
    """Compare a node with a manifest: objects of equal sizes that have digests there are read.

    Objects whose ETag is the digest are not read. True stands for the manifest that is stored in
    the node.
    """
    node = node.current.in_own_hierarchy()
    expected = node.stored_manifest() if manifest is True else Manifest.of(manifest)
    listing = list_node(node)
    algorithms = {
        entry.key: algorithm_of(entry.digest)
        for entry in expected.entries
        if entry.digest and entry.key in listing and listing[entry.key].size == entry.size
    }
    return _manifest(node, listing, algorithms).compare(expected)


def _with_version_ids(node: StorePath, listing: Listing) -> Listing:
    """Return a listing in which objects have the IDs of their versions, where the store has any."""
    keys = [node.prefix + key for key in listing]
    described = Listing(listing)
    for key, entry in zip(listing, request_each(node.store, node.store.stat, keys), strict=True):
        if entry is None:
            raise _changed(key)
        if entry.object is not None:
            described[key] = entry.object
    return described


def _manifest(node: StorePath, listing: Listing, algorithms: Mapping[str, str]) -> Manifest:
    """Return the manifest of a node, with digests of some of its objects, by their keys."""
    digests = {
        key: f"md5:{md5}"
        for key, algorithm in algorithms.items()
        if algorithm == "md5" and (md5 := md5_of(listing[key])) is not None
    }
    read = [key for key in algorithms if key not in digests]
    for key, value in zip(read, _values(node, listing, read), strict=True):
        if value is None or not is_version(value, listing[key]):
            raise _changed(key)
        digests[key] = digest_of(value, algorithms[key])
    entries = (
        ManifestEntry(key, entry.size, entry.tag, digests.get(key), entry.version_id)
        for key, entry in listing.items()
    )
    return Manifest(node.location, tuple(entries))


def _values(node: StorePath, listing: Listing, keys: list[str]) -> Iterator[Buffer | None]:
    """Yield the listed versions of values, as far as the store supports it; None for others."""
    store, prefix = node.store, node.prefix
    if not store.capabilities.reads_versions:
        return store.get_many([prefix + key for key in keys], Scratch())
    return request_each(store, partial(_value, node, listing), keys)


def _value(node: StorePath, listing: Listing, key: str) -> Buffer | None:
    entry: StoredObject = listing[key]
    if entry.tag is None and entry.version_id is None:
        return node.store.get(node.prefix + key)
    return node.store.get_version(node.prefix + key, entry.version)


def _changed(key: str) -> StoreError:
    return StoreError("the object changed while the manifest was made; repeat it", key=key)
