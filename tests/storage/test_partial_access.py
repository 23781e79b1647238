"""Stores that can do little: what is built from that, and errors for the rest."""

from collections import Counter

import pytest

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.byte_ranges import cut
from zarrdask.formats.store_keys import check_key, check_prefix
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.partial_access import StoreWithPartialAccess, set_partial_values
from zarrdask.testing import VALUES, ReadOnlyStoreContract, StoreContract


class Shared:
    """Values that all stores of one name share; so those pickle by name."""

    homes = {}  # noqa: RUF012

    def __init__(self, name):
        self.name = name
        self.values = self.homes.setdefault(name, {})
        self.calls = Counter()

    @property
    def url(self):
        return f"shared://{self.name}"

    def __eq__(self, other):
        return type(other) is type(self) and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return type(self), (self.name,)


class Least(Shared, Store):
    """A store that gives the least that can be read, written and listed."""

    def get(self, key):
        self.calls["get"] += 1
        return self.values.get(key)

    def set(self, key, value):
        self.calls["set"] += 1
        self.values[key] = bytes(value)

    def erase(self, key):
        self.values.pop(key, None)

    def list(self):
        return iter(sorted(self.values))


class Parts(Shared, StoreWithPartialAccess):
    """A store that knows parts of values only."""

    def get_partial_values(self, key_ranges):
        self.calls["get_partial_values"] += 1
        wanted = [(check_key(key), each) for key, each in key_ranges]
        return [
            cut(self.values[key], *each) if key in self.values else None for key, each in wanted
        ]

    def set_partial_values(self, key_start_values):
        set_partial_values(MemoryStore(self.values), key_start_values)

    def erase_values(self, keys):
        for key in [check_key(key) for key in keys]:
            self.values.pop(key, None)

    def list_prefix(self, prefix):
        prefix = check_prefix(prefix)
        return (key for key in sorted(self.values) if key.startswith(prefix))


class TestLeast(StoreContract):
    @pytest.fixture
    def store(self, request):
        return Least(request.node.nodeid)


class TestParts(StoreContract):
    @pytest.fixture
    def store(self, request):
        return Parts(request.node.nodeid)


class OnlyGet(Shared, Store):
    def get(self, key):
        return self.values.get(key)


class OnlyParts(Shared, StoreWithPartialAccess):
    get_partial_values = Parts.get_partial_values


class TestOnlyGet(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, request):
        store = OnlyGet(request.node.nodeid)
        store.values.update(VALUES)
        return store


class TestOnlyParts(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, request):
        store = OnlyParts(request.node.nodeid)
        store.values.update(VALUES)
        return store


class OnlySet(Shared, Store):
    def set(self, key, value):
        self.values[key] = bytes(value)

    def erase(self, key):
        self.values.pop(key, None)


class OnlySetParts(Shared, StoreWithPartialAccess):
    set_partial_values = Parts.set_partial_values
    erase_values = Parts.erase_values


@pytest.mark.parametrize("kind", [OnlySet, OnlySetParts])
def test_a_store_may_only_be_written(kind, request):
    store = kind(request.node.nodeid)
    store.set("a", b"1")
    store.set("b", b"2")
    store.erase("a")
    assert store.values == {"b": b"2"}
    has = store.capabilities
    assert (has.readable, has.writable, has.listable) == (False, True, False)
    for action in (
        lambda: store.get("a"),
        lambda: store.get_range("a", 0, 1),
        lambda: list(store.get_ranges("a", [(0, 1)], Scratch())),
        lambda: list(store.get_many(["a"], Scratch())),
        lambda: store.get_partial_values([("a", (0, 1))]),
    ):
        with pytest.raises(UnsupportedError, match="not supported: this store can't be read"):
            action()


def test_many_values_and_ranges_are_one_call_where_parts_are_the_stores_own(request):
    store = Parts(request.node.nodeid)
    store.values.update(VALUES)
    assert list(store.get_many(["a/b", "gone"], Scratch())) == [VALUES["a/b"], None]
    assert list(store.get_ranges("a/b", [(0, 2), (4, 2)], Scratch())) == [b"01", b"45"]
    assert store.calls == {"get_partial_values": 2}


def test_parts_of_one_value_are_read_together_by_default(request):
    store = Least(request.node.nodeid)
    store.values.update(VALUES)
    wanted = [("a/b", (5, 1)), ("zarr.json", (0, 1)), ("a/b", (0, 2)), ("a/b", (5, 9))]
    assert [bytes(v) for v in store.get_partial_values(wanted)] == [b"5", b"{", b"01", b"56789"]
    assert store.calls["get"] == 2


def test_parts_of_one_value_are_stored_together_by_default(request):
    store = Least(request.node.nodeid)
    set_partial_values(store, [("a", 3, b"3"), ("b", 0, b"b"), ("a", 0, b"0")])
    assert store.values == {"a": b"0\0\x003", "b": b"b"}
    assert store.calls["set"] == 2


def test_a_directory_beside_one_that_is_to_be_erased_stays(tmp_path):
    store = LocalStore(str(tmp_path))
    store.set("ab/x", b"1")
    with pytest.raises(MetadataError):
        store.erase_prefix("a")
    store.erase_prefix("a/")
    assert store.get("ab/x") == b"1"
