"""Stores, and a directory for locks."""

import pytest

from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore


@pytest.fixture(params=["memory", "files"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else LocalStore(str(tmp_path))


@pytest.fixture
def directory(tmp_path, setting):
    """Where the files to lock are."""
    found = tmp_path / "locks"
    setting({"zarrdask.lock-directory": str(found)})
    return found
