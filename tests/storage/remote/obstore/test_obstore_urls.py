"""URLs and options of fsspec, opened by obstore."""

import sys

import dask
import pytest

from tests.covering import for_each
from zarrdask.errors import StoreError, without_secrets
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.remote.obstore.obstore_store import ObstoreStore
from zarrdask.storage.resolve import resolve


@pytest.fixture(autouse=True)
def chosen(without_cloud_settings):
    with dask.config.set({"zarrdask.remote": "obstore"}):
        yield


AZURE = {"account_name": "name"}


@for_each(
    ("url", "options", "canonical"),
    [
        ("s3://bucket/a/b c", None, "s3://bucket/a/b c"),
        ("s3a://bucket", None, "s3://bucket"),
        ("gs://bucket/a/", {"anon": True}, "gs://bucket/a"),
        ("gcs://bucket/a", {"token": "anon"}, "gs://bucket/a"),
        ("az://container/a", AZURE, "abfs://container/a"),
        ("abfs://container@name.dfs.core.windows.net/a", None, "abfs://container/a"),
        ("http://127.0.0.1:1/a/b%20c/", None, "http://127.0.0.1:1/a/b%20c"),
        ("https://example.org", None, "https://example.org"),
    ],
)
def test_these_urls_are_opened(url, options, canonical):
    store = resolve(url, options)
    assert isinstance(store, ObstoreStore)
    assert store.url == canonical


@pytest.mark.parametrize("url", ["memory://a", "simplecache::s3://bucket/a", "ftp://host/a"])
def test_other_urls_are_opened_by_fsspec(url, monkeypatch):
    opened = []
    monkeypatch.setattr(FsspecStore, "from_url", lambda url, _options: opened.append(url))
    resolve(url)
    assert opened == [url]


@for_each(
    ("url", "variable"),
    [
        ("s3://b", "AWS_CA_BUNDLE"),
        ("s3://b", "AWS_USE_FIPS_ENDPOINT"),
        ("s3://b", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
        ("gs://b", "STORAGE_EMULATOR_HOST"),
        ("az://c", "AZURE_STORAGE_CONNECTION_STRING"),
    ],
)
def test_a_variable_without_a_counterpart_is_refused_by_name(url, variable):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable, "true")
        with pytest.raises(StoreError, match=f"does not support.*{variable}"):
            resolve(url)
        if variable.startswith("AWS"):
            resolve(url, {"endpoint_url": "http://127.0.0.1:1"})


@for_each(
    ("url", "what"),
    [
        ("s3://b/a//c", "empty or relative names"),
        ("gs://b/a/../c", "empty or relative names"),
        ("s3://arn:aws:s3:eu-west-1:1:accesspoint/x", "ARN"),
        ("s3://my bucket/x", "the name 'my bucket' of a bucket"),
        ("gs://bücket/x", "the name 'bücket' of a bucket"),
        ("abfs://c@n.blob.core.usgovcloudapi.net/a", "usgovcloudapi"),
        ("https://example.org/a?token=1", "query"),
    ],
)
def test_a_url_without_a_counterpart_is_refused(url, what):
    with pytest.raises(StoreError, match=f"does not support.*{what}"):
        resolve(url)


@for_each(
    ("url", "options", "name"),
    [
        # As it is read from a file.
        ("s3://b/x", {"key": "name\n", "secret": "s", "endpoint_url": "http://a"}, "access_key_id"),
        ("s3://b/x", {"anon": True, "client_kwargs": {"region_name": "eu west"}}, "region"),
        ("s3://b/x", {"anon": True, "endpoint_url": "http://my host"}, "endpoint"),
        ("gs://b/x", {"token": "anon", "endpoint_url": "http://hôst"}, "base_url"),
    ],
)
def test_a_setting_that_can_not_be_part_of_a_request_is_refused(url, options, name):
    with pytest.raises(StoreError, match=f"the setting '{name}' of the bucket 'b' contains"):
        resolve(url, options)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("az://container", "Account must be specified"),
        ("https://example.org/a?token=1", "query"),
    ],
)
def test_what_obstore_refuses_is_a_store_error_that_names_the_url(url, message):
    with pytest.raises(StoreError, match=message) as caught:
        resolve(url)
    assert caught.value.key == without_secrets(url)


def test_obstore_repeats_no_request():
    assert resolve("s3://bucket").inner.retry_config["max_retries"] == 0


def test_without_obstore_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    for name in (
        "zarrdask.storage.remote.obstore.obstore_store",
        "zarrdask.storage.remote.obstore.obstore_urls",
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(StoreError, match=r"install zarrdask\[obstore\]"):
        resolve("s3://bucket")
