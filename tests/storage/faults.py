"""A store that fails on purpose, in a way that a seed reproduces."""

import random
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zarrdask.errors import ReadOnlyError, StoreError
from zarrdask.formats.byte_ranges import Buffer, Range
from zarrdask.formats.store_keys import Names
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import REMOTE_COSTS, Capabilities
from zarrdask.storage.wrapper import WrappedStore


class ConnectionLostError(StoreError, ConnectionResetError):
    """The connection was reset on purpose."""


@dataclass(frozen=True)
class Faults:
    """The probabilities, from 0 to 1, with which an operation fails."""

    #: The connection is reset before the operation.
    lost: float = 0.0
    #: It is reset after the operation; erasing a prefix erases half of the values.
    late: float = 0.0
    #: It is reset when the first half of a value has been stored.
    torn: float = 0.0
    #: Only the first half of a value is read, without an error.
    short: float = 0.0
    #: The operation fails with a `ReadOnlyError`.
    denied: float = 0.0
    #: The longest time, in seconds, by which an operation is delayed: no probability.
    delay: float = 0.0


class FaultyStore(WrappedStore):
    """A store that fails on purpose: with the same seed, the same operations fail in the same way.

    `failures` is the number of operations of this process that have failed.
    """

    def __init__(self, inner: Store, faults: Faults, seed: int = 0) -> None:
        super().__init__(inner)
        self.faults = faults
        self.seed = seed
        self.failures = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return FaultyStore, (self.inner, self.faults, self.seed)

    @property
    def capabilities(self) -> Capabilities:
        """Those of the inner store, reached through a network."""
        return replace(super().capabilities, costs=REMOTE_COSTS)

    def _happens(self, probability: float) -> bool:
        with self._lock:
            hit = probability > 0 and self._random.random() < probability
            self.failures += hit
        return hit

    def before(self, key: str) -> None:
        if self.faults.delay:
            with self._lock:
                wait = self._random.uniform(0, self.faults.delay)
            time.sleep(wait)
        if self._happens(self.faults.denied):
            raise ReadOnlyError("denied on purpose", key=key)
        if self._happens(self.faults.lost):
            raise ConnectionLostError("lost on purpose", key=key)

    def _after(self, key: str) -> None:
        if self._happens(self.faults.late):
            raise ConnectionLostError("lost on purpose, after the fact", key=key)

    def _shortened(self, value: Any) -> Any:
        return value[: len(value) // 2] if value and self._happens(self.faults.short) else value

    def get(self, key: str) -> bytes | None:
        self.before(key)
        value: bytes | None = self._shortened(self.inner.get(key))
        return value

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        return map(self.get, keys)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        self.before(key)
        part: Buffer | None = self._shortened(self.inner.get_range(key, start, length))
        return part

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        for part in self.inner.get_ranges(key, ranges, scratch):
            self.before(key)
            yield self._shortened(part)

    def set(self, key: str, value: Buffer) -> None:
        self.before(key)
        if self._happens(self.faults.torn):
            self.inner.set(key, bytes(value)[: len(value) // 2])
            raise ConnectionLostError("torn on purpose", key=key)
        self.inner.set(key, value)
        self._after(key)

    def create(self, key: str, value: Buffer) -> bool:
        self.before(key)
        is_new = self.inner.create(key, value)
        self._after(key)
        return is_new

    def erase(self, key: str) -> None:
        self.before(key)
        self.inner.erase(key)
        self._after(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        self.before(prefix)
        if self._happens(self.faults.late):
            keys = sorted(self.inner.list_prefix(prefix))
            self.inner.erase_values(keys[: len(keys) // 2])
            raise ConnectionLostError("lost on purpose, halfway", key=prefix)
        self.inner.erase_prefix(prefix)

    def list_dir(self, prefix: str) -> Names:
        self.before(prefix)
        return self.inner.list_dir(prefix)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        self.before(prefix)
        return self.inner.list_prefix(prefix)
