"""Change values that writers on other machines may change at the same time."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from zarrdask.errors import StoreError, UnsupportedError
from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.storage.base import Store
from zarrdask.storage.wrapper import WrappedStore

T = TypeVar("T")

#: The number of attempts to change a value that others change at the same time.
MAX_ATTEMPTS = 100


class ChangedError(StoreError):
    """Another writer changed a value after it was read, so nothing was stored."""


class UnchangedStore(WrappedStore):
    """A store that replaces a value only if nobody has changed it since it was read here.

    What counts is the first time that it was read, or the value that was stored here since. The
    inner store has `compare_and_swap`. Values that were not read here are stored in any case, and
    values are erased in any case, as stores can't erase on a condition.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._tags: dict[str, Tag | None] = {}
        self._stored: dict[str, Buffer] = {}

    def get(self, key: str) -> bytes | None:
        value, tag = self.inner.get_tagged(key)
        self._tags.setdefault(key, tag)
        return None if value is None else bytes(value)

    get_many = Store.get_many

    def set(self, key: str, value: Buffer) -> None:
        if key not in self._tags:
            self.inner.set(key, value)
        elif not self._replace(key, value):
            raise ChangedError(
                f"other writers changed this value during each of {MAX_ATTEMPTS} attempts to "
                "change it; align regions that are written at the same time with chunks, or shards",
                key=f"{self.url}/{key}",
            )

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        """Replace a value for a change within this one, which has read it itself."""
        is_stored = self.inner.swap(key, value, tag)
        if is_stored and key not in self._stored and self._tags.get(key) == tag is not None:
            self._stored[key] = value
        return is_stored

    def _replace(self, key: str, value: Buffer) -> bool:
        """Replace a value, and return whether nobody has changed it."""
        tag = self._tags[key]
        if key in self._stored:  # a server does not say which tag a value has that it stored
            present, tag = self.inner.get_tagged(key)
            if present != self._stored[key]:
                return False
        is_stored = self.inner.swap(key, value, tag)
        if is_stored:
            self._stored[key] = value
        return is_stored

    def erase(self, key: str) -> None:
        self._tags.pop(key, None)
        self._stored.pop(key, None)
        self.inner.erase(key)


def until_unchanged(store: Store, change: Callable[[Store], T], seen: Store | None = None) -> T:
    """Change values, and repeat that if another writer has changed them since they were read.

    The store has `compare_and_swap`. `change` takes the store to read the values from and to store
    them in. The first time that is `seen`, if given: a view of an `UnchangedStore` through which
    values were read beforehand.

    Raises
    ------
    StoreError
        If others change the values all the time.
    UnsupportedError
        If the server behind the store can't store a value on a condition.
    """
    for attempt in range(MAX_ATTEMPTS - 1):
        try:
            return change(seen or UnchangedStore(store))
        except ChangedError:
            seen = None
            time.sleep(random.uniform(0, min(0.01 * 2**attempt, 1)))
    return change(UnchangedStore(store))


def change_if_unchanged(store: Store, change: Callable[[Store], T], seen: Store | None = None) -> T:
    """Change values as `until_unchanged` if the store and its server can do that, else once.

    Within another such change, it is repeated by itself.
    """
    if store.capabilities.compare_and_swap or isinstance(store, UnchangedStore):
        # Not every server of S3 has conditional writes.
        with suppress(UnsupportedError):
            return until_unchanged(store, change, seen)
    return change(store)
