"""A store that serves some values from memory, after one round trip that read them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import TypeVar

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.store_keys import Names
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.policy_store import PolicyStore
from zarrdask.storage.request import MISSING, NOT_MET, Answer, Form, Request, Send
from zarrdask.storage.zarr.consolidated_store import ConsolidatedStore

T = TypeVar("T")


def prefetch(
    store: Store,
    keys: Iterable[str],
    *,
    listed: Iterable[str] = (),
    above: Sequence[str] = (),
) -> Store:
    """Read values in one round trip; return a store that serves them from memory.

    The function does not block: a value is awaited when it is used. The result is the store itself
    if that is no faster, or if it has cached documents already: then `keys` are not iterated over.

    Parameters
    ----------
    store : Store
        The store.
    keys : iterable of str
        The keys of the values.
    listed : iterable of str, optional
        Prefixes to list in the same round trip, if the store can be listed: keys that the listings
        rule out are not requested then.
    above : sequence of str, optional
        Keys to read, in the same round trip, of the directory that the store is in.
    """
    is_read = isinstance(store, ConsolidatedStore | PrefetchedStore)
    if is_read or not store.capabilities.costs.overlaps:
        return store
    return PrefetchedStore(store, keys, listed if store.capabilities.listable else (), above)


def fresh(store: Store) -> Store:
    """Return a store without values that were read beforehand."""
    return store.inner if isinstance(store, PrefetchedStore) else store


class PrefetchedStore(PolicyStore):
    """A store that serves some values from memory; see `prefetch`.

    A change through this store is seen.
    """

    def __init__(
        self,
        inner: Store,
        keys: Iterable[str] = (),
        listed: Iterable[str] = (),
        above: Sequence[str] = (),
    ) -> None:
        super().__init__(inner)
        self._can_create = inner.capabilities.create_exclusive
        self._read_above = None if not above else _in_background(lambda: _above_of(inner, above))
        self._listings = {
            prefix: _in_background(partial(_list_dir, inner, prefix)) for prefix in {*listed}
        }
        keys = list(dict.fromkeys(keys))
        self._fetch = _in_background(lambda: _read_all(inner, keys))

    @property
    def _values(self) -> dict[str, bytes | None]:
        return self._fetch.result()

    def above(self) -> Store | None:
        future = self._read_above
        # If it can't be read, access to the store does not imply access to the directory above.
        return self.inner.above() if future is None or future.exception() else future.result()

    def policy(self, request: Request, send: Send) -> Answer:
        """Return a value that was read beforehand; forget a value that is about to change."""
        key = request.key
        match request:
            case Request("GET", form=Form.BYTES | Form.BUFFER, version=None) if request.is_whole:
                if self._is_known(key):
                    value = self._values[key]
                    return MISSING if value is None else Answer(value)
            case Request("HEAD") if not self.capabilities.stamps and self._is_known(key):
                value = self._values[key]
                return MISSING if value is None else Answer(size=len(value))
            case Request("PUT"):
                is_looked_up = request.unless is not None and not self._can_create
                if is_looked_up and self._is_known(key):
                    if self._values[key] is not None:
                        return NOT_MET
                    request = request._replace(unless=None)
                self._forget(key)
            case Request("DELETE"):
                if request.call is None:
                    self._values.pop(key, None)
                else:
                    self._values.clear()
                self._listings.clear()
        return send(request)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        keys = list(keys)
        known = {key: self._values[key] for key in keys if self._is_known(key)}
        others = [key for key in keys if key not in known]
        values = iter(self.inner.get_many(others, scratch) if others else ())
        return (known[key] if key in known else next(values) for key in keys)

    def list_dir(self, prefix: str) -> Names:
        if (listing := self._listings.get(prefix)) is None:
            return self.inner.list_dir(prefix)
        keys, prefixes = listing.result()
        return sorted(keys), sorted(prefixes)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        listing = self._listings.get(prefix)
        if listing is None or listing.exception():
            return self.inner.list_prefix(prefix)
        keys, prefixes = self.list_dir(prefix)
        return self.inner.list_prefix(prefix) if prefixes else (prefix + key for key in keys)

    def _is_known(self, key: str) -> bool:
        if key not in self._values and self._is_ruled_out(key):
            self._values[key] = None
        return key in self._values

    def _is_ruled_out(self, key: str) -> bool:
        return any(is_below and name not in names for name, is_below, names in self._listed(key))

    def _forget(self, key: str) -> None:
        """Forget a value that is about to change; listings get its name."""
        self._values.pop(key, None)
        for name, _, names in self._listed(key):
            names.add(name)

    def _listed(self, key: str) -> Iterator[tuple[str, bool, set[str]]]:
        """Yield the listings with a key: a name, whether the key is below it, and such names."""
        for prefix, listing in self._listings.items():
            if key.startswith(prefix) and not listing.exception():
                name, is_below, _ = key[len(prefix) :].partition("/")
                yield name, bool(is_below), listing.result()[bool(is_below)]


def _above_of(store: Store, keys: Sequence[str]) -> Store | None:
    above = store.above()
    return None if above is None else PrefetchedStore(above, keys)


def _read_all(store: Store, keys: list[str]) -> dict[str, bytes | None]:
    values = store.get_many(keys, Scratch()) if keys else ()
    # Each value is valid until the next is requested: copy it.
    copies = (None if value is None else bytes(value) for value in values)
    return dict(zip(keys, copies, strict=True))


def _list_dir(store: Store, prefix: str) -> tuple[set[str], set[str]]:
    keys, prefixes = store.list_dir(prefix)
    return {*keys}, {*prefixes}


def _in_background(call: Callable[[], T]) -> "Future[T]":
    """Call a function in a thread for which the process does not wait when it ends."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is used
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    return future
