"""A store that takes the documents of a group from consolidated metadata."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from zarrdask.formats.byte_ranges import Buffer, Range, Tag
from zarrdask.formats.metadata.consolidated_index import ConsolidatedMetadata
from zarrdask.formats.store_keys import Names, check_prefix
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.wrapper import WrappedStore


class ConsolidatedStore(WrappedStore):
    """A store seen through the consolidated metadata of a group (conformance A-68, C-78).

    Metadata documents of the group and of the nodes below it, and the members of groups, come from
    the consolidated metadata; chunks, and all other keys, from the inner store. After the first
    write through this store, everything comes from the inner store. It pickles as the inner store.
    """

    def __init__(self, inner: Store, path: str, consolidated: ConsolidatedMetadata) -> None:
        super().__init__(inner)
        self.path = path
        self.consolidated: ConsolidatedMetadata | None = consolidated

    def drop_cache(self) -> None:
        """Read everything from the inner store from now on."""
        self.consolidated = None

    def holds(self, path: str) -> bool:
        """Whether the consolidated metadata covers a path."""
        return self.consolidated is not None and self._below(path) is not None

    def members(self, path: str) -> list[str] | None:
        """Return the names of a group's members, or None if they must be listed."""
        consolidated, below = self.consolidated, self._below(path)
        if consolidated is None or below is None:
            return None
        names = consolidated.members.get(below)
        return None if names is None else list(names)

    def _below(self, path: str) -> str | None:
        """Return a path relative to the group, or None if it is not below the group."""
        if not self.path or path == self.path:
            return path[len(self.path) :]
        start = f"{self.path}/"
        return path[len(start) :] if path.startswith(start) else None

    def _document(
        self, consolidated: ConsolidatedMetadata | None, key: str
    ) -> tuple[bool, bytes | None]:
        """Return whether the consolidated metadata covers a key, and its value then."""
        path, _, name = key.rpartition("/")
        below = self._below(path)
        if consolidated is None or below is None or name not in consolidated.names:
            return False, None
        document = consolidated.documents.get(below, {}).get(name)
        # As if it were written by us: arrays have one name in graphs, however they were found.
        return True, None if document is None else consolidated.dump(document)

    # ---- properties of the inner store

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The inner store's; and the members of groups can always be listed."""
        inner = super().capabilities
        return inner if self.consolidated is None else replace(inner, listable=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.inner == uncached(other)

    def __hash__(self) -> int:
        return hash(self.inner)

    def __reduce__(self) -> tuple[Any, ...]:
        # A task needs chunks only, so the documents must not be sent with each task.
        return _inner, (self.inner,)

    def for_chunks(self) -> Store:
        """Return the inner store: consolidated metadata has no chunks."""
        return self.inner.for_chunks()

    # ---- reading

    def get(self, key: str) -> bytes | None:
        is_covered, value = self._document(self.consolidated, key)
        return value if is_covered else self.inner.get(key)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        keys, consolidated = list(keys), self.consolidated
        documents = [self._document(consolidated, key) for key in keys]
        others = [
            key for key, (is_covered, _) in zip(keys, documents, strict=True) if not is_covered
        ]
        values = iter(self.inner.get_many(others, scratch) if others else ())
        for is_covered, value in documents:
            yield value if is_covered else next(values)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        if self._document(self.consolidated, key)[0]:
            return Store.get_range(self, key, start, length)
        return self.inner.get_range(key, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        if self._document(self.consolidated, key)[0]:
            return Store.get_ranges(self, key, ranges, scratch)
        return self.inner.get_ranges(key, ranges, scratch)

    def list_dir(self, prefix: str) -> Names:
        consolidated, below = self.consolidated, self._below(check_prefix(prefix).rstrip("/"))
        if consolidated is None or below is None:
            return self.inner.list_dir(prefix)
        members = consolidated.members.get(below)
        if members is None:
            return self.inner.list_dir(prefix)
        return sorted(consolidated.documents.get(below, ())), list(members)

    # ---- writing, after which the consolidated metadata may be out of date

    def set(self, key: str, value: Buffer) -> None:
        self.drop_cache()
        self.inner.set(key, value)

    def create(self, key: str, value: Buffer) -> bool:
        self.drop_cache()
        return self.inner.create(key, value)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        self.drop_cache()
        return self.inner.swap(key, value, tag)

    def erase(self, key: str) -> None:
        self.drop_cache()
        self.inner.erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        self.drop_cache()
        self.inner.erase_values(keys)

    def erase_prefix(self, prefix: str) -> None:
        self.drop_cache()
        self.inner.erase_prefix(prefix)


def as_consolidated(store: Store) -> ConsolidatedStore | None:
    """Return a store if it is seen through consolidated metadata, else None."""
    return store if isinstance(store, ConsolidatedStore) else None


def uncached(store: Store) -> Store:
    """Return a store without consolidated metadata, or the store itself."""
    return store.inner if isinstance(store, ConsolidatedStore) else store


def drop_cache(store: Store) -> None:
    """Read all documents of a store from the store itself from now on."""
    if isinstance(store, ConsolidatedStore):
        store.drop_cache()


def _inner(store: Store) -> Store:
    return store
