"""Manifests: all objects of a node, with sizes, versions and digests; and their comparison."""

from dataclasses import dataclass, replace
from importlib.util import find_spec
from os import PathLike
from typing import Any, ClassVar, Self

from zarrdask.display.report import Report
from zarrdask.display.words import byte_size, counted
from zarrdask.errors import MetadataError
from zarrdask.formats.byte_ranges import ObjectVersion
from zarrdask.storage.snapshots import manifest_files
from zarrdask.storage.snapshots.digests import algorithm_of

#: The number of objects up to which a manifest is stored as JSON, to import no package for it.
_SMALL = 1000


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
        The name of an algorithm, a colon and the digest: ``sha256:...``, ``md5:...`` or
        ``crc32c:...``.
    version_id : str, optional
        The ID by which a bucket with versions keeps this version of the object.
    """

    key: str
    size: int
    version: str | None = None
    digest: str | None = None
    version_id: str | None = None

    def at(self, key: str) -> Self:
        """Return the same object under another key."""
        return replace(self, key=key)

    @property
    def object_version(self) -> ObjectVersion:
        """The version of the object, as stores read it."""
        return ObjectVersion(self.version, self.version_id)


@dataclass(frozen=True, repr=False)
class ManifestDifferences(Report):
    """How the objects of a node differ from a manifest, or one manifest from an older one.

    Attributes
    ----------
    changed, missing, added : tuple of str
        The keys of objects that differ, that only the (older) manifest has, and that it lacks.
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
    """The objects (chunks, shards and documents) of a node at one time.

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
        """Write the manifest to a local file: Parquet if its name ends with ``.parquet``, or JSON.

        Raises
        ------
        UnsupportedError
            If the name ends with ``.parquet``, and pyarrow is not installed.
        StoreError
            If the file can't be written.
        """
        manifest_files.save(path, self.location, self.entries)

    @classmethod
    def of(cls, manifest: "Manifest | str | PathLike[str]") -> "Manifest":
        """Return a manifest, or the one in a local file."""
        if isinstance(manifest, Manifest):
            return manifest
        if not isinstance(manifest, str | PathLike):
            raise MetadataError(
                "pass a manifest, or the path of a file that zarrdask.manifest(url).save wrote",
                key="manifest",
                found=manifest,
            )
        return cls.load(manifest)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a manifest from a local file.

        Raises
        ------
        MetadataError
            If the file is not a manifest; or if a key leads out of the node, or a size, a version
            or a digest is invalid.
        UnsupportedError
            If it is a Parquet file, and pyarrow is not installed.
        StoreError
            If the file can't be read.
        """
        return cls._of(*manifest_files.load(path))

    @classmethod
    def parse(cls, data: bytes, name: str) -> Self:
        """Return the manifest in the content of a file; the name is for messages, as `load`."""
        return cls._of(*manifest_files.parse(data, name))

    @classmethod
    def _of(cls, location: str, rows: list[dict[str, Any]]) -> Self:
        return cls(location, tuple(ManifestEntry(**row) for row in rows))

    def render(self) -> bytes:
        """Return the content of a file: Parquet for many objects if pyarrow is installed."""
        parquet = len(self.entries) > _SMALL and find_spec("pyarrow") is not None
        return manifest_files.render(self.location, self.entries, self.location, parquet=parquet)

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


def _are_equal(one: ManifestEntry, other: ManifestEntry) -> bool | None:
    """Whether two objects are equal; None if their digests and versions do not show it."""
    if one.size != other.size:
        return False
    if one.digest and other.digest and algorithm_of(one.digest) == algorithm_of(other.digest):
        return one.digest == other.digest
    if one.version is not None and one.version == other.version:
        return True
    return None
