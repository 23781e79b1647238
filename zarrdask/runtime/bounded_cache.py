"""Caches in memory whose size is limited by a setting."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from zarrdask import config
from zarrdask.runtime.system import after_fork, renewed_after_fork

K = TypeVar("K")
V = TypeVar("V")

#: Bytes that are counted for an entry in addition to its value: the key, the tag, and the entry.
_ENTRY_BYTES = 512


class BoundedCache(Generic[K, V]):
    """Values of a process, by key; those that were used last stay if the space is too small.

    Forked processes begin with an empty cache, as another thread may be changing it.

    Parameters
    ----------
    setting : str
        The name of the setting that limits the size in bytes.
    value_size : callable
        Returns the size of a value in bytes.
    """

    def __init__(self, setting: str, value_size: Callable[[V], int]) -> None:
        self._setting, self._value_size = setting, value_size
        self._lock = renewed_after_fork(threading.Lock())
        self.clear()
        after_fork(self.clear)

    @property
    def limit(self) -> int:
        """The largest size in bytes."""
        return int(config.get(self._setting))

    def clear(self) -> None:
        """Remove all values."""
        self._values = OrderedDict[K, V]()
        #: The size in bytes.
        self.nbytes = 0

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if there is none."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def get_all(self, keys: Iterable[K]) -> list[V] | None:
        """Return the values of all keys, or None if there is none for one of them."""
        keys = list(keys)
        with self._lock:
            try:
                values = [*map(self._values.__getitem__, keys)]
            except KeyError:
                return None
            for key in keys:
                self._values.move_to_end(key)
        return values

    def put(self, key: K, value: V | None, limit: int | None = None) -> None:
        """Replace the value of a key, None for no value; remove others to make space for it.

        `limit` is the largest size in bytes, by default the setting.
        """
        limit = self.limit if limit is None else limit
        if self._size(value) > limit:
            value = None
        size = self._size(value)
        with self._lock:
            self.nbytes -= self._size(self._values.pop(key, None))
            # Space is made first: `nbytes`, which is read without the lock, stays within the limit.
            while self.nbytes + size > limit:
                self.nbytes -= self._size(self._values.popitem(last=False)[1])
            if value is not None:
                self._values[key] = value
                self.nbytes += size

    def _size(self, value: V | None) -> int:
        return 0 if value is None else self._value_size(value) + _ENTRY_BYTES
