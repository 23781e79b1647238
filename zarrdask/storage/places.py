"""What identifies a store: its URI, its directory, its token and the stores above it."""

from collections.abc import Iterator

from zarrdask.storage.base import Store

#: How many directories above a local one are searched at most. Looking there costs no request.
_MAX_LOCAL_LEVELS = 8


def store_uri(store: Store) -> str:
    """Return the location of a store as a URI in its canonical form (conformance C-73)."""
    return store._uri


def store_token(store: Store) -> str:
    """Return a text that is different for different stores: part of the names of tasks."""
    return store._token


def opened_by(store: Store) -> str:
    """Return the name of the package that opened the URL of a store, or "" for other stores."""
    return store._opened_by


def directory_of(store: Store) -> str | None:
    """Return the local directory that the keys are paths below, or None for other stores."""
    return store._directory


def unshared_advice(store: Store) -> str:
    """Return what to do where other processes can't access a store, for messages."""
    return store._unshared_advice


def key_stamp(store: Store, key: str) -> str:
    """Return a text that changes whenever a key is written, or "" if that is expensive."""
    return store._stamp(key)


def stores_above(store: Store, levels: int) -> Iterator[Store]:
    """Yield the stores of the directories that a store is in, the nearest first.

    There are up to `levels` of them if each costs a request, and more on a local disk.
    """
    above = store._above()
    for _ in range(levels if store.capabilities.has_latency else _MAX_LOCAL_LEVELS):
        if above is None:
            return
        yield above
        above = above._above()


def is_listed_fast(store: Store) -> bool:
    """Whether many keys of a store can be looked up fast: on a local disk, or in a dict."""
    has = store.capabilities
    # A mapping of a user, which other processes can see, may be slow.
    return not has.has_latency and (has.directories or not has.shared)
