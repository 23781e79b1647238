"""The objects that a write has stored, with the digests that were computed on the way."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.storage.capabilities import StoredDigest
from zarrdask.storage.snapshots.digests import digest_of
from zarrdask.storage.snapshots.object_manifest import ManifestEntry


class WrittenObjects(dict[str, ManifestEntry | None]):
    """Objects that were written, by their keys: their versions and digests; None if erased.

    Parameters
    ----------
    algorithm : {"sha256", "md5"}, optional
        The algorithm of the digests, which is the `digest_algorithm` of the store. MD5 digests are
        the ETags of most object stores; in a store with other ETags, the entries do not fit the
        stored versions.
    """

    def __init__(self, algorithm: StoredDigest = "sha256") -> None:
        super().__init__()
        self.algorithm = algorithm

    def add_value(
        self, key: str, value: Buffer, stamp: str | None = None, md5: str | None = None
    ) -> ManifestEntry:
        """Note a value that was stored; `stamp` belongs to its file, `md5` is a known digest."""
        digest = digest_of(value, self.algorithm) if md5 is None else f"md5:{md5}"
        version = f'"{digest.partition(":")[2]}"' if self.algorithm == "md5" else stamp
        entry = self[key] = ManifestEntry(key, len(value), version, digest)
        return entry

    def add_file(self, key: str, size: int, stamp: str, hashed: Any) -> None:
        """Note a file that was copied; `hashed` has the digest of its bytes."""
        self[key] = ManifestEntry(key, size, stamp, f"sha256:{hashed.hexdigest()}")

    def hashing(self) -> Any:
        """Return the hash object for a file that is copied block by block."""
        return sha256()

    def digests(self) -> dict[str, str]:
        """Return the digests of the objects that are there, by key."""
        return {k: entry.digest for k, entry in self.items() if entry and entry.digest}

    def add_below(self, prefix: str, written: "WrittenObjects") -> None:
        """Note what was written to a node below, whose keys get its prefix."""
        for key, entry in written.items():
            self[prefix + key] = entry and entry.at(prefix + key)

    def below(self, prefix: str) -> dict[str, ManifestEntry | None]:
        """Return the objects that were written below a prefix, by the keys there."""
        start = len(prefix)
        return {
            key[start:]: entry and entry.at(key[start:])
            for key, entry in self.items()
            if key.startswith(prefix)
        }

    def render(self) -> bytes:
        """Return the objects as bytes, which `merge` takes in another process."""
        return json.dumps([(k, entry and asdict(entry)) for k, entry in self.items()]).encode()

    def merge(self, parts: Iterable[bytes]) -> None:
        """Note what was written elsewhere."""
        for part in parts:
            self.update((k, entry and ManifestEntry(**entry)) for k, entry in json.loads(part))
