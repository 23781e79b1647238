"""Values are copied unchanged, by the kernel if both stores are local."""

import os
from hashlib import sha256

import pytest

from zarrdask.storage import transfer
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.zarr.draft_store import DraftStore

PAIRS = [("a/0", "b/0"), ("a/1", "b/1"), ("a/missing", "b/2")]


@pytest.fixture(params=["memory", "local"])
def stores(request, tmp_path):
    """Return two stores, the first of which has values."""
    if request.param == "local":
        source, target = (LocalStore(str(tmp_path / name)) for name in ("one", "two"))
    else:
        source, target = MemoryStore(), MemoryStore()
    source.set("a/0", b"12345")
    source.set("a/1", b"")
    return source, target


def test_values_are_copied_and_missing_ones_left_out(stores):
    source, target = stores
    assert transfer.copy_values(source, target, PAIRS) == [5, 0]
    assert sorted(target.list()) == ["b/0", "b/1"]
    assert target.get("b/0") == b"12345"


def test_values_are_stored_with_their_sizes():
    store = MemoryStore()
    assert transfer.store_values(store, iter([("a", b"12"), ("b", b"")])) == [2, 0]
    assert store.get("a") == b"12"


def test_a_value_of_a_hierarchy_of_the_draft_is_one_file(tmp_path):
    store = LocalStore(str(tmp_path))
    assert transfer.local_value(store, "a/c0") == (store, "a/c0")
    assert transfer.local_value(DraftStore(store), "a/c0") == (store, "data/a/c0")
    # The chunk of an array without axes may have either of two keys.
    assert transfer.local_value(DraftStore(store), "a/c") is None
    assert transfer.local_value(MemoryStore(), "a/c0") is None


@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_file_is_hashed_while_it_is_copied(tmp_path, monkeypatch, by_kernel):
    value = os.urandom(3000)
    monkeypatch.setattr(transfer, "_BLOCK_BYTES", 1024)
    if not by_kernel:
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    (tmp_path / "one").write_bytes(value)
    hashed = sha256()
    with open(tmp_path / "one", "rb") as one, open(tmp_path / "two", "wb") as two:
        transfer.copy_descriptor(one.fileno(), len(value), two.fileno(), hashed)
    assert (tmp_path / "two").read_bytes() == value
    assert hashed.digest() == sha256(value).digest()
    with open(tmp_path / "three", "wb") as three:
        transfer.copy_file(str(tmp_path / "one"), three.fileno())
    assert (tmp_path / "three").read_bytes() == value
