"""A store around another one, which passes on all operations: the base class of views."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrdask.storage.base import Scratch, Store, Tag
from zarrdask.storage.byte_ranges import Buffer, KeyRange, Range
from zarrdask.storage.keys import Names


class WrappedStore(Store):
    """A store that passes all operations to another store. Subclasses override some of them.

    Two of them are equal if they are of the same class and their inner stores are equal.

    Parameters
    ----------
    inner : Store
        The other store.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    # ---- properties

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def token(self) -> str:
        return self.inner.token

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether a pickled copy in another process sees the same values."""
        return self.inner.shared

    @property
    def seekable(self) -> bool:  # type: ignore[override]
        """Whether reading several parts of a value costs no more than reading it as a whole."""
        return self.inner.seekable

    @property
    def concurrent(self) -> bool:  # type: ignore[override]
        """Whether requests of several threads are in flight together."""
        return self.inner.concurrent

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        """Whether the inner store repeats requests after transient errors."""
        return self.inner.repeats

    @property
    def conditional(self) -> bool:  # type: ignore[override]
        """Whether exactly one of several simultaneous calls of `create` for a key succeeds."""
        return self.inner.conditional and not self._sets_otherwise

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether chunks can be stored only within the shape of their array."""
        return self.inner.bounded

    @property
    def swappable(self) -> bool:  # type: ignore[override]
        """Whether a value can be replaced on the condition that nobody has changed it."""
        this = type(self)
        is_other = this.get is not WrappedStore.get or this.set is not WrappedStore.set
        has_own = this.swap is not WrappedStore.swap
        return self.inner.swappable and (has_own or not is_other)

    @property
    def _sets_otherwise(self) -> bool:
        """Whether a subclass overrides `set` but not `create`, which must then use that `set`."""
        this = type(self)
        return this.set is not WrappedStore.set and this.create is WrappedStore.create

    @property
    def readable(self) -> bool:
        return self.inner.readable

    @property
    def writeable(self) -> bool:
        return self.inner.writeable

    @property
    def listable(self) -> bool:
        return self.inner.listable

    def stamp(self, key: str) -> str:
        return self.inner.stamp(key)

    @property
    def deferrable(self) -> bool:
        return self.inner.deferrable

    def beside(self, prefix: str) -> tuple[Store, str]:
        store, inner_prefix = self.inner.beside(prefix)
        return (self, prefix) if store is self.inner else (store, inner_prefix)

    def batch(self) -> AbstractContextManager[None]:
        return self.inner.batch()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash((type(self), self.inner))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner,)

    # ---- operations

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

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        if self._reads_otherwise:
            return super().get_partial_values(key_ranges)
        return self.inner.get_partial_values(key_ranges)

    @property
    def _reads_otherwise(self) -> bool:
        """Whether a subclass reads values, or parts of them, in a way of its own."""
        names = ("get", "get_range", "get_ranges")
        return any(getattr(type(self), name) is not getattr(WrappedStore, name) for name in names)

    def set(self, key: str, value: Buffer) -> None:
        self.inner.set(key, value)

    def create(self, key: str, value: Buffer) -> bool:
        if self._sets_otherwise:
            return super().create(key, value)
        return self.inner.create(key, value)

    def get_tagged(self, key: str) -> tuple[Buffer | None, Tag | None]:
        return self.inner.get_tagged(key)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        return self.inner.swap(key, value, tag)

    def tidy(self, prefix: str) -> None:
        self.inner.tidy(prefix)

    def check_erasable(self, keys: Iterable[str]) -> None:
        self.inner.check_erasable(keys)

    def erase(self, key: str) -> None:
        self.inner.erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        self.inner.erase_values(keys)

    def erase_prefix(self, prefix: str) -> None:
        self.inner.erase_prefix(prefix)

    def list_dir(self, prefix: str) -> Names:
        return self.inner.list_dir(prefix)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self.inner.list_prefix(prefix)


def innermost(store: Store) -> Store:
    """Return the store that the values are in, without the views of it."""
    while isinstance(store, WrappedStore):
        store = store.inner
    return store
