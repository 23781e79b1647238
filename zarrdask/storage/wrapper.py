"""A store around another one, which passes on all operations: the base class of views."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrdask.formats.byte_ranges import (
    Buffer,
    Entry,
    KeyRange,
    ObjectVersion,
    Part,
    Range,
    Tag,
    Version,
)
from zarrdask.formats.store_keys import Names
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.identity import Identity


class WrappedStore(Store):
    """A store that passes all operations to another store. Subclasses override some of them.

    Two of them are equal if they are of the same class and their inner stores are equal.

    Parameters
    ----------
    inner : Store
        The other store.
    """

    _counts_requests = True  # by the inner store

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    # ---- properties

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The capabilities of the inner store that the methods of a subclass do not bypass."""
        lost = self._declared.lost
        return without(self.inner.capabilities, lost) if lost else self.inner.capabilities

    @property
    def identity(self) -> Identity:
        return self.inner.identity

    def temporary(self, prefix: str) -> tuple[Store, str]:
        store, inner_prefix = self.inner.temporary(prefix)
        return (self, prefix) if store is self.inner else (store, inner_prefix)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash((type(self), self.inner))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner,)

    def above(self) -> Store | None:
        return self.inner.above()

    def batch(self) -> AbstractContextManager[None]:
        return self.inner.batch()

    def tidy(self, prefix: str, *, recursive: bool = False) -> None:
        self.inner.tidy(prefix, recursive=recursive)

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        self.inner.check_writable(erasing=erasing)

    # ---- reading

    @property
    def _reads_otherwise(self) -> bool:
        """Whether a subclass reads values, or parts of them, in a way of its own."""
        names = ("get", "get_range", "get_ranges")
        return any(getattr(type(self), name) is not getattr(WrappedStore, name) for name in names)

    def get(self, key: str) -> bytes | None:
        return self.inner.get(key)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        return self.inner.get_many(keys, scratch)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return self.inner.get_range(key, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return self.inner.get_ranges(key, ranges, scratch)

    def get_part(self, key: str, start: int, length: int, tag: Tag | None = None) -> Part | None:
        return self.inner.get_part(key, start, length, tag)

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        return self.inner.get_if_changed(key, tag, start, length)

    def get_version(
        self, key: str, version: ObjectVersion, start: int = 0, length: int | None = None
    ) -> Buffer | None:
        return self.inner.get_version(key, version, start, length)

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        if self._reads_otherwise:
            return super().get_partial_values(key_ranges)
        return self.inner.get_partial_values(key_ranges)

    def get_tagged(self, key: str) -> tuple[Buffer | None, Tag | None]:
        return self.inner.get_tagged(key)

    def stat(self, key: str) -> Entry | None:
        if not self._reads_otherwise:
            return self.inner.stat(key)
        entry = super().stat(key)
        has_stamp = entry is not None and self.capabilities.stamps
        inner = self.inner.stat(key) if has_stamp else None
        return entry if entry is None or inner is None else entry._replace(stamp=inner.stamp)

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        self.inner.set(key, value)

    def set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        if type(self).set is WrappedStore.set:
            self.inner.set_many(values)
        else:
            super().set_many(values)

    def create(self, key: str, value: Buffer) -> bool:
        if "create_exclusive" in self._declared.lost:
            return super().create(key, value)
        return self.inner.create(key, value)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        return self.inner.swap(key, value, tag)

    def erase(self, key: str) -> None:
        self.inner.erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        self.inner.erase_values(keys)

    def erase_prefix(self, prefix: str) -> None:
        self.inner.erase_prefix(prefix)

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        return self.inner.list_dir(prefix)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self.inner.list_prefix(prefix)

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        lists_otherwise = type(self).list_prefix is not WrappedStore.list_prefix
        if lists_otherwise or self._reads_otherwise:
            return super().entries(prefix, after, until, objects=objects)
        return self.inner.entries(prefix, after, until, objects=objects)
