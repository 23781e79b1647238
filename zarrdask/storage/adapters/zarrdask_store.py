"""Stores of zarrdask as stores of zarr-python. This is the only module that imports zarr-python."""

from asyncio import gather, to_thread
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack
from typing import Any, Self

import zarr  # noqa: F401
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    SuffixByteRequest,
)
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer as ZarrBuffer
from zarr.core.buffer import BufferPrototype, default_buffer_prototype

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.storage.base import Store


class ZarrdaskStore(ZarrStore):  # type: ignore[misc]
    """A store of zarrdask, for zarr-python and for what is built on it.

    A ``with`` block is a batch: the values that it writes to a zip archive are written together.

    Parameters
    ----------
    inner : zarrdask.storage.Store
        The store.
    read_only : bool, default False
        Whether values may not be changed.
    """

    supports_writes = supports_deletes = True

    def __init__(self, inner: Store, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only or not inner.capabilities.writable)
        self.inner = inner
        self._batch = ExitStack()

    @property
    def supports_listing(self) -> bool:
        return self.inner.capabilities.listable

    def with_read_only(self, read_only: bool = False) -> Self:  # noqa: FBT001, FBT002
        return type(self)(self.inner, read_only=read_only)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ZarrdaskStore)
            and self.inner == other.inner
            and self.read_only == other.read_only
        )

    def __hash__(self) -> int:
        return hash((ZarrdaskStore, self.inner.url))

    def __repr__(self) -> str:
        return f"ZarrdaskStore({self.inner.url!r})"

    def __str__(self) -> str:
        return self.inner.url

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.inner, self.read_only)

    def __enter__(self) -> Self:
        self._batch.enter_context(self.inner.batch())
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._batch.__exit__(*error)
        finally:
            self.close()

    # ---- reading

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> ZarrBuffer | None:
        part = _read(self.inner, key, byte_range)
        buffer = (prototype or default_buffer_prototype()).buffer
        return None if part is None else buffer.from_bytes(bytes(part))

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> ZarrBuffer | None:
        return await to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[ZarrBuffer | None]:
        return await gather(*(self.get(key, prototype, part) for key, part in key_ranges))

    async def exists(self, key: str) -> bool:
        return await to_thread(self.inner.get_range, key, 0, 1) is not None

    # ---- writing

    def set_sync(self, key: str, value: ZarrBuffer) -> None:
        self._check_writable()
        self.inner.set(key, value.to_bytes())

    async def set(self, key: str, value: ZarrBuffer) -> None:
        await to_thread(self.set_sync, key, value)

    async def set_if_not_exists(self, key: str, value: ZarrBuffer) -> None:
        self._check_writable()
        await to_thread(self.inner.create, key, value.to_bytes())

    def delete_sync(self, key: str) -> None:
        self._check_writable()
        self.inner.erase(key)

    async def delete(self, key: str) -> None:
        await to_thread(self.delete_sync, key)

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        await to_thread(self.inner.erase_prefix, _folder(prefix))

    async def clear(self) -> None:
        await self.delete_dir("")

    # ---- listing

    def list(self) -> AsyncIterator[str]:
        return self.list_prefix("")

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        # zarr-python's prefixes may end within a name.
        folder = _folder(prefix.rpartition("/")[0])
        for key in await to_thread(sorted, self.inner.list_prefix(folder)):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        keys, prefixes = await to_thread(self.inner.list_dir, _folder(prefix))
        for name in (*keys, *prefixes):
            yield name


def _restore(kind: type[ZarrdaskStore], inner: Store, read_only: bool) -> ZarrdaskStore:  # noqa: FBT001
    return kind(inner, read_only=read_only)


def _read(store: Store, key: str, byte_range: ByteRequest | None) -> Buffer | None:
    match byte_range:
        case None:
            return store.get(key)
        case RangeByteRequest(start, end):
            return store.get_range(key, start, end - start)
        case OffsetByteRequest(start):
            return store.get_range(key, start)
        case SuffixByteRequest(length):
            return store.get_range(key, -length)
    raise TypeError(f"Unexpected byte_range, got {byte_range!r}")


def _folder(prefix: str) -> str:
    prefix = prefix.rstrip("/")
    return f"{prefix}/" if prefix else ""
