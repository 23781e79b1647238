"""Objects of zarr-python as input: its stores, arrays and groups, and icechunk's.

zarr-python is never imported here: the caller that passes such an object has imported it.
"""

import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import Any

from zarrdask.errors import StoreError, without_secrets
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.store_keys import Names, check_prefix
from zarrdask.runtime.in_flight import window
from zarrdask.storage.adapters.read_only_store import ReadOnlyStore
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.identity import Identity
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.refusals import not_writable


def is_zarr_object(value: Any, *names: str) -> bool:
    """Whether a value is of a class of zarr-python with one of several names, or of a subclass."""
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == "zarr"
        for kind in type(value).__mro__
    )


class ZarrPythonStore(Store):
    """Any store of zarr-python 3.

    Parameters
    ----------
    inner : zarr.abc.store.Store
        The store.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The operations that the inner store supports now, as sessions of icechunk end."""
        return Capabilities(
            writable=not self.inner.read_only,
            listable=bool(self.inner.supports_listing),
            shared=not is_zarr_object(self.inner, "MemoryStore"),
            concurrent=True,
        )

    @property
    def url(self) -> str:
        return without_secrets(str(self.inner))

    @property
    def identity(self) -> Identity:
        return Identity.at(self.url, f"{type(self.inner).__name__} {self.inner}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZarrPythonStore) and bool(self.inner == other.inner)

    def __hash__(self) -> int:
        return hash((ZarrPythonStore, self.url))

    def __reduce__(self) -> tuple[Any, ...]:
        return ZarrPythonStore, (self.inner,)

    # ---- reading

    def get(self, key: str) -> bytes | None:
        value: bytes | None = self._run(self._get(key), key)
        return value

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        part: bytes | None = self._run(self._get(key, _byte_range(start, length)), key)
        # A request for the end of a value takes no length.
        return part if part is None or start >= 0 else part[:length]

    async def _get(self, key: str, byte_range: Any = None) -> bytes | None:
        value = await self.inner.get(key, _prototype(), byte_range)
        return None if value is None else value.to_bytes()

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        buffer = _prototype().buffer.from_bytes(bytes(value))
        self._change(self.inner.set(key, buffer), key)

    def erase(self, key: str) -> None:
        self._change(self.inner.delete(key), key)

    def erase_prefix(self, prefix: str) -> None:
        prefix = check_prefix(prefix)
        self._change(self.inner.delete_dir(prefix.rstrip("/")), prefix)

    def _change(self, work: Coroutine[Any, Any, Any], key: str) -> None:
        if self.inner.read_only:
            work.close()
        self.check_writable()
        self._run(work, key)

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        if self.inner.read_only:
            raise not_writable(self.url)

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        prefix = check_prefix(prefix)
        names = self._run(_collect(self.inner.list_dir, prefix.rstrip("/")), prefix)
        names = sorted({name.rstrip("/") for name in names})
        # A listing of zarr-python does not distinguish keys from prefixes.
        are_keys = window(lambda name: self._run(self._exists(prefix + name), prefix), names)
        listed = list(zip(names, are_keys, strict=True))
        keys = [name for name, is_key in listed if is_key]
        return keys, [name for name, is_key in listed if not is_key]

    async def _exists(self, key: str) -> bool:
        return bool(await self.inner.exists(key))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        prefix = check_prefix(prefix)
        keys = self._run(_collect(self.inner.list_prefix, prefix), prefix)
        return iter(sorted(keys))

    def _run(self, work: Coroutine[Any, Any, Any], key: str) -> Any:
        """Run a coroutine in zarr-python's own event loop, to which its clients are bound."""
        try:
            return sys.modules["zarr.core.sync"].sync(self._opened(work))
        except OSError as error:
            raise StoreError(str(error), key=f"{self.url}/{key}") from error

    async def _opened(self, work: Coroutine[Any, Any, Any]) -> Any:
        await self.inner._ensure_open()
        return await work


def _prototype() -> Any:
    return sys.modules["zarr.core.buffer"].default_buffer_prototype()


def _byte_range(start: int, length: int | None) -> Any:
    requests = sys.modules["zarr.abc.store"]
    if start < 0:
        return requests.SuffixByteRequest(-start)
    if length is None:
        return requests.OffsetByteRequest(start)
    return requests.RangeByteRequest(start, start + length)


async def _collect(listing: Callable[[str], Any], prefix: str) -> list[str]:
    # Some stores need the event loop as soon as they are asked.
    return [item async for item in listing(prefix)]


def adapt_store(value: Any) -> Store | None:
    """Return a store of zarr-python as one of ours; None for its other objects.

    Stores that this package can't read itself, but for those of zarr-python 2, which are mappings,
    are read by zarr-python. What was opened for reading only is not written.
    """
    own = own_store(value)
    if own is not None:
        is_read_only = getattr(value, "read_only", False) and own.capabilities.writable
        return ReadOnlyStore(own) if is_read_only else own
    is_left = is_zarr_object(value, "Store") and not isinstance(value, MutableMapping)
    return ZarrPythonStore(value) if is_left else None


def own_store(value: Any) -> Store | None:
    """Return the store of ours that reads what a store of zarr-python does; None if there is none.

    Directories, file systems of fsspec and objects of obstore are read by our own stores, which are
    returned as if they were writable.
    """
    if not is_zarr_object(value, "Store"):
        return None
    if isinstance(getattr(value, "inner", None), Store):
        return value.inner  # type: ignore[no-any-return]
    # Not of subclasses: they may do something else.
    kind = type(value).__name__ if type(value).__module__.startswith("zarr.") else ""
    if kind == "LocalStore":
        return LocalStore(os.path.abspath(value.root))
    if kind == "FsspecStore":
        return _of_package("adapters.fsspec_objects").adapt_file_system(  # type: ignore[no-any-return]
            value.fs, value.path
        )
    # Stores of zarr-python 2. Stores that convert keys are used as mappings.
    if getattr(value, "_dimension_separator", None) in (None, "."):
        if kind == "DirectoryStore":
            return LocalStore(os.path.abspath(value.path))
        if kind == "FSStore":
            return _of_package("adapters.fsspec_objects").adapt_file_system(  # type: ignore[no-any-return]
                value.fs, value.path
            )
    if kind == "ObjectStore":
        return _of_package("remote.obstore.obstore_urls").adapt_object(value.store)  # type: ignore[no-any-return]
    return None


def _of_package(name: str) -> Any:
    """Return our module for the stores of a package, which need not be installed."""
    return import_module(f"zarrdask.storage.{name}")
