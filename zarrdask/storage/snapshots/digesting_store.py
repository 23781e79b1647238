"""A store that computes the digests of the values that tasks store in it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.storage.adapters.forks import Fork
from zarrdask.storage.base import Store
from zarrdask.storage.local.file_times import TimedFile
from zarrdask.storage.local.local_store import LocalStore, as_local
from zarrdask.storage.snapshots.written_objects import WrittenObjects
from zarrdask.storage.transfer import local_value
from zarrdask.storage.wrapper import WrappedStore


class DigestingStore(WrappedStore):
    """A store that notes the digests and versions of values that are stored in it.

    Parameters
    ----------
    inner : Store
        The store.
    written : WrittenObjects, optional
        Where they are noted.
    """

    def __init__(self, inner: Store, written: WrittenObjects | None = None) -> None:
        super().__init__(inner)
        algorithm = inner.capabilities.digest_algorithm
        self.written = WrittenObjects(algorithm) if written is None else written

    def __reduce__(self) -> tuple[Any, ...]:
        return DigestingStore, (self.inner, self.written)

    def for_chunks(self) -> Store:
        return DigestingStore(self.inner.for_chunks(), self.written)

    def _local(self, key: str) -> tuple[LocalStore, str] | None:
        """Return the local store and the key there of a value that is one file, else None."""
        local = as_local(self.inner)
        return local_value(self.inner, key) if local is None else (local, key)

    def set(self, key: str, value: Buffer) -> None:
        stamps = list[str]()
        local = self._local(key)
        if local is None:
            self.inner.set(key, value)
        else:
            local[0].replace(local[1], lambda file: stamps.append(TimedFile(file).write(value)))
        self.written.add_value(key, value, *stamps)

    def create(self, key: str, value: Buffer) -> bool:
        stamps = list[str]()
        local = self._local(key)
        if local is None:
            is_new = self.inner.create(key, value)
        else:
            is_new = local[0].create(
                local[1], value, lambda file: stamps.append(TimedFile(file).write(value))
            )
        if is_new:
            self.written.add_value(key, value, *stamps)
        return is_new

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        is_stored = self.inner.swap(key, value, tag)
        if is_stored:
            self.written.add_value(key, value)
        return is_stored

    def erase(self, key: str) -> None:
        self.inner.erase(key)
        self.written[key] = None

    def erase_values(self, keys: Iterable[str]) -> None:
        erased = [*keys]
        self.inner.erase_values(erased)
        self.written.update(dict.fromkeys(erased))


class DigestingFork(WrappedStore, Fork):
    """A store that tasks write to, and what they have written, in the process where it was made.

    Parameters
    ----------
    inner : Store
        The store.
    name : str, optional
        As in `Fork`. With a name of the caller, changes do not arrive in this process: the last
        task takes them from what other tasks return.
    """

    is_merged_at_once = True

    def __init__(self, inner: Store, name: str = "") -> None:
        WrappedStore.__init__(self, inner)
        Fork.__init__(self, name)
        self.written = WrittenObjects(inner.capabilities.digest_algorithm)

    def __reduce__(self) -> tuple[Any, ...]:
        return DigestingFork, (self.inner, self.name)

    def begin(self) -> Store:
        return DigestingStore(self.inner)

    def end(self, copy: Store) -> bytes:
        written: WrittenObjects = copy.written  # type: ignore[attr-defined]
        return written.render()

    def merge(self, changes: Iterable[bytes]) -> None:
        self.written.merge(changes)

    def written_with(self, parts: Iterable[bytes]) -> WrittenObjects:
        """Return the objects that tasks have written: the merged ones, and these parts."""
        written = WrittenObjects(self.written.algorithm)
        written.update(self.written)
        written.merge(parts)
        return written

    def check_unchanged(self) -> None:
        """Nothing to check: the store itself is changed."""

    def check_same(self, other: Fork) -> None:
        """Nothing to check: the store itself is changed."""

    def changed(self, changes: bytes) -> Iterable[str]:
        written = WrittenObjects()
        written.merge([changes])
        return [*written]


def written_to(
    store: Store, parts: Mapping[str, list[bytes]] = MappingProxyType({})
) -> WrittenObjects | None:
    """Return the objects that were written to a store, if their digests were computed, else None.

    `parts` are what forks of other processes have returned, by their names.
    """
    if isinstance(store, DigestingFork):
        return store.written_with(parts.get(store.name, ()))
    return store.written if isinstance(store, DigestingStore) else None
