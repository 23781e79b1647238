"""What this package asks of a store besides its values, such as removing temporary files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

from zarrdask.formats.byte_ranges import StoredObject, Tag, Value
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store, StoreReferences

T = TypeVar("T")
Item = TypeVar("Item")


def reading(store: Store, key: str, scratch: Scratch) -> AbstractContextManager[Value]:
    """Return a context in which parts of a value are read one after another.

    By default, each part is read by itself. A store that can keep the value open reads all parts
    of the same value, also if another writer replaces it meanwhile.
    """
    return store._reading(key, scratch)


def are_unchanged(store: Store, tags: Mapping[str, Tag]) -> bool:
    """Whether the value of each key has its tag, as `Store.get_if_changed` returns them."""
    return store._are_unchanged(tags)


def uncached(store: Store) -> Store:
    """Return a store without its cached (such as consolidated) metadata, or the store itself."""
    return store._uncached


def drop_cache(store: Store) -> None:
    """Read all documents of a store from the store itself from now on."""
    store._drop_cache()


def for_chunks(store: Store) -> Store:
    """Return a store for reading and writing the chunks of an array.

    Such a store may be stricter: since all of its keys are those of chunks, it can report that
    something else is in the place of a chunk. By default it is the store itself.
    """
    return store._for_chunks()


def is_deferrable(store: Store) -> bool:
    """Whether values may be written after the call that prepared the write has returned."""
    return store._is_deferrable


def temporary_place(store: Store, prefix: str) -> tuple[Store, str]:
    """Return a store and a prefix for values that are needed only while others are written.

    By default, these are the store and the prefix themselves.
    """
    return store._temporary_place(prefix)


def fork(store: Store) -> Store:
    """Return a fork of a store with the capability `forks`; see `forks`."""
    return store._fork()


def check_writable(store: Store) -> None:
    """Check that a store is not one that can only be read, before anything is changed.

    Raises
    ------
    ReadOnlyError
        If it is, as that of an HTTP server.
    """
    store._check_writable()


def check_erasable(store: Store, keys: Iterable[str]) -> None:
    """Check, before anything is erased, that keys and prefixes may be erased.

    Raises
    ------
    LinkError
        If one of them is behind a symbolic link, through which nothing is erased.
    """
    store._check_erasable(keys)


def tidy(store: Store, prefix: str, *, recursive: bool = False) -> None:
    """Remove temporary files that killed writers left directly below a prefix, or at any depth.

    They are not listed as keys.
    """
    store._tidy(prefix, recursive=recursive)


def listed_keys(store: Store, prefix: str, bounds: Sequence[str] = ()) -> Iterator[str]:
    """Yield every key that begins with a prefix; `bounds` are those of `listed_sizes`."""
    if not store._lists_parts:
        return store.list_prefix(prefix)
    return (key for key, _ in listed_sizes(store, prefix, bounds))


def listed_sizes(
    store: Store, prefix: str, bounds: Sequence[str] = ()
) -> Iterator[tuple[str, int | None]]:
    """Yield every key that begins with a prefix, and the size of its value.

    The size is None if the listing does not include it; see `value_sizes`. `bounds` are sorted keys
    between which parts of the listing are requested concurrently, if the store can do that.
    """
    return _listed(store, partial(store._list_sizes, prefix), bounds)


def listed_objects(store: Store, prefix: str, bounds: Sequence[str] = ()) -> Iterator[StoredObject]:
    """Yield the object that holds each value whose key begins with a prefix, as `listed_sizes`.

    Raises
    ------
    UnsupportedError
        If the values are no objects with URLs of their own.
    """
    return _listed(store, partial(store._list_objects, prefix), bounds)


def _listed(
    store: Store, list_part: Callable[[str, str | None], Iterable[Item]], bounds: Sequence[str]
) -> Iterator[Item]:
    """Yield what listings between keys yield: concurrently, if the store can do that."""
    inner = bounds if store._lists_parts else ()
    parts = list(zip(["", *inner], [*inner, None], strict=True))
    for part in store._each(lambda part: list(list_part(*part)), parts):
        yield from part


def references_to(store: Store, urls: Iterable[str]) -> StoreReferences:
    """Return a function that stores references to objects at URLs such as these.

    Raises
    ------
    UnsupportedError
        If the store can't hold references.
    StoreError
        If it refuses those to one of these URLs.
    """
    return store._references_to(urls)


def move_chunks(store: Store, prefix: str, offset: Sequence[int]) -> None:
    """Add an offset to the index of each chunk below a prefix; drop those that leave the array.

    Raises
    ------
    UnsupportedError
        If the store would have to copy them.
    """
    store._move_chunks(prefix, offset)


def value_sizes(store: Store, keys: Iterable[str]) -> Iterator[int | None]:
    """Yield the size of each value in bytes, or None if it is missing, in the order of the keys.

    Many sizes are requested concurrently if the store can do that.
    """
    return store._each(store._size, keys)


def request_each(store: Store, request: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
    """Yield the result of a request for each item, with later ones in flight if possible."""
    return store._each(request, items)
