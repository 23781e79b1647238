"""Errors of requests, from which no secret can be read, also not by programs that log all of it."""

import traceback

import pytest
from dask import config

import zarrdask
from zarrdask.errors import StoreError
from zarrdask.storage.memory import MappingStore
from zarrdask.storage.remote.retry import RetryingStore, retrying
from zarrdask.storage.resolve import resolve

pytest.importorskip("obstore")

#: A server to which no connection can be made, with a password in the URL.
URL = "http://user:s3cr3t@127.0.0.1:9/a"


def all_texts(error):
    """Return the texts of all errors that can be reached from an error."""
    pending, seen, texts = [error], set(), []
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        texts += [str(each), repr(each), repr(each.args), "".join(getattr(each, "__notes__", []))]
        pending += [each.__cause__, each.__context__]
    return texts


@pytest.mark.parametrize("remote", ["obstore", "fsspec"])
def test_no_context_of_an_error_has_a_secret(remote):
    with config.set({"zarrdask.remote": remote, "zarrdask.retries": 0}):
        store = retrying(resolve(URL))
        for request in (lambda: store.get("k"), lambda: store.get_range("k", 0, 1)):
            with pytest.raises(StoreError) as caught:
                request()
            assert not [text for text in all_texts(caught.value) if "s3cr3t" in text]


def test_no_context_of_an_unknown_error_has_a_secret():
    class Failing(MappingStore):
        def get(self, key):
            raise OSError("https://h/x?X-Amz-Signature=s3cr3t")

    with pytest.raises(StoreError) as caught:
        RetryingStore(Failing({})).get("k")
    assert not [text for text in all_texts(caught.value) if "s3cr3t" in text]


@pytest.mark.parametrize("remote", ["obstore", "fsspec", "auto"])
@pytest.mark.parametrize(
    "url",
    ["s3://KEY:S3CR3T@bucket/x", "gs://S3CR3T@bucket", "simplecache::s3://KEY:S3CR3T@bucket/x"],
)
def test_credentials_in_the_url_of_a_bucket_are_refused(remote, url):
    with config.set({"zarrdask.remote": remote}), pytest.raises(StoreError) as caught:
        zarrdask.open_array(url)
    text = "".join(traceback.format_exception(caught.value, chain=True)[-1:])
    assert "S3CR3T" not in text
    assert "storage_options" in str(caught.value)
    assert not [text for text in all_texts(caught.value) if "S3CR3T" in text]
