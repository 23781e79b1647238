"""A store with latency that counts the rounds of requests that wait for each other."""

import threading
from dataclasses import replace

from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.memory import MemoryStore


class RoundsStore(MemoryStore):
    """Values in memory; each call is one round of requests, unless it meets another one.

    A call that is expected to have company waits until the other call has begun, so that a test
    does not depend on time.
    """

    capabilities = replace(MemoryStore.capabilities, costs=REMOTE_COSTS, shared=True)

    def __init__(self, values, together=()):
        super().__init__(values)
        self.calls = []
        self.together = set(together)
        self._begun = threading.Barrier(2, timeout=20)
        self._lock = threading.Lock()

    def _call(self, kind, what):
        with self._lock:
            joint = kind in self.together
            if joint:
                self.together.discard(kind)
            self.calls.append((kind, what))
        if joint:
            self._begun.wait()

    def get(self, key):
        self._call("get", [key])
        return super().get(key)

    def get_many(self, keys, scratch):
        keys = list(keys)
        self._call("get_many", keys)
        return iter([super(RoundsStore, self).get(key) for key in keys])

    def get_range(self, key, start, length=None):
        self._call("get_range", [key])
        return super().get_range(key, start, length)

    def list_dir(self, prefix):
        self._call("list_dir", [prefix])
        return super().list_dir(prefix)

    def kinds(self):
        """Return the kinds of the calls since the last time."""
        kinds, self.calls = [kind for kind, _ in self.calls], []
        return kinds
