"""A store in memory that has each operation, and declares any mix of capabilities."""

import threading
from contextlib import contextmanager
from weakref import WeakValueDictionary

from zarrdask.formats.byte_ranges import Entry, Part, Version, cut
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.storage.identity import Identity
from zarrdask.storage.memory import MappingStore
from zarrdask.storage.value_parts import StoredValue

#: The stores of this process, by URL: a pickled one is itself.
STORES = WeakValueDictionary()


class MixedStore(MappingStore):
    """Values in a dict, with a number for each version, as tags and stamps.

    Attributes
    ----------
    calls : set of str
        The names of the operations that only some capabilities allow, and that were called.
    """

    def __init__(self, capabilities):
        super().__init__({})
        self.capabilities, self.calls = capabilities, set()
        self._tags, self._lock, self._count = {}, threading.RLock(), 0
        STORES[self.url] = self

    def __reduce__(self):
        return STORES.get, (self.url,)

    @property
    def identity(self):
        return Identity.at(self.url, self.url)

    def _called(self, name, capability):
        assert getattr(self.capabilities, capability), name
        self.calls.add(name)

    def _current(self, key):
        with self._lock:
            return self.values.get(key), self._tags.get(key)

    def set(self, key, value):
        with self._lock:
            self._count += 1
            self._tags[key] = str(self._count)
            super().set(key, value)

    def erase(self, key):
        with self._lock:
            self._tags.pop(key, None)
            super().erase(key)

    def create(self, key, value):
        with self._lock:
            return super().create(key, value)

    def get_range(self, key, start, length=None):
        value = self.get(key)
        return None if value is None else cut(value, start, length)

    def get_part(self, key, start, length, tag=None):
        self._called("get_part", "etags")
        value, found = self._current(key)
        if value is None or tag not in (None, found):
            return None
        return Part(cut(value, start, length), len(value), found)

    def get_if_changed(self, key, tag, start=0, length=None):
        self._called("get_if_changed", "versions")
        value, found = self._current(key)
        if value is None:
            return Version()
        if tag == found:
            return Version(tag=tag)
        return Version(cut(value, start, length), len(value), found)

    def get_tagged(self, key):
        self._called("get_tagged", "compare_and_swap")
        return self._current(key)

    def swap(self, key, value, tag):
        self._called("swap", "compare_and_swap")
        with self._lock:
            if self._tags.get(key) != tag:
                return False
            self.set(key, value)
            return True

    def stat(self, key):
        value, tag = self._current(key)
        stamp = tag if self.capabilities.stamps else ""
        return None if value is None else Entry(key, len(value), stamp or "")

    @contextmanager
    def reading(self, key, scratch):
        if not self.capabilities.keeps_open:
            yield StoredValue(self, key, scratch)
            return
        self.calls.add("reading")
        value = self.values.get(key)
        yield _Missing() if value is None else HeldValue(value)


class _Missing:
    """A missing value that was opened."""

    size = 0

    def part(self, start, length):
        return None

    def parts(self, ranges):
        return iter([None] * len(ranges))
