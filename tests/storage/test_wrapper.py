"""Stores around stores do what a store does."""

import pytest

from zarrdask.storage.listing import value_sizes
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.remote.retry import RetryingStore
from zarrdask.storage.wrapper import WrappedStore
from zarrdask.testing import StoreContract


class TestWrappedStore(StoreContract):
    @pytest.fixture
    def store(self):
        return WrappedStore(MemoryStore())


class TestRetryingStore(StoreContract):
    @pytest.fixture
    def store(self):
        return RetryingStore(MemoryStore())


class Framed(WrappedStore):
    """A view that a user wrote, which keeps values with a frame around them."""

    def get(self, key):
        value = self.inner.get(key)
        return None if value is None else value[1:-1]

    def set(self, key, value):
        self.inner.set(key, b"<" + bytes(value) + b">")


def test_the_size_of_a_value_is_that_of_what_a_view_reads():
    store = Framed(MemoryStore())
    store.set("a", b"12345")
    assert [*value_sizes(store, "ab"), *value_sizes(store.inner, "a")] == [5, None, 7]
