"""Values in memory: in a dict of this process, or in any mapping."""

import os
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from typing import Any, NoReturn
from uuid import uuid4
from weakref import WeakValueDictionary

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer, Tag, Version, cut
from zarrdask.formats.store_keys import check_prefix
from zarrdask.runtime.system import renewed_after_fork
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import LOCAL_COSTS, Capabilities
from zarrdask.storage.identity import UNSHARED_ADVICE, Identity

#: One thread creates a value at a time, and may do so again in functions that it calls.
_CREATING = renewed_after_fork(threading.RLock())
#: Stores in the memory of this process, by name.
LIVE: "WeakValueDictionary[str, Store]" = WeakValueDictionary()


class MappingStore(Store):
    """Any ``MutableMapping`` of keys to bytes.

    Parameters
    ----------
    values : MutableMapping
        The mapping. If other processes use the store, they must see the same values in a pickled
        copy of it.
    """

    capabilities = Capabilities(costs=LOCAL_COSTS)

    def __init__(self, values: MutableMapping[str, Any]) -> None:
        self.values = values

    @property
    def url(self) -> str:
        return f"mapping://{type(self.values).__name__}-{os.getpid():x}-{id(self.values):x}"

    def get(self, key: str) -> bytes | None:
        try:
            value = self.values[key]
        except KeyError:
            return None
        if isinstance(value, bytes):
            return value
        with suppress(TypeError):
            return bytes(memoryview(value))
        # zarr-python keeps buffers of its own in a dict that it is given as a store.
        if hasattr(value, "to_bytes") and not isinstance(value, int):
            return value.to_bytes()  # type: ignore[no-any-return]
        raise StoreError(
            "a mapping that is used as a store has a value that is not bytes",
            key=key,
            found=type(value).__name__,
            expected="bytes",
        )

    def set(self, key: str, value: Buffer) -> None:
        self.values[key] = bytes(value)

    def erase(self, key: str) -> None:
        self.values.pop(key, None)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        prefix = check_prefix(prefix)
        try:
            return iter([key for key in sorted(self.values) if key.startswith(prefix)])
        except (TypeError, AttributeError) as error:
            raise StoreError(
                "a mapping that is used as a store has a key that is not text",
                key=self.url,
                found=next((key for key in self.values if not isinstance(key, str)), None),
                expected="text",
            ) from error

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return other.values is self.values

    def __hash__(self) -> int:
        return id(self.values)


class MemoryStore(MappingStore):
    """Values in a dict, which only this process can see.

    Parameters
    ----------
    values : dict, optional
        The dict; by default a new one.
    """

    capabilities = Capabilities(
        costs=LOCAL_COSTS, shared=False, create_exclusive=True, versions=True
    )

    def __init__(self, values: MutableMapping[str, Any] | None = None) -> None:
        super().__init__({} if values is None else values)
        self._own = values is None
        self._name = uuid4().hex
        LIVE[self._name] = self

    @property
    def identity(self) -> Identity:
        return Identity.at(self.url, self._name if self._own else self.url)

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        value = self.values.get(key)
        if type(value) is not bytes:
            whole = self.get(key)  # a value of another type may be modified
            return Version() if whole is None else Version(cut(whole, start, length), len(whole))
        # The tag is the object itself: as long as it exists, no other one is the same.
        return (
            Version(tag=tag)
            if value is tag
            else Version(cut(value, start, length), len(value), value)
        )

    def create(self, key: str, value: Buffer) -> bool:
        with _CREATING:
            return super().create(key, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # By name: the same store within this process, and in others one whose use raises an error.
        return recall, (self._name, os.getpid())


def recall(name: str, process: int) -> Store:
    """Return the store in `LIVE` with a name, or `elsewhere` in another process than its own."""
    # No error here: a worker that fails to unpickle a task drops its connection, not the task.
    # A forked process has a copy of the values, but its changes would be lost.
    store = LIVE.get(name) if process == os.getpid() else None
    return store or elsewhere()


def elsewhere() -> MappingStore:
    """Return a substitute for a store in another process's memory; using it raises an error."""
    return MappingStore(_Elsewhere())


class _Elsewhere(MutableMapping[str, bytes]):
    """A substitute for the values of another process, which raises an error when it is used."""

    def _fail(self, *_: Any) -> NoReturn:
        raise StoreError(
            "an in-memory store exists only in the process that created it, so worker processes "
            f"can't see it; {UNSHARED_ADVICE}",
            key="MemoryStore",
        )

    __getitem__ = __setitem__ = __delitem__ = __iter__ = __len__ = _fail
