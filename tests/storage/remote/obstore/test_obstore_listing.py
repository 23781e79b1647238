"""Which servers list their keys in order, from any key on."""

import pytest

from zarrdask.storage.remote.obstore.obstore_listing import lists_parts

stores = pytest.importorskip("obstore").store


def test_the_keys_of_directory_buckets_have_no_order(tmp_path):
    options = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
    assert lists_parts(stores.S3Store("bucket", **options))
    assert not lists_parts(stores.S3Store("b--use1-az4--x-s3", s3_express=True, **options))
    assert not lists_parts(stores.LocalStore(tmp_path))
