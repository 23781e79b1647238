"""A store with latency, which counts rounds of requests and how many are in flight."""

import threading
import time
from dataclasses import replace

from zarrdask.formats.byte_ranges import Part, Version, cut
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.wrapper import WrappedStore


class _Flight:
    """Requests that are in flight together: when the last one began, and whether they end."""

    last, ends = 0.0, False


class LatencyStore(WrappedStore):
    """A store in memory whose requests take a while, and that is not read by position.

    Attributes
    ----------
    calls : list of str
        The operations, in the order in which they began.
    most : int
        The most requests that were in flight at the same time.
    rounds : int
        How many requests began while no other one was in flight.
    """

    def __init__(self, inner=None, seconds=0.005):
        super().__init__(inner if inner is not None else MemoryStore())
        self.seconds = seconds
        self.clear()

    @property
    def capabilities(self):
        return replace(super().capabilities, costs=REMOTE_COSTS, shared=False)

    def clear(self):
        self.calls, self.keys, self.most, self.rounds = [], [], 0, 0
        self.in_flight, self._lock, self._flight = 0, threading.Lock(), _Flight()

    def request(self, name, keys, call):
        with self._lock:
            self.calls.append(name)
            self.keys += keys
            self.rounds += not self.in_flight
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            if self._flight.ends:
                self._flight = _Flight()
            flight = self._flight
            flight.last = time.monotonic()
        try:
            # As long as others begin: on a machine with much to do, threads begin late. Those that
            # begin when the first one ends are of the next flight: each would delay all others.
            while not flight.ends and (left := flight.last + self.seconds - time.monotonic()) > 0:
                time.sleep(left)
            flight.ends = True
            return call()
        finally:
            with self._lock:
                self.in_flight -= 1

    def get(self, key):
        return self.request("get", [key], lambda: self.inner.get(key))

    def get_many(self, keys, scratch):
        keys = list(keys)
        return iter(
            self.request(
                "get_many",
                keys,
                lambda: [
                    bytes(v) if v is not None else None for v in self.inner.get_many(keys, scratch)
                ],
            )
        )

    def get_range(self, key, start, length=None):
        return self.request("get_range", [key], lambda: self.inner.get_range(key, start, length))

    def get_ranges(self, key, ranges, scratch):
        return iter(
            self.request(
                "get_ranges", [key], lambda: list(self.inner.get_ranges(key, ranges, scratch))
            )
        )

    def get_partial_values(self, key_ranges):
        key_ranges = list(key_ranges)
        keys = [key for key, _ in key_ranges]
        return self.request(
            "get_partial_values", keys, lambda: self.inner.get_partial_values(key_ranges)
        )

    def set(self, key, value):
        self.request("set", [key], lambda: self.inner.set(key, value))

    def create(self, key, value):
        return self.request("create", [key], lambda: self.inner.create(key, value))

    def erase(self, key):
        self.request("erase", [key], lambda: self.inner.erase(key))


class FarStore(LatencyStore):
    """The same, for requests of several threads that are in flight together."""

    @property
    def capabilities(self):
        return replace(super().capabilities, concurrent=True)

    def get_many(self, keys, scratch):
        return Store.get_many(self, keys, scratch)

    def get_ranges(self, key, ranges, scratch):
        return Store.get_ranges(self, key, ranges, scratch)

    def get_partial_values(self, key_ranges):
        return Store.get_partial_values(self, key_ranges)


class VersionedStore(FarStore):
    """A store that tells the versions of its values, which change `after` a number of parts."""

    has_tags = True

    def __init__(self, *args, after=None, **options):
        super().__init__(*args, **options)
        self.after = after

    @property
    def capabilities(self):
        return replace(super().capabilities, etags=True, versions=True)

    def get_part(self, key, start, length, tag=None):
        value = self.request("get_part", [key], lambda: self.inner.get(key))
        if value is None or (tag is not None and tag != str(hash(value))):
            return None
        if len(self.calls) == self.after:
            self.inner.set(key, value[::-1])
        found = str(hash(value)) if self.has_tags else None
        return Part(cut(value, start, length), len(value), found)

    def get_if_changed(self, key, tag, start=0, length=None):
        value = self.request("get_if_changed", [key], lambda: self.inner.get(key))
        if value is None:
            return Version()
        found = str(hash(value)) if self.has_tags else None
        if tag is not None and tag == found:
            return Version(tag=tag)
        return Version(cut(value, start, length), len(value), found)
