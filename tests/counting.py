"""A store that counts what is asked of it."""

from collections import Counter

from zarrdask.storage.wrapper import WrappedStore


class CountingStore(WrappedStore):
    """A store that counts reads by key, and listings by prefix."""

    def __init__(self, inner):
        super().__init__(inner)
        self.reads = Counter()
        self.listings = Counter()

    def __reduce__(self):
        return type(self), (self.inner,)

    def clear(self):
        """Begin to count anew."""
        self.reads.clear()
        self.listings.clear()

    def get(self, key):
        self.reads[key] += 1
        return self.inner.get(key)

    def get_many(self, keys, scratch):
        keys = list(keys)
        self.reads.update(keys)
        return self.inner.get_many(keys, scratch)

    def get_range(self, key, start, length=None):
        self.reads[key] += 1
        return self.inner.get_range(key, start, length)

    def get_ranges(self, key, ranges, scratch):
        self.reads[key] += 1
        return self.inner.get_ranges(key, ranges, scratch)

    def create(self, key, value):
        return self.inner.create(key, value)

    def list_dir(self, prefix):
        self.listings[prefix] += 1
        return self.inner.list_dir(prefix)

    def list_prefix(self, prefix):
        self.listings[prefix] += 1
        return self.inner.list_prefix(prefix)
