"""A store some values of which were read beforehand, by one round of requests."""

from collections.abc import Iterable, Iterator

from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.wrapper import WrappedStore


class PrefetchedStore(WrappedStore):
    """A store that is asked only once for values that several steps of a call look at.

    Parameters
    ----------
    inner : Store
        The store.
    keys : iterable of str
        The keys of these values, which are read at once. A change through this store is seen.
    """

    def __init__(self, inner: Store, keys: Iterable[str]) -> None:
        super().__init__(inner)
        keys = list(dict.fromkeys(keys))
        values = inner.get_many(keys, Scratch())
        self._values = {
            key: None if value is None else bytes(value)
            for key, value in zip(keys, values, strict=True)
        }

    def get(self, key: str) -> bytes | None:
        return self._values[key] if key in self._values else self.inner.get(key)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        keys = list(keys)
        others = [key for key in keys if key not in self._values]
        values = iter(self.inner.get_many(others, scratch) if others else ())
        return (self._values[key] if key in self._values else next(values) for key in keys)

    def set(self, key: str, value: Buffer) -> None:
        self._values.pop(key, None)
        self.inner.set(key, value)

    def create(self, key: str, value: Buffer) -> bool:
        self._values.pop(key, None)
        return self.inner.create(key, value)

    def erase(self, key: str) -> None:
        self._values.pop(key, None)
        self.inner.erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        self._values.clear()
        self.inner.erase_values(keys)

    def erase_prefix(self, prefix: str) -> None:
        self._values.clear()
        self.inner.erase_prefix(prefix)
