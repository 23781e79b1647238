"""A view of a store that its user has opened for reading only."""

import pytest

from zarrdask.storage.adapters.read_only_store import ReadOnlyStore
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.testing import VALUES, ReadOnlyStoreContract


class TestReadOnlyStore(ReadOnlyStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        inner = LocalStore(str(tmp_path))
        for key, value in VALUES.items():
            inner.set(key, value)
        return ReadOnlyStore(inner)
