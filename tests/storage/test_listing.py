"""Listings with sizes, as a whole and in parts."""

from dataclasses import replace

from tests.covering import for_each
from zarrdask.formats.byte_ranges import Entry
from zarrdask.storage.cache.cache_directory import CacheDirectory
from zarrdask.storage.cache.disk_cache import DiskCachedStore
from zarrdask.storage.listing import listed_entries, listed_keys, value_sizes
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.forbidden import ForbiddenIsMissing
from zarrdask.storage.remote.remote_store import RemoteStore
from zarrdask.storage.remote.retry import RetryingStore
from zarrdask.storage.resolve import resolve

KEYS = ["a/c/0", "a/c/1", "a/c/10", "a/c/2", "a/zarr.json"]


class InParts(MemoryStore):
    """A store that lists sizes from any key on, and records from where it was asked to."""

    capabilities = replace(MemoryStore.capabilities, lists_parts=True)

    def __init__(self):
        super().__init__()
        self.parts = []

    def entries(self, prefix, after="", until=None, *, objects=False):
        self.parts.append((after, until))
        listed = super().entries(prefix, after, until, objects=objects)
        return (Entry(each.key, len(self.values[each.key])) for each in listed)


def fill(store):
    for number, key in enumerate([*KEYS, "b/c/0"]):
        store.set(key, bytes(number + 1))
    return store


@for_each("bounds", [[], ["a/c/1"], ["a/c/0", "a/c/1", "a/c/15"], ["a/a"], ["b"]])
def test_the_parts_of_a_listing_are_all_of_it(bounds, tmp_path):
    store = fill(InParts())
    views = [
        RetryingStore(store),
        RemoteStore("s3://bucket", None, store),
        ForbiddenIsMissing(store),
        DiskCachedStore(store, CacheDirectory.below(str(tmp_path), 2**20)),
    ]
    sizes = [(key, len(store.values[key])) for key in KEYS]
    for each in (store, *views):
        store.parts.clear()
        assert list(listed_keys(each, "a/", bounds)) == KEYS
        entries = listed_entries(each, "a/", bounds)
        assert [(entry.key, entry.size) for entry in entries] == sizes
        assert len(store.parts) == 2 * (len(bounds) + 1)


def test_listed_sizes_are_those_of_the_values(tmp_path):
    for url in (tmp_path / "x.zarr", "memory://sizes.zarr", tmp_path / "x.zip", {}):
        store = fill(resolve(url, None))
        listed = sorted((each.key, each.size) for each in listed_entries(store, "a/"))
        keys, sizes = zip(*listed, strict=True)
        assert list(keys) == KEYS
        expected = value_sizes(store, keys)
        assert all(size in (None, own) for size, own in zip(sizes, expected, strict=True))
