"""The marker of a new array whose chunks are being stored: a value beside its documents.

The documents of such an array come first, so it opens like a complete one, and chunks that are
not stored yet read as the fill value. `to_zarr` erases the marker when all chunks are stored. If it
is killed, the marker stays, and those who read missing chunks are warned.
"""

import warnings

from zarrdask.errors import ZarrdaskError, printable, without_secrets
from zarrdask.storage.base import Store
from zarrdask.storage.locks import writers

#: The name of the marker, in the directory of the array.
NAME = ".zarrdask-unfinished"
#: The markers for which this process has warned, by the locations of their arrays.
WARNED = set[tuple[str, bytes]]()
_ADVICE = (
    "an unfinished write is here: the to_zarr call that created this array failed or was killed"
    "{or_runs}, so chunks that it did not store read as the fill value. Write the array again with "
    "overwrite=True; or, if other calls have stored these chunks since, remove {marker}"
)


def unfinished_write(store: Store, prefix: str) -> str | None:
    """Return what to do about the write of an array that did not end; None if there is none.

    A write that runs in a process of this machine is not reported.
    """
    writer = _stored_marker(store, prefix)
    return None if writer is None else _advice(store, prefix, writer)


def warn_if_unfinished(store: Store, prefix: str, *, once: bool = False) -> bool:
    """Warn if the write that created an array did not end; return whether it runs now.

    With `once`, this process is warned once of each marker.
    """
    writer = _stored_marker(store, prefix)
    if writer is None:
        return False
    advice = _advice(store, prefix, writer)
    if advice is None:
        return True
    array = _shown(store, prefix)
    if not once or (array, bytes(writer)) not in WARNED:
        WARNED.add((array, bytes(writer)))
        warnings.warn(f"{array}: {advice}", stacklevel=2)
    return False


def _stored_marker(store: Store, prefix: str) -> bytes | None:
    """Return the marker of an array, if there is one that can be read: it is for advice only."""
    try:
        return store.get(prefix + NAME)
    except ZarrdaskError:
        return None


def _advice(store: Store, prefix: str, writer: bytes) -> str | None:
    is_running = writers.is_running(writer)
    if is_running:
        return None
    or_runs = "" if is_running is False else ", or still runs on another machine"
    return _ADVICE.format(or_runs=or_runs, marker=_shown(store, prefix + NAME))


def _shown(store: Store, key: str) -> str:
    return printable(without_secrets(f"{store.url}/{key}".rstrip("/")))
