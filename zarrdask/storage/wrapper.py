"""A store around another one, which passes on all operations: the base class of views."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from zarrdask.formats.byte_ranges import Buffer, KeyRange, StoredObject
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, bypassed, without


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
        """Those of the inner store that the methods of a subclass do not bypass."""
        capabilities, names = self.inner.capabilities, bypassed(type(self))
        return without(capabilities, names) if names else capabilities

    def _temporary_place(self, prefix: str) -> tuple[Store, str]:
        store, inner_prefix = self.inner._temporary_place(prefix)
        return (self, prefix) if store is self.inner else (store, inner_prefix)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash((type(self), self.inner))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner,)

    # ---- operations

    #: Whether values that a subclass reads in a way of its own have the sizes of the inner ones.
    _keeps_sizes = False

    def _size(self, key: str) -> int | None:
        return super()._size(key) if self._reads_otherwise else self.inner._size(key)

    @property
    def _lists_parts(self) -> bool:  # type: ignore[override]
        return self.inner._lists_parts and not self._lists_otherwise

    def _list_sizes(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[tuple[str, int | None]]:
        if self._lists_otherwise or (self._reads_otherwise and not self._keeps_sizes):
            return super()._list_sizes(prefix, after, until)
        return self.inner._list_sizes(prefix, after, until)

    def _list_objects(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[StoredObject]:
        if self._lists_otherwise or (self._reads_otherwise and not self._keeps_sizes):
            return super()._list_objects(prefix, after, until)
        return self.inner._list_objects(prefix, after, until)

    @property
    def _lists_otherwise(self) -> bool:
        """Whether a subclass lists keys in a way of its own."""
        return type(self).list_prefix is not WrappedStore.list_prefix

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        if self._reads_otherwise:
            return super().get_partial_values(key_ranges)
        return self.inner.get_partial_values(key_ranges)

    @property
    def _reads_otherwise(self) -> bool:
        """Whether a subclass reads values, or parts of them, in a way of its own."""
        names = ("get", "get_range", "get_ranges")
        return any(getattr(type(self), name) is not getattr(WrappedStore, name) for name in names)

    def set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        if type(self).set is WrappedStore.set:
            self.inner.set_many(values)
        else:
            super().set_many(values)

    def create(self, key: str, value: Buffer) -> bool:
        if "create_exclusive" in bypassed(type(self)):
            return super().create(key, value)
        return self.inner.create(key, value)


def _pass_on(name: str) -> Callable[..., Any]:
    def operation(self: WrappedStore, *arguments: Any, **options: Any) -> Any:
        return getattr(self.inner, name)(*arguments, **options)

    operation.__name__, operation.__doc__ = name, getattr(Store, name).__doc__
    return operation


# ---- what subclasses don't override is that of the inner store

for _name in (
    *("_uri", "_token", "_access", "_opened_by", "_endpoint"),
    *("_unshared_advice", "_is_deferrable", "_limits_bodies"),
):
    setattr(WrappedStore, _name, property(attrgetter(f"inner.{_name}")))
for _name in (
    *("_above", "_stamp", "batch", "get", "get_many", "get_range", "get_ranges", "get_part"),
    *("get_if_changed", "set", "get_tagged", "swap"),
    *("_fork", "_references_to", "_move_chunks", "_tidy", "_check_writable", "_check_erasable"),
    *("erase", "erase_values", "erase_prefix", "list_dir", "list_prefix"),
):
    setattr(WrappedStore, _name, _pass_on(_name))
