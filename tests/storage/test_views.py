"""Stores around stores do what a store does."""

import pytest

from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.retry import RetryingStore
from zarrdask.storage.v3_draft import PROTOCOL, DraftStore
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


class TestDraftStore(StoreContract):
    @pytest.fixture
    def store(self):
        return DraftStore(MemoryStore())


class TestDraftStoreOfTheOlderDialect(StoreContract):
    @pytest.fixture
    def store(self):
        return DraftStore(MemoryStore(), "", PROTOCOL)
