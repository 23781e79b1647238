"""Options of file systems of fsspec: those that are unknown are named."""

import fsspec
from fsspec.config import conf

from zarrdask.storage.remote.fsspec.fsspec_options import (
    not_an_option,
    with_anonymous,
    with_endpoint,
)


def test_an_option_of_the_client_is_named():
    class Bucket(fsspec.AbstractFileSystem):
        def __init__(self, client_kwargs=None, cache_regions=False):
            super().__init__()

    error = not_an_option("region", "s3://b", Bucket)
    assert "client_kwargs={'region_name': ...}" in str(error)
    assert "cache_regions" not in str(error)


def test_anonymous_requests_of_google_cloud_are_an_option_of_another_name(monkeypatch):
    assert with_anonymous("gs://b", {"anon": True, "project": "p"}) == {
        "project": "p",
        "token": "anon",
    }
    assert with_anonymous("gcs://b", {"anon": False, "token": "t"}) == {"token": "t"}
    assert with_anonymous("s3://b", {"anon": True}) == {"anon": True}
    monkeypatch.setitem(conf, "gs", {"anon": True})
    assert with_anonymous("gs://b", {}) == {"token": "anon"}


def test_a_server_of_azure_is_named_as_adlfs_takes_it():
    keys = {"account_name": "a", "account_key": "k"}
    here = {**keys, "endpoint_url": "http://here/a"}
    text = "BlobEndpoint=http://here/a;AccountName=a;AccountKey=k"
    assert with_endpoint("az://c", here) == {**keys, "connection_string": text}
    secret = {"account_name": "a", "client_id": "i", "client_secret": "s"}
    given = {**secret, "endpoint_url": "https://a.example.org"}
    assert with_endpoint("abfs://c", given) == {**secret, "account_host": "a.example.org"}
    assert with_endpoint("az://c", keys) == keys
    assert with_endpoint("s3://b", here) == here
