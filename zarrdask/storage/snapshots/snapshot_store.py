"""A store that reads only the versions of objects that a manifest lists."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from zarrdask.errors import SnapshotError
from zarrdask.formats.byte_ranges import Buffer, Entry, cut
from zarrdask.formats.store_keys import Names, check_prefix, right_below
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.identity import Identity
from zarrdask.storage.snapshots.digests import algorithm_of, digest_of
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry

#: Tasks carry manifests of up to this many objects.
_MAX_CARRIED = 100


class SnapshotStore(Store):
    """The objects below a node as a manifest names them; it can't be written.

    A version with an ID is read by it, also if other writers have replaced it. Others are read on
    the condition that they have not changed: by their ETags or the stamps of files, or, in a store
    that has neither, by their sizes and digests.

    Parameters
    ----------
    inner : Store
        The store of the node.
    prefix : str
        The prefix of the node's keys, which the keys of this store lack.
    manifest : Manifest
        The objects.
    """

    _counts_requests = True  # by the inner store

    def __init__(self, inner: Store, prefix: str, manifest: Manifest) -> None:
        self.inner, self.prefix, self.manifest = inner, prefix, manifest
        inner_has = inner.capabilities
        self.capabilities = replace(
            Capabilities(writable=False),
            shared=inner_has.shared,
            costs=inner_has.costs,
            concurrent=inner_has.concurrent,
            retries=inner_has.retries,
            compact=len(manifest.entries) <= _MAX_CARRIED,
            bodies_limited=inner_has.bodies_limited,
        )

    @property
    def url(self) -> str:
        return f"{self.inner.url}/{self.prefix}".rstrip("/")

    @cached_property
    def _objects(self) -> dict[str, ManifestEntry]:
        return {entry.key: entry for entry in self.manifest.entries}

    @cached_property
    def identity(self) -> Identity:
        identity, versions = self.inner.identity, blake2b(digest_size=8)
        for entry in self.manifest.entries:
            versions.update(repr(entry).encode(errors="surrogatepass"))
        token = f"{identity.token}/{self.prefix}@{versions.hexdigest()}"
        return replace(identity, token=token, directory=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SnapshotStore) and self.identity.token == other.identity.token

    def __hash__(self) -> int:
        return hash(self.identity.token)

    def __reduce__(self) -> tuple[Any, ...]:
        return SnapshotStore, (self.inner, self.prefix, self.manifest)

    def check(self) -> None:
        """Check that, by the manifest, a changed object can be detected."""
        for entry in self.manifest.entries:
            if entry.digest is None and not self._is_by_version(entry):
                raise SnapshotError(
                    "a change of this object could not be detected: in this store, a snapshot "
                    "needs "
                    "a manifest with digests, which zarrdask.manifest(url) makes",
                    key=f"{self.url}/{entry.key}",
                    found=None,
                    expected="a digest",
                )

    def _is_by_version(self, entry: ManifestEntry) -> bool:
        """Whether an object is read on the condition that it is of a version."""
        return self.inner.capabilities.reads_versions and any(entry.object_version)

    # ---- reading

    def get(self, key: str) -> bytes | None:
        value = self.get_range(key, 0)
        return None if value is None else bytes(value)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        entry = self._objects.get(key)
        if entry is None:
            return None
        name, is_whole = self.prefix + key, start == 0 and length is None
        if self._is_by_version(entry):
            value = self.inner.get_version(name, entry.object_version, start, length)
            if value is None or (is_whole and len(value) != entry.size):
                raise self._changed(key)
            return value
        whole = self.inner.get(name)
        if whole is None or not _is_of(whole, entry):
            raise self._changed(key)
        return whole if is_whole else cut(whole, start, length)

    def _changed(self, key: str) -> SnapshotError:
        return SnapshotError(
            "the object differs from its entry in the manifest; make a new manifest",
            key=f"{self.url}/{key}",
        )

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        return right_below(check_prefix(prefix), self.list_prefix(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        prefix = check_prefix(prefix)
        return (key for key in self._objects if key.startswith(prefix))

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        if objects:
            return super().entries(prefix, after, until, objects=objects)
        keys = self.list_prefix(prefix)
        chosen = (key for key in keys if after < key and (until is None or key <= until))
        return (Entry(key, self._objects[key].size) for key in chosen)

    def stat(self, key: str) -> Entry | None:
        entry = self._objects.get(key)
        return None if entry is None else Entry(key, entry.size)


def _is_of(value: Buffer, entry: ManifestEntry) -> bool:
    """Whether a value is the one of an entry, by its size and its digest."""
    digest = entry.digest
    if len(value) != entry.size or digest is None:
        return False
    return digest_of(value, algorithm_of(digest)) == digest
