"""Prefixes of temporary objects, which are erased when this process needs them no more.

A prefix lies in a folder of this process. Its objects are erased when it is no
longer used; the folder exists until the process exits, so that tasks may store them again. Tasks
that run longer than that, such as tasks of a pickled copy, store nothing. Objects of a killed
process are erased when the next prefix is made: the name of their folder contains the machine, the
process and the time.
"""

import atexit
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

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError, UnsupportedError, ZarrdaskError
from zarrdask.parallel.execution.client import is_computing
from zarrdask.parallel.rewrite.destination import KeyPrefix, clear_prefix
from zarrdask.storage.base import Store
from zarrdask.storage.local.atomic import is_alive, machine_token
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks.lock_files import check_private

_DAY = 24 * 3600
#: The seconds after which the folder of another machine is erased: its owner is likely to be dead.
LIFETIME = 7 * _DAY
_FOLDER = ".zarrdask-temporary/"
#: The object in the folder of a process.
_OWNER = "owner"
#: The folders of this process, by the store, the folder they are in, the process and the day.
_FOLDERS: dict[tuple[str, str, int, int], str] = {}
_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]+")
#: The seconds between two checks whether a cluster still computes.
_POLL_INTERVAL = 1.0


class TemporaryPrefix:
    """A store and a prefix of keys in it, which are erased when this object is garbage.

    Its pickled copies erase nothing, and can be used as long as the process of the original runs.
    """

    def __init__(self, store: Store, folder: str, name: str) -> None:
        #: The folder of the process, which has an object as long as that runs.
        self.store, self.folder, self.name = store, folder, name

    def __reduce__(self) -> tuple[Callable[..., "TemporaryPrefix"], tuple[Store, str, str]]:
        return TemporaryPrefix, (self.store, self.folder, self.name)

    @property
    def prefix(self) -> str:
        """The prefix of the keys."""
        return f"{self.folder}{self.name}/"

    @classmethod
    def create(cls, root: NodePath | None) -> "TemporaryPrefix":
        """Return a new prefix below a path, by default in the local directory of temporary files.

        The folders that killed processes left there are erased.
        """
        store, parent = _local_folder() if root is None else (root.store, root.prefix + _FOLDER)
        can = store.capabilities
        if not (can.writable and can.readable and can.listable):
            raise UnsupportedError(
                "temporary objects need a store that can be read, written and listed",
                key=store.url,
            )
        _erase_abandoned(store, parent)
        folder = _own_folder(store, parent)
        store.set(folder + _OWNER, b"")
        prefix = cls(store, folder, token_hex(8))
        # A store in memory needs no folder for later prefixes, which would keep the store alive.
        used = prefix.prefix if can.shared else folder
        weakref.finalize(prefix, _end, (store, used), os.getpid())
        return prefix

    def check_owned(self) -> None:
        """Check that the process of the original runs; if not, erase the objects stored since."""
        if self.store.get(self.folder + _OWNER) is None:
            _erase((self.store, self.folder))
            raise StoreError(
                "temporary objects can't be stored for an array of zarrdask.rechunked: the process "
                "that called it has ended, or has another directory of temporary files than the "
                "workers; call it in this process, with a URL that all workers see as temp=",
                key=self.folder,
            )


def _own_folder(store: Store, parent: str) -> str:
    """Return a folder of this process, which exists until that exits."""
    process, now = os.getpid(), int(time.time())
    name = f"{parent}{machine_token()}-{process:x}-{now:x}-{token_hex(8)}/"
    if not store.capabilities.shared:
        return name
    # Other machines must not take a folder that is in use for an old one: each day has its own.
    key = store.identity.token, parent, process, now // _DAY
    folder = _FOLDERS.setdefault(key, name)
    if folder is name:
        atexit.register(_end_folder, (store, folder), process)
    return folder


def _end_folder(folder: KeyPrefix, process: int) -> None:
    if process == os.getpid():
        _erase(folder)


def _local_folder() -> KeyPrefix:
    """Return the folder of this user among the temporary files, which other users can't change."""
    parent = dask.config.get("temporary-directory", None) or tempfile.gettempdir()
    user = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
    path = os.path.join(os.path.abspath(parent), f"zarrdask-temporary{user}")
    check_private(path)
    return LocalStore(path), ""


def _end(location: KeyPrefix, process: int) -> None:
    """Erase a prefix. Garbage may be collected in any thread, which must not wait for requests."""
    if process != os.getpid():
        return
    if threading.main_thread().is_alive():
        threading.Thread(target=_erase_unused, args=(location,), name="zarrdask-erase").start()
    else:
        _erase(location)


def _erase_unused(location: KeyPrefix) -> None:
    """Erase a prefix, after the tasks of a cluster that may still use it."""
    while is_computing() and threading.main_thread().is_alive():
        time.sleep(_POLL_INTERVAL)
    _erase(location)


def _erase(location: KeyPrefix) -> None:
    store, prefix = location
    with suppress(ZarrdaskError, OSError):  # the next prefix in this folder erases it
        # First of all, so that tasks that still run erase what they store.
        store.erase(prefix + _OWNER)
        clear_prefix(location)


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
