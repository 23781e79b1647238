"""What identifies a store at a URI."""

import os
import sys

import pytest

from zarrdask.storage.identity import Identity, directory_at

posix = pytest.mark.skipif(sys.platform == "win32", reason="paths have drives")


@posix
def test_the_directory_of_a_local_uri_is_a_path():
    assert directory_at("file:///data/a.zarr") == "/data/a.zarr"
    assert directory_at("file:///data/a%20b%25") == "/data/a b%"


@pytest.mark.parametrize("uri", ["s3://bucket/a", "memory://a", "https://host/file://a"])
def test_other_uris_have_no_directory(uri):
    identity = Identity.at(uri, "token")
    assert (identity.uri, identity.token, identity.directory) == (uri, "token", None)


@posix
def test_the_identity_of_a_local_store_has_its_directory(tmp_path):
    assert Identity.at(tmp_path.as_uri(), "token").directory == os.fspath(tmp_path)
