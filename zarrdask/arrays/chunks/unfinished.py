"""The marker of a new array whose chunks are being stored: a value beside its documents.

The documents of such an array come first, so it opens like a complete one, and chunks that are
not stored yet read as the fill value. `to_zarr` erases the marker when all chunks are stored. If it
is killed, the marker stays, and those who read missing chunks are warned.
"""

import warnings
from dataclasses import dataclass

from zarrdask.arrays import writers
from zarrdask.errors import ZarrdaskError, printable, without_secrets
from zarrdask.storage.base import Store

#: The name of the marker, in the directory of the array.
NAME = ".zarrdask-unfinished"
#: The markers for which this process has warned, by the locations of their arrays.
WARNED = set[tuple[str, bytes]]()
_ADVICE = (
    "an unfinished write is here: the to_zarr call that created this array failed or was killed"
    "{or_runs}, so chunks that it did not store read as the fill value. Write the array again with "
    "overwrite=True; or, if other calls have stored these chunks since, remove {marker}"
)


@dataclass(frozen=True)
class Marker:
    """The marker of the array whose keys have a prefix in a store; it need not be there."""

    store: Store
    prefix: str

    @classmethod
    def at(cls, store: Store, key: str) -> "Marker | None":
        """Return the marker that has a key; None if the key is of another value."""
        return cls(store, key.removesuffix(NAME)) if key.endswith(NAME) else None

    @property
    def key(self) -> str:
        """The key of the marker."""
        return self.prefix + NAME

    def advice(self) -> str | None:
        """Return what to do about the write of the array, if that did not end; None otherwise.

        A write that runs in a process of this machine is not reported.
        """
        writer = self._writer()
        return None if writer is None else self._advice(writer)

    def warn(self, *, once: bool = False) -> bool:
        """Warn if the write that created the array did not end; return whether it runs now.

        With `once`, this process is warned once of each marker.
        """
        writer = self._writer()
        if writer is None:
            return False
        advice = self._advice(writer)
        if advice is None:
            return True
        array = self._shown(self.prefix)
        if not once or (array, bytes(writer)) not in WARNED:
            WARNED.add((array, bytes(writer)))
            warnings.warn(f"{array}: {advice}", stacklevel=2)
        return False

    def _writer(self) -> bytes | None:
        """Return the name of the writer, if it can be read: it is for advice only."""
        try:
            return self.store.get(self.key)
        except ZarrdaskError:
            return None

    def _advice(self, writer: bytes) -> str | None:
        is_running = writers.is_running(writer)
        if is_running:
            return None
        elsewhere = "" if writers.is_later(writer) else " on another machine"
        or_runs = "" if is_running is False else f", or still runs{elsewhere}"
        return _ADVICE.format(or_runs=or_runs, marker=self._shown(self.key))

    def _shown(self, key: str) -> str:
        return printable(without_secrets(f"{self.store.url}/{key}".rstrip("/")))
