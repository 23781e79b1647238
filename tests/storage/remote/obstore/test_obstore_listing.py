"""Which servers list their keys in order, from any key on."""

import pytest

from zarrdask.storage.remote.obstore.obstore_listing import list_entries, lists_parts

stores = pytest.importorskip("obstore").store


def test_the_keys_of_directory_buckets_have_no_order(tmp_path):
    options = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
    assert lists_parts(stores.S3Store("bucket", **options))
    assert not lists_parts(stores.S3Store("b--use1-az4--x-s3", s3_express=True, **options))
    assert not lists_parts(stores.LocalStore(tmp_path))


def test_keys_that_a_server_should_have_left_out_are_left_out(monkeypatch):
    pages = [[{"path": f"a/{page}{key}", "size": 1} for key in range(3)] for page in range(4)]
    monkeypatch.setattr("obstore.list", lambda *_, **__: iter(pages))
    listed = list_entries(stores.MemoryStore(), "a", "a/11", "a/20", ("path", "size"))
    assert listed == [("a/12", 1), ("a/20", 1)]
    rest = list_entries(stores.MemoryStore(), "a", "a/31", None, ("path", "size"))
    assert rest == [("a/32", 1)]
