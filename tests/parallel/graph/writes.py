"""Stores that keep a record of what is written to them."""

import threading
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import zarrdask
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.wrapper import WrappedStore


class WritesStore(MemoryStore):
    """Values in memory; counts how often each key is set or erased, but for markers."""

    def __init__(self):
        super().__init__()
        self.writes = Counter()
        self._lock = threading.Lock()

    def _count(self, key):
        with self._lock:
            if not key.endswith(".zarrdask-unfinished"):  # It is erased at the end.
                self.writes[key] += 1

    def set(self, key, value):
        self._count(key)
        super().set(key, value)

    def erase(self, key):
        self._count(key)
        super().erase(key)


class LoggedStore(LocalStore):
    """A directory; beside it lies a file with a line for each key that was set or erased."""

    def _log(self, key):
        with open(f"{self.root}.log", "a") as file:
            file.write(f"{key}\n")

    def set(self, key, value):
        self._log(key)
        super().set(key, value)

    def erase(self, key):
        self._log(key)
        super().erase(key)

    @property
    def writes(self):
        """How often each key was set or erased, by all processes."""
        log = Path(f"{self.root}.log")
        return Counter(log.read_text().split("\n")[:-1] if log.exists() else [])

    def forget(self):
        """Begin a new record."""
        Path(f"{self.root}.log").unlink(missing_ok=True)


class SlowStore(WrappedStore):
    """What is read of a unit is older, when it has come, than what others wrote meanwhile."""

    def get(self, key):
        found = super().get(key)
        if "zarr.json" not in key:
            time.sleep(0.01)
        return found


def append_elsewhere(values, *place):
    """Append as another machine does: it knows nothing of the locks that are held here."""
    with mock.patch.object(ChunkLocks, "hold", return_value=nullcontext()):
        zarrdask.open_array(*place, mode="r+").append(values)
