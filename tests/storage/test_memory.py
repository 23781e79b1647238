"""Stores in memory."""

import pickle
from collections.abc import MutableMapping
from typing import ClassVar

import pytest

from tests.covering import for_each
from zarrdask.errors import StoreError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.memory import MappingStore, MemoryStore
from zarrdask.testing import StoreContract


class Shelf(MutableMapping):
    """A mapping that is no dict, as a user might bring; it pickles by name."""

    shelves: ClassVar = {}

    def __init__(self, name):
        self.name = name
        self.values_ = self.shelves.setdefault(name, {})

    def __getitem__(self, key):
        return self.values_[key]

    def __setitem__(self, key, value):
        assert type(value) is bytes
        self.values_[key] = value

    def __delitem__(self, key):
        del self.values_[key]

    def __iter__(self):
        return iter(self.values_)

    def __len__(self):
        return len(self.values_)


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class TestMappingStore(StoreContract):
    @pytest.fixture
    def store(self, request):
        return MappingStore(Shelf(request.node.nodeid))

    def test_a_store_pickles_to_an_equal_one_that_sees_the_same_values(self, store):
        # How it pickles is the mapping's affair; that it does is ours.
        store.set("k", b"1")
        assert pickle.loads(pickle.dumps(store)).get("k") == b"1"


def test_values_that_are_no_bytes_are_read_as_bytes():
    assert MappingStore({"k": bytearray(b"1")}).get("k") == b"1"


def test_stores_on_one_mapping_are_equal_and_on_others_not():
    values = {}
    assert MemoryStore(values) == MemoryStore(values)
    assert MemoryStore(values).url == MemoryStore(values).url
    assert MemoryStore({}) != MemoryStore({})


@for_each(
    "use",
    [
        lambda store: store.get("k"),
        lambda store: store.set("k", b"1"),
        lambda store: store.erase("k"),
        lambda store: list(store.list_prefix("")),
        lambda store: list(store.get_many(["k"], Scratch())),
        lambda store: store.get_range("k", 0, 1),
    ],
)
def test_a_store_of_another_process_says_why_it_has_no_values(use):
    # As in a worker: the process that pickled it is not this one.
    data = pickle.dumps(MemoryStore())
    with pytest.raises(StoreError, match="in-memory store exists only in the process"):
        use(pickle.loads(data))


@for_each("value", ["text", 3, [1, 2], None])
def test_values_of_a_mapping_that_are_not_bytes_are_an_error(value):
    with pytest.raises(StoreError, match=f"found {type(value).__name__!r}") as raised:
        MemoryStore({"a": value}).get("a")
    assert raised.value.key == "a"


def test_keys_of_a_mapping_that_are_not_text_are_an_error():
    with pytest.raises(StoreError, match="expected text"):
        MemoryStore({1: b"", "a": b""}).list_prefix("")


@for_each("values", [{5: b"x"}, {5: b"x", "a": b"y"}])
def test_a_key_that_is_not_text_is_an_error_that_names_it(values):
    with pytest.raises(StoreError, match=r"a key that is not text; found 5; expected text"):
        MappingStore(values).list_prefix("")
