"""Values that a server refuses to send, read as missing ones.

Buckets whose keys one may not list answer 403 instead of 404 for a key that does not exist.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from zarrdask import config
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer, Part, Tag, Version
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.remote.failures import is_forbidden
from zarrdask.storage.remote.in_flight import request_each
from zarrdask.storage.wrapper import WrappedStore

T = TypeVar("T")


class ForbiddenIsMissing(WrappedStore):
    """A store whose values are missing where the server answers 403 to a read."""

    _keeps_sizes = True

    def get(self, key: str) -> bytes | None:
        return _permitted(partial(self.inner.get, key))

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        # A range need not be copied to `bytes`; with ETags it is of the same value.
        whole = (lambda key: self.get_range(key, 0)) if self.capabilities.etags else self.get
        return request_each(self, whole, keys)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return _permitted(partial(self.inner.get_range, key, start, length))

    def get_part(self, key: str, start: int, length: int, tag: Tag | None = None) -> Part | None:
        return _permitted(partial(self.inner.get_part, key, start, length, tag))

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        return _permitted(partial(self.inner.get_if_changed, key, tag, start, length)) or Version()

    def get_tagged(self, key: str) -> tuple[Buffer | None, Tag | None]:
        return _permitted(partial(self.inner.get_tagged, key)) or (None, None)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        return self.inner.swap(key, value, tag)

    def above(self) -> Store | None:
        above = self.inner.above()
        return None if above is None else ForbiddenIsMissing(above)

    # By the methods above.
    get_ranges = Store.get_ranges
    reading = Store.reading


def forbidden_as_set(store: Store) -> Store:
    """Return a store that reads refused values as ``zarrdask.forbidden`` says."""
    is_remote = store.capabilities.has_latency and not isinstance(store, ForbiddenIsMissing)
    return (
        ForbiddenIsMissing(store) if is_remote and config.get("forbidden") == "missing" else store
    )


def _permitted(read: Callable[[], T]) -> T | None:
    """Return what a request reads, or None if the server refuses to send it."""
    try:
        return read()
    except StoreError as error:
        if not is_forbidden(error):
            raise
        return None
