"""An object store with latency and conditional writes, which counts requests and round trips."""

from dataclasses import replace
from hashlib import md5
from weakref import WeakValueDictionary

from tests.storage.latency import FarStore
from zarrdask.storage.base import Store
from zarrdask.storage.identity import Identity

#: The buckets of this process, by URL: a pickled one is itself.
BUCKETS = WeakValueDictionary()


def tag_of(value):
    return None if value is None else md5(value, usedforsecurity=False).hexdigest()


class Bucket(FarStore):
    """Values in memory that are reached as those of an object store.

    A round trip takes `latency` seconds of the clock `now`, and no more of a real one than the
    threads need to begin.
    """

    def __init__(self, latency=0.0):
        super().__init__(seconds=0.05)
        self.latency = latency
        BUCKETS[self.url] = self

    def __reduce__(self):
        return BUCKETS.get, (self.url,)

    @property
    def url(self):
        return f"bucket://{id(self)}"

    @property
    def identity(self):
        return Identity.at(self.url, self.url)

    @property
    def capabilities(self):
        return replace(
            super().capabilities, shared=True, create_exclusive=True, compare_and_swap=True
        )

    def now(self):
        return self.rounds * self.latency

    @property
    def counts(self):
        """The requests, and the round trips that they took."""
        return len(self.calls), self.rounds

    def get_tagged(self, key):
        value = self.request("get_tagged", [key], lambda: self.inner.get(key))
        return value, tag_of(value)

    def swap(self, key, value, tag):
        def call():
            is_same = tag_of(self.inner.get(key)) == tag
            if is_same:
                self.inner.set(key, value)
            return is_same

        return self.request("swap", [key], call)

    def stat(self, key):
        return self.request("stat", [key], lambda: self.inner.stat(key))

    def erase_values(self, keys):
        if keys := list(keys):
            self.request("erase_values", keys, lambda: self.inner.erase_values(keys))

    def erase_prefix(self, prefix):
        Store.erase_prefix(self, prefix)

    def list_dir(self, prefix):
        return self.request("list_dir", [prefix], lambda: self.inner.list_dir(prefix))

    def list_prefix(self, prefix):
        keys = self.request("list_prefix", [prefix], lambda: [*self.inner.list_prefix(prefix)])
        return iter(keys)

    def entries(self, prefix, after="", until=None, *, objects=False):
        found = [*self.inner.entries(prefix, after, until, objects=objects)]
        return iter(self.request("entries", [prefix], lambda: found))
