"""Keys, sizes and objects of a store, listed or requested concurrently; the stores above it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Entry, StoredObject
from zarrdask.storage.base import Store
from zarrdask.storage.concurrent_requests import request_each
from zarrdask.storage.refusals import no_objects

#: How many directories above a store are searched at most, where a look takes hardly any time.
_MAX_CHECKED_LEVELS = 8


def listed_keys(store: Store, prefix: str, bounds: Sequence[str] = ()) -> Iterator[str]:
    """Yield every key that begins with a prefix; `bounds` are as in `listed_entries`."""
    if not store.capabilities.lists_parts:
        return store.list_prefix(prefix)
    return (entry.key for entry in listed_entries(store, prefix, bounds))


def listed_entries(
    store: Store, prefix: str, bounds: Sequence[str] = (), *, objects: bool = False
) -> Iterator[Entry]:
    """Yield every key that begins with a prefix, with what the listing says; see `Store.entries`.

    `bounds` are sorted keys between which parts of the listing are requested concurrently, if the
    store can do that.
    """

    def list_part(part: tuple[str, str | None]) -> list[Entry]:
        return [*store.entries(prefix, *part, objects=objects)]

    inner = bounds if store.capabilities.lists_parts else ()
    for entries in request_each(store, list_part, zip(["", *inner], [*inner, None], strict=True)):
        yield from entries


def listed_objects(store: Store, prefix: str, bounds: Sequence[str] = ()) -> Iterator[StoredObject]:
    """Yield the object that holds each value whose key begins with a prefix.

    Raises
    ------
    UnsupportedError
        If the values are not objects with URLs of their own.
    """
    for entry in listed_entries(store, prefix, bounds, objects=True):
        if entry.object is None:
            raise no_objects(store.url)
        yield entry.object


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


def stores_above(store: Store, levels: int) -> Iterator[Store]:
    """Yield the stores of the directories that a store is in, the nearest first.

    There are up to `levels` of them if a look there takes a round trip, and else more.
    """
    above = store.above()
    for _ in range(_MAX_CHECKED_LEVELS if store.capabilities.costs.checks else levels):
        if above is None:
            return
        yield above
        above = above.above()
