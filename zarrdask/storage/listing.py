"""Keys, sizes and objects of a store, listed or requested concurrently; the stores above it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Entry, StoredObject, Tag
from zarrdask.storage.base import Store
from zarrdask.storage.refusals import no_objects
from zarrdask.storage.remote.in_flight import request_each

T = TypeVar("T")

#: How many directories above a local one are searched at most. Looking there costs no request.
_MAX_LOCAL_LEVELS = 8


def listed_keys(store: Store, prefix: str, bounds: Sequence[str] = ()) -> Iterator[str]:
    """Yield every key that begins with a prefix; `bounds` are as in `listed_sizes`."""
    if not store.capabilities.lists_parts:
        return store.list_prefix(prefix)
    return (key for key, _ in listed_sizes(store, prefix, bounds))


def listed_sizes(
    store: Store, prefix: str, bounds: Sequence[str] = ()
) -> Iterator[tuple[str, int | None]]:
    """Yield every key that begins with a prefix, and the size of its value.

    The size is None if the listing does not include it; see `value_sizes`. `bounds` are sorted keys
    between which parts of the listing are requested concurrently, if the store can do that.
    """
    return _listed(store, partial(_sizes, store, prefix), bounds)


def listed_objects(store: Store, prefix: str, bounds: Sequence[str] = ()) -> Iterator[StoredObject]:
    """Yield the object that holds each value whose key begins with a prefix, as `listed_sizes`.

    Raises
    ------
    UnsupportedError
        If the values are no objects with URLs of their own.
    """
    return _listed(store, partial(_objects, store, prefix), bounds)


def _sizes(
    store: Store, prefix: str, after: str, until: str | None
) -> list[tuple[str, int | None]]:
    return [(entry.key, entry.size) for entry in store.entries(prefix, after, until)]


def _objects(store: Store, prefix: str, after: str, until: str | None) -> list[StoredObject]:
    entries = store.entries(prefix, after, until, objects=True)
    return [_object_of(store, entry) for entry in entries]


def _object_of(store: Store, entry: Entry) -> StoredObject:
    if entry.object is None:
        raise no_objects(store.url)
    return entry.object


def _listed(
    store: Store, list_part: Callable[[str, str | None], list[T]], bounds: Sequence[str]
) -> Iterator[T]:
    """Yield what listings between keys yield: concurrently, if the store can do that."""
    inner = bounds if store.capabilities.lists_parts else ()
    parts = list(zip(["", *inner], [*inner, None], strict=True))
    for part in request_each(store, lambda part: list_part(*part), parts):
        yield from part


def value_sizes(store: Store, keys: Iterable[str]) -> Iterator[int | None]:
    """Yield the size of each value in bytes, or None if it is missing, in the order of the keys.

    Many sizes are requested concurrently if the store can do that.
    """
    for entry in request_each(store, store.stat, keys):
        yield None if entry is None else entry.size


def key_stamp(store: Store, key: str) -> str:
    """Return a text that changes whenever a key is written, or "" if that is expensive."""
    if store.capabilities.stamps:
        with suppress(StoreError):
            entry = store.stat(key)
            return "" if entry is None else entry.stamp
    return ""


def are_unchanged(store: Store, tags: Mapping[str, Tag]) -> bool:
    """Whether the value of each key has its tag, as `Store.get_if_changed` returns them."""
    return all(store.get_if_changed(key, tag, 0, 0).is_unchanged for key, tag in tags.items())


def stores_above(store: Store, levels: int) -> Iterator[Store]:
    """Yield the stores of the directories that a store is in, the nearest first.

    There are up to `levels` of them if each costs a request, and more on a local disk.
    """
    above = store.above()
    for _ in range(levels if store.capabilities.has_latency else _MAX_LOCAL_LEVELS):
        if above is None:
            return
        yield above
        above = above.above()


def is_listed_fast(store: Store) -> bool:
    """Whether many keys of a store can be looked up fast: on a local disk, or in a dict."""
    has = store.capabilities
    # A mapping of a user, which other processes can see, may be slow.
    return not has.has_latency and (has.directories or not has.shared)
