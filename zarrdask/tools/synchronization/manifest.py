"""``manifest``: the keys, sizes, versions and digests of all objects of a node, in one file."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import new
from os import PathLike
from typing import Any, ClassVar, Self

from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.nodes.arguments import checks_booleans, suggests_arguments
from zarrdask.display.report import Report
from zarrdask.display.words import byte_size, counted
from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.scratch import Scratch
from zarrdask.tools.synchronization.object_listing import (
    check_relative,
    is_version,
    list_node,
    md5_of,
)

_FORMAT = "zarrdask-manifest"
#: The algorithms of digests, each with the number of hexadecimal digits.
_DIGITS = {"sha256": 64, "md5": 32}


@dataclass(frozen=True)
class ManifestEntry:
    """One object of a manifest.

    Attributes
    ----------
    key : str
        The key of the object below the node.
    size : int
        The size in bytes.
    version : str, optional
        The ETag of the object, or the stamp of a local file.
    digest : str, optional
        The name of an algorithm, a colon and the digest: ``sha256:...`` or ``md5:...``.
    """

    key: str
    size: int
    version: str | None = None
    digest: str | None = None


@dataclass(frozen=True, repr=False)
class ManifestDifferences(Report):
    """How the objects of a node differ from a manifest, or one manifest from an older one.

    Attributes
    ----------
    changed, missing, added : tuple of str
        The keys of objects that differ, that only the manifest has, and that it lacks.
    unknown : tuple of str
        The keys of objects of equal sizes whose digests or versions can't be compared.
    """

    changed: tuple[str, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    derived: ClassVar[tuple[str, ...]] = ("ok",)

    @property
    def ok(self) -> bool:
        """Whether there is no difference, and nothing that can't be compared."""
        return not (self.changed or self.missing or self.added or self.unknown)

    def facts(self) -> list[tuple[str, str]]:
        """Return the numbers of keys, and the first key of each kind."""
        kinds = ("changed", "missing", "added", "unknown")
        keys = {kind: getattr(self, kind) for kind in kinds}
        return [(k, f"{len(v)}, the first is {v[0]}" if v else "none") for k, v in keys.items()]


@dataclass(frozen=True, repr=False)
class Manifest(Report):
    """The objects (chunks, shards and documents) of a node as they were at one time.

    Attributes
    ----------
    location : str
        The location of the node.
    entries : tuple of ManifestEntry
        The objects in the order of their keys.
    """

    location: str
    entries: tuple[ManifestEntry, ...]

    def _text(self) -> str:
        size = byte_size(sum(entry.size for entry in self.entries))
        return f"{self.location}: {counted(len(self.entries), 'object')}, {size}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the manifest to a local file, as JSON."""
        entries = [asdict(entry) for entry in self.entries]
        document = {"format": _FORMAT, "location": self.location, "entries": entries}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a manifest from a local file.

        Raises
        ------
        MetadataError
            If the file is no manifest; or if a key leads out of the node, or a size, a version or a
            digest is invalid.
        """
        with open(path, "rb") as file:
            data = file.read()
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise MetadataError("the file is not JSON", key=str(path), found=str(error)) from error
        is_manifest = isinstance(document, dict) and document.get("format") == _FORMAT
        if not (is_manifest and isinstance(document.get("entries"), list)):
            raise MetadataError("the file is no manifest", key=str(path), expected=_FORMAT)
        entries = [_parsed(entry, str(path)) for entry in document["entries"]]
        keys = {entry.key for entry in entries}
        if len(keys) < len(entries):
            raise MetadataError("a manifest has a key twice", key=str(path))
        return cls(str(document.get("location")), tuple(sorted(entries, key=lambda e: e.key)))

    def compare(self, older: "Manifest") -> ManifestDifferences:
        """Compare this manifest with an older one; no object is read."""
        before = {entry.key: entry for entry in older.entries}
        now = {entry.key: entry for entry in self.entries}
        changed, unknown = list[str](), list[str]()
        for key in sorted(before.keys() & now.keys()):
            equal = _are_equal(before[key], now[key])
            if not equal:
                (unknown if equal is None else changed).append(key)
        missing, added = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
        return ManifestDifferences(tuple(changed), tuple(missing), tuple(added), tuple(unknown))

    def verify(
        self, url: Any, *, storage_options: dict[str, Any] | None = None
    ) -> ManifestDifferences:
        """Compare a node with this manifest: objects that have digests here are read.

        Objects whose ETag is the digest are not read, nor those of other sizes.
        """
        node = locate_node(url, None, storage_options).current
        algorithms = {e.key: e.digest.partition(":")[0] for e in self.entries if e.digest}
        return _manifest(node, algorithms).compare(self)


@suggests_arguments
@checks_booleans
def manifest(
    url: Any,
    *,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    digests: bool = True,
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
    digests : bool, default True
        Whether objects are read to compute SHA-256 digests. Those whose ETags are MD5 digests, as
        in S3, are not read in any case.

    Returns
    -------
    Manifest
        It can be saved, compared with another one, and used to verify a copy of the node.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array({}, shape=4, dtype="i4", chunks=2)
    >>> z[...] = 7
    >>> before = zarrdask.manifest(z)
    >>> z[0] = 1
    >>> zarrdask.manifest(z).compare(before).changed
    ('c/0',)
    """
    node = locate_node(url, component, storage_options).current
    return _manifest(node, "sha256" if digests else None)


def _manifest(node: StorePath, algorithms: Mapping[str, str] | str | None) -> Manifest:
    """Return the manifest of a node, with digests by an algorithm for all keys, or for each key."""
    listing = list_node(node)
    of_key = algorithms if isinstance(algorithms, Mapping) else dict.fromkeys(listing, algorithms)
    digests: dict[str, str | None] = {}
    for key, entry in listing.items():
        if of_key.get(key) != "sha256" or isinstance(algorithms, str):
            tag = md5_of(entry)
            digests[key] = None if tag is None else f"md5:{tag}"
    read = [k for k in listing if of_key.get(k) is not None and digests.get(k) is None]
    values = node.store.get_many([node.prefix + key for key in read], Scratch())
    for key, value in zip(read, values, strict=True):
        if value is None or not is_version(value, listing[key]):
            raise StoreError("the object changed while the manifest was made", key=key)
        digests[key] = _digest(value, str(of_key[key]))
    entries = (ManifestEntry(k, e.size, e.tag, digests.get(k)) for k, e in listing.items())
    return Manifest(node.location, tuple(entries))


def _digest(value: Buffer, algorithm: str) -> str:
    return f"{algorithm}:{new(algorithm, value, usedforsecurity=False).hexdigest()}"


def _are_equal(one: ManifestEntry, other: ManifestEntry) -> bool | None:
    """Whether two objects are equal; None if their digests and versions do not show it."""
    if one.size != other.size:
        return False
    digests = one.digest, other.digest
    if None not in digests and digests[0].split(":")[0] == digests[1].split(":")[0]:  # type: ignore[union-attr]
        return digests[0] == digests[1]
    if one.version is not None and one.version == other.version:
        return True
    return None


def _parsed(entry: Any, path: str) -> ManifestEntry:
    """Return an entry of a file, if it is valid."""
    names = {"key", "size", "version", "digest"}
    if not isinstance(entry, dict) or not {"key", "size"} <= entry.keys() <= names:
        raise MetadataError("invalid entry", key=path, found=entry, expected=sorted(names))
    key, size = check_relative(entry["key"], path), entry["size"]
    if type(size) is not int or size < 0:
        raise MetadataError("invalid size", key=f"{path} {key}", found=size, expected="bytes")
    version, digest = entry.get("version"), entry.get("digest")
    if not isinstance(version, str | None):
        raise MetadataError("invalid version", key=f"{path} {key}", found=version, expected="text")
    if digest is not None and not _is_digest(digest):
        expected = "sha256:... or md5:..."
        raise MetadataError("invalid digest", key=f"{path} {key}", found=digest, expected=expected)
    return ManifestEntry(key, size, version, digest)


def _is_digest(digest: Any) -> bool:
    if not isinstance(digest, str):
        return False
    algorithm, _, digits = digest.partition(":")
    return len(digits) == _DIGITS.get(algorithm) and not digits.strip("0123456789abcdef")
