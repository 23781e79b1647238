"""A store around another one, which passes on all operations: the base class of views."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from zarrdask.formats.byte_ranges import Buffer, Entry, KeyRange
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, bypassed, without
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
        """Those of the inner store that the methods of a subclass do not bypass."""
        capabilities, names = self.inner.capabilities, bypassed(type(self))
        return without(capabilities, names) if names else capabilities

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

    # ---- operations

    #: Whether values that a subclass reads in a way of its own have the sizes of the inner ones.
    _keeps_sizes = False

    def stat(self, key: str) -> Entry | None:
        if not self._reads_otherwise:
            return self.inner.stat(key)
        entry = super().stat(key)
        has_stamp = entry is not None and self.capabilities.stamps
        inner = self.inner.stat(key) if has_stamp else None
        return entry if entry is None or inner is None else entry._replace(stamp=inner.stamp)

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        if self._lists_otherwise or (self._reads_otherwise and not self._keeps_sizes):
            return super().entries(prefix, after, until, objects=objects)
        return self.inner.entries(prefix, after, until, objects=objects)

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


# ---- what subclasses don't override is done by the inner store

for _name in (
    *("above", "batch", "get", "get_many", "get_range", "get_ranges", "get_part"),
    *("get_if_changed", "set", "get_tagged", "swap"),
    *("tidy", "check_writable"),
    *("erase", "erase_values", "erase_prefix", "list_dir", "list_prefix"),
):
    setattr(WrappedStore, _name, _pass_on(_name))
