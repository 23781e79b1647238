"""Options of fsspec, as settings of obstore."""

import dask
import pytest
from fsspec.config import conf

from tests.covering import for_each
from zarrdask.errors import StoreError
from zarrdask.storage.resolve import resolve


@pytest.fixture(autouse=True)
def chosen(without_cloud_settings):
    with dask.config.set({"zarrdask.remote": "obstore"}):
        yield


AZURE = {"account_name": "name"}


def test_options_that_concern_nothing_here_are_ignored():
    options = {"anon": True, "default_cache_type": "none", "skip_instance_cache": True}
    client = {"config_kwargs": {"max_pool_connections": 99, "signature_version": "s3v4"}}
    store = resolve("s3://bucket/a", {**options, **client, "use_ssl": True, "unknown": None})
    assert dict(store.inner.config) == {"bucket": "bucket", "skip_signature": "true"}


def test_certificates_are_not_checked_if_the_user_says_so():
    for url, options in (
        ("s3://b", {"client_kwargs": {"verify": False}, "anon": True}),
        ("https://example.org", {"ssl": False}),
    ):
        assert resolve(url, options).inner.client_options["allow_invalid_certificates"] == "true"


def test_settings_of_fsspec_are_options(monkeypatch):
    monkeypatch.setitem(conf, "s3", {"anon": True, "endpoint_url": "http://here"})
    config = dict(resolve("s3://b", {"endpoint_url": "https://there"}).inner.config)
    assert config == {"bucket": "b", "skip_signature": "true", "endpoint": "https://there"}


S3 = {
    "anon": ({"anon": True}, {"skip_signature": "true"}),
    "keys": (
        {"key": "k", "secret": "s", "token": "t"},
        {"access_key_id": "k", "secret_access_key": "s", "session_token": "t"},
    ),
    "endpoint": ({"endpoint_url": "https://here"}, {"endpoint": "https://here"}),
    "region": ({"client_kwargs": {"region_name": "eu-west-1"}}, {"region": "eu-west-1"}),
    "endpoint-of-the-client": (
        {"client_kwargs": {"endpoint_url": "https://here"}},
        {"endpoint": "https://here"},
    ),
    "requester-pays": ({"requester_pays": True}, {"request_payer": "true"}),
    "absent": ({"anon": False, "token": None, "requester_pays": True}, {"request_payer": "true"}),
}


@for_each(("options", "expected"), S3.values())
def test_options_of_s3(options, expected):
    settings = dict(resolve("s3://bucket/a", options).inner.config)
    assert settings == {"bucket": "bucket", **expected}


@for_each(
    ("url", "options", "expected"),
    [
        ("gs://b", {"anon": True}, {"skip_signature": "true"}),
        ("az://c", {**AZURE, "anon": True}, {"account_name": "name", "skip_signature": "true"}),
        ("az://c", {**AZURE, "sas_token": "sv=1"}, {"account_name": "name", "sas_key": "sv=1"}),
        (
            "az://c",
            {**AZURE, "tenant_id": "t", "client_id": "i", "client_secret": "s"},
            {"account_name": "name", "tenant_id": "t", "client_id": "i", "client_secret": "s"},
        ),
    ],
)
def test_options_of_google_and_azure(url, options, expected):
    settings = dict(resolve(url, options).inner.config)
    del settings["bucket" if url.startswith("gs") else "container_name"]
    assert settings == expected


def test_headers_are_sent_with_each_request_of_http():
    headers = {"user-agent": "y"}
    for options in ({"headers": headers}, {"client_kwargs": {"headers": headers}}):
        client = resolve("https://example.org/a", options).inner.client_options
        assert client["default_headers"] == {"user-agent": b"y"}


@for_each(
    ("url", "options", "name"),
    [
        ("s3://b", {"anonn": True}, "anonn"),
        ("s3://b", {"requestr_pays": False}, "requestr_pays"),
        ("s3://b", {"client_kwargs": {"regoin_name": ""}}, "client_kwargs.regoin_name"),
        ("s3://b", {"config_kwargs": {"retries": 1}}, "config_kwargs.retries"),
        ("s3://b", {"client_kwargs": {"verify": "ca.pem"}}, "client_kwargs.verify"),
        ("s3://b", {"use_ssl": False}, "use_ssl"),
        ("s3://b", {"version_aware": True}, "version_aware"),
        ("gs://b", {"token": "browser"}, "token"),
        ("gs://b", {"requester_pays": True}, "requester_pays"),
        ("az://c", {**AZURE, "key": "k"}, "key"),
        ("https://example.org", {"anon": True}, "anon"),
        ("https://example.org", {"headers": {"X-Api-Key": "k"}}, "headers"),
    ],
)
def test_an_option_without_a_counterpart_is_refused_by_name(url, options, name):
    with pytest.raises(StoreError, match=rf"does not support.*'{name}' in storage_options"):
        resolve(url, options)
