"""Places for temporary objects that exist as long as this process needs them.

A place is a prefix of its own in a folder of a store. It is erased when it is no longer used, at
the latest when the process exits. What a killed process leaves is erased when the next place is
made in the same folder: the name of a place contains the machine, the process and the time.
"""

import os
import re
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex

import dask

from zarrdask.errors import UnsupportedError, ZarrdaskError
from zarrdask.execution.client import is_computing
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.rewrite.destination import KeyPrefix, clear_prefix
from zarrdask.storage.atomic import is_alive, machine_token
from zarrdask.storage.base import Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.lock_files import check_private

#: The seconds after which a place of another machine is erased: its owner is likely to be dead.
LIFETIME = 7 * 24 * 3600
_FOLDER = ".zarrdask-temporary/"
_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]+")
#: The seconds between two checks whether a cluster still computes.
_POLL_INTERVAL = 1.0


class TemporaryPlace:
    """A store and a prefix of keys in it, which are erased when this object is garbage.

    Its pickled copies erase nothing.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self.store, self.prefix = store, prefix

    def __reduce__(self) -> tuple[Callable[..., "TemporaryPlace"], KeyPrefix]:
        return TemporaryPlace, (self.store, self.prefix)

    @classmethod
    def create(cls, root: NodePath | None) -> "TemporaryPlace":
        """Return a new place below a path, by default in the local directory of temporary files.

        Places that killed processes left there are erased.
        """
        store, folder = _local_folder() if root is None else (root.store, root.prefix + _FOLDER)
        can = store.capabilities
        if not (can.writable and can.readable and can.listable):
            raise UnsupportedError(
                "temporary objects need a store that can be read, written and listed",
                key=store.url,
            )
        _erase_abandoned(store, folder)
        name = f"{machine_token()}-{os.getpid():x}-{int(time.time()):x}-{token_hex(8)}/"
        place = cls(store, folder + name)
        weakref.finalize(place, _end, (store, place.prefix), os.getpid())
        return place


def _local_folder() -> KeyPrefix:
    """Return the folder of this user among the temporary files, which other users can't change."""
    parent = dask.config.get("temporary-directory", None) or tempfile.gettempdir()
    user = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
    path = os.path.join(os.path.abspath(parent), f"zarrdask-temporary{user}")
    check_private(path)
    return LocalStore(path), ""


def _end(place: KeyPrefix, process: int) -> None:
    """Erase a place. Garbage may be collected in any thread, which must not wait for requests."""
    if process != os.getpid():
        return
    if threading.main_thread().is_alive():
        threading.Thread(target=_erase_unused, args=(place,), name="zarrdask-erase").start()
    else:
        _erase(place)


def _erase_unused(place: KeyPrefix) -> None:
    """Erase a place, after the tasks that a cluster may still have of it."""
    while is_computing() and threading.main_thread().is_alive():
        time.sleep(_POLL_INTERVAL)
    _erase(place)


def _erase(place: KeyPrefix) -> None:
    with suppress(ZarrdaskError, OSError):  # the next place in this folder erases it
        clear_prefix(place)


def _erase_abandoned(store: Store, folder: str) -> None:
    _, names = store.list_dir(folder)
    for name in names:
        parts = _NAME.fullmatch(name)
        if parts is not None and _is_abandoned(parts[1], int(parts[2], 16), int(parts[3], 16)):
            _erase((store, f"{folder}{name}/"))


def _is_abandoned(machine: str, process: int, created: int) -> bool:
    if machine == machine_token():
        return not is_alive(process)
    return time.time() - created > LIFETIME
