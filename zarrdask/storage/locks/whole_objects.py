"""Store or erase whole objects while other writers may change parts of the same objects.

A partial write of a chunk that has read the older object would store it again, changed in part. So
objects are stored once more after such writes. Where they can, partial writes find out themselves
that the object has changed.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from zarrdask.storage.base import Store
from zarrdask.storage.locks.chunk_locks import ChunkLocks, Version, canonical_location

T = TypeVar("T")


class WholeObjects:
    """Objects below a prefix of a store, which are stored or erased as a whole."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._locks = None if store.capabilities.compare_and_swap else ChunkLocks(store)
        self._location = canonical_location(store, prefix)

    def versions(self, keys: Iterable[str]) -> dict[str, Version]:
        """Return the versions of objects, by their keys below the prefix, before they change."""
        if self._locks is None:
            return {}
        return {key: self._locks.version(self._location + key) for key in keys}

    def outdated(self, versions: dict[str, Version]) -> list[str]:
        """Return the keys of objects that partial writes have changed, or may change."""
        if self._locks is None:
            return []
        return [key for key, version in versions.items() if self._locks.is_outdated(version)]

    def hold(self, key: str) -> AbstractContextManager[object]:
        """Return the lock that a partial write of an object takes."""
        return nullcontext() if self._locks is None else self._locks.hold(self._location + key)

    def change(self, change: Callable[[str], T], key: str) -> T:
        """Change one object, and once more if a partial write may have replaced it."""
        versions = self.versions([key])
        result = change(key)
        for _ in self.outdated(versions):
            with self.hold(key):
                return change(key)
        return result
