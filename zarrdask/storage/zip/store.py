"""Zip archives on a local disk as stores, which are read and written."""

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.store_keys import check_key, check_prefix
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import LOCAL_COSTS, Capabilities
from zarrdask.storage.identity import Identity
from zarrdask.storage.local.private import PrivateStore
from zarrdask.storage.zip.archive import Archive
from zarrdask.storage.zip.reader import ZipReader
from zarrdask.storage.zip.shared import being_written, shared_archive

_IN_BATCH = Capabilities(costs=LOCAL_COSTS, one_writer=True, stamps=True)
_ALONE = replace(_IN_BATCH, deferrable=False)


class ZipStore(ZipReader):
    """Values in a zip archive on a local disk.

    The archive is never modified: each change writes a new archive, which replaces the old
    one; all changes within ``with store.batch():`` are one. One process writes an archive at a
    time, and tasks of its computations write only if they are threads of that process.

    Parameters
    ----------
    path : str or os.PathLike
        The path of the archive, which need not exist before the first write.
    prefix : str
        The prefix of the keys in the archive: "" or a text that ends with "/".
    """

    #: In another process: whether the store was pickled within a batch; None in this process.
    _in_batch: bool | None = None

    def __init__(self, path: "str | os.PathLike[str]", prefix: str = "") -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fsdecode(path)))
        self.prefix = check_prefix(prefix)
        self._shared = shared_archive(self.path)
        self._shared.refresh()

    @property
    def url(self) -> str:
        """The path of the archive, followed by the prefix."""
        return f"{self.path}/{self.prefix}".rstrip("/")

    @property
    def identity(self) -> Identity:
        url = self.url
        return Identity.at(Path(url).as_uri(), url)

    def _opened(self) -> Archive:
        if self._in_batch:
            raise being_written(self.url)
        return self._shared.opened()

    def batch(self) -> AbstractContextManager[None]:
        """Return a context in which writes take effect together, at its end.

        After an error, the values that were written before it are in the archive. If the process
        is killed, the archive is unchanged. Entering the context while another process writes the
        archive raises a `StoreError`.
        """
        return self._shared.batch()

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """Writes can be deferred within a batch: outside one, each value is a new archive."""
        return _IN_BATCH if self._shared.depth > 0 else _ALONE

    def temporary(self, prefix: str) -> tuple[Store, str]:
        """Return a directory beside the archive, as values that are erased leave gaps in it."""
        return PrivateStore.in_folder(os.path.dirname(self.path))

    def _check_is_here(self) -> None:
        """Check that this is the process that opened the store."""
        if self._in_batch is not None:
            raise StoreError(
                "a zip archive is written by one process, and another process opened this one; "
                "compute with threads, or write a directory and zarrdask.copy it",
                key=self.url,
            )

    def set(self, key: str, value: Buffer) -> None:
        self._check_is_here()
        with self.batch():
            self._shared.writer().set(self.prefix + key, value)

    def create(self, key: str, value: Buffer) -> bool:
        self._check_is_here()
        with self.batch():
            return super().create(key, value)

    def erase(self, key: str) -> None:
        self.erase_values([key])

    def erase_values(self, keys: Iterable[str]) -> None:
        names = [self.prefix + check_key(key) for key in keys]
        self._check_is_here()
        with self.batch():
            members = self._opened().members
            # Missing keys must not cause a new archive.
            if present := [name for name in names if name in members]:
                self._shared.writer().erase(present)

    @property
    def _place(self) -> tuple[Any, ...]:
        return self.path, self.prefix

    def __reduce__(self) -> tuple[Any, ...]:
        if self._in_batch is not None:  # this process got it from another one
            return _reopen, (self.path, self.prefix, self._expected, self._in_batch, None)
        expected, in_batch = "", self._shared.depth > 0
        if not in_batch:
            # If the archive is damaged, reading it raises the error.
            with suppress(StoreError):
                expected = self._shared.opened().stamp
        return _reopen, (self.path, self.prefix, expected, in_batch, os.getpid())


def _reopen(path: str, prefix: str, expected: str, in_batch: Any, process: int | None) -> ZipStore:
    store = ZipStore(path, prefix)
    if process != os.getpid():
        store._expected, store._in_batch = expected, in_batch
    return store
