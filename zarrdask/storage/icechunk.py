"""Stores of icechunk's sessions. icechunk is never imported here."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

from zarrdask.errors import StoreError, UnsupportedError
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.keys import check_prefix
from zarrdask.storage.zarr_python import ZarrPythonStore, is_zarr_object

_REFUSALS = ("invalid zarr key", "bad key prefix", "invalid chunk index")


class IcechunkStore(ZarrPythonStore):
    """The store of a session, which accepts only keys of Zarr v3.

    A writable session keeps its changes in the memory of this process until it is committed, so
    its tasks have to be threads of this process.

    Parameters
    ----------
    inner : icechunk.IcechunkStore
        The store.
    """

    _unshared_advice = 'use the scheduler "threads", or read from a read-only session'

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._name = uuid4().hex

    @property
    def url(self) -> str:
        session = self.inner.session
        branch = f"@{session.branch}" if session.branch else ""
        return f"icechunk:{session.snapshot_id}{branch}"

    @property
    def _token(self) -> str:
        # Sessions that began at one snapshot may have changed it differently. Even the snapshots
        # of two repositories are the same as long as nothing was committed.
        return self.url if self.capabilities.shared else f"{self.url}#{self._name}"

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        is_read_only = bool(self.inner.session.read_only)
        return replace(super().capabilities, shared=is_read_only, bounded=True)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.capabilities.shared:
            return IcechunkStore, (self.inner,)
        raise StoreError(
            "a writable session of icechunk cannot be used by other processes, as their changes "
            f"would not be merged; {self._unshared_advice}",
            key=self.url,
        )

    def set(self, key: str, value: Buffer) -> None:
        try:
            super().set(key, value)
        except _errors() as error:
            _check_refused(error)
            raise UnsupportedError(
                "icechunk stores nothing but documents of Zarr v3 and chunks within the shape of "
                "their array",
                key=f"{self.url}/{key}",
            ) from error

    def erase(self, key: str) -> None:
        try:
            super().erase(key)
        except _errors() as error:
            _check_refused(error)

    async def _get(self, key: str, byte_range: Any = None) -> bytes | None:
        try:
            return await super()._get(key, byte_range)
        except _errors() as error:
            _check_refused(error)
            return None

    def list_prefix(self, prefix: str) -> Iterator[str]:
        try:
            return super().list_prefix(prefix)
        except _errors() as error:
            _check_refused(error)
            return self._walk(check_prefix(prefix))

    async def _exists(self, key: str) -> bool:
        try:
            return await super()._exists(key)
        except _errors() as error:
            _check_refused(error)
            return False


def adapt_store(value: Any) -> "IcechunkStore | None":
    """Return the store of a session as one of ours; None for other objects of icechunk."""
    return IcechunkStore(value) if is_zarr_object(value, "Store") else None


def _errors() -> type[Exception]:
    return sys.modules["icechunk"].IcechunkError  # type: ignore[no-any-return]


def _check_refused(error: Exception) -> None:
    """Raise an error again, unless it says that a key or prefix is none of Zarr v3."""
    # Older releases have one class for all errors.
    if not any(text in str(error) for text in _REFUSALS):
        raise error
