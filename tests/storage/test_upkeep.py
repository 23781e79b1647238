"""Listings with sizes, as a whole and in parts."""

from tests.covering import for_each
from zarrdask.storage.cache.cache_directory import CacheDirectory
from zarrdask.storage.cache.disk_cache import DiskCachedStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.forbidden import ForbiddenIsMissing
from zarrdask.storage.remote.remote_store import RemoteStore
from zarrdask.storage.remote.retry import RetryingStore
from zarrdask.storage.resolve import resolve
from zarrdask.storage.upkeep import listed_keys, listed_sizes, value_sizes

KEYS = ["a/c/0", "a/c/1", "a/c/10", "a/c/2", "a/zarr.json"]


class InParts(MemoryStore):
    """A store that lists sizes from any key on, and records from where it was asked to."""

    _lists_parts = True

    def __init__(self):
        super().__init__()
        self.parts = []

    def _list_sizes(self, prefix, after="", until=None):
        self.parts.append((after, until))
        listed = super()._list_sizes(prefix, after, until)
        return ((key, len(self.values[key])) for key, _ in listed)


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
        assert list(listed_sizes(each, "a/", bounds)) == sizes
        assert len(store.parts) == 2 * (len(bounds) + 1)


def test_listed_sizes_are_those_of_the_values(tmp_path):
    for url in (tmp_path / "x.zarr", "memory://sizes.zarr", tmp_path / "x.zip", {}):
        store = fill(resolve(url, None))
        keys, sizes = zip(*sorted(listed_sizes(store, "a/")), strict=True)
        assert list(keys) == KEYS
        expected = value_sizes(store, keys)
        assert all(size in (None, own) for size, own in zip(sizes, expected, strict=True))
