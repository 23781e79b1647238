"""A request that is refused is repeated by zarrdask alone, so that it knows of each refusal."""

import json
import os
import urllib.request

import pytest

from benchmarks.object_server import serving
from zarrdask.storage.remote import aws, retry
from zarrdask.storage.remote.rates import place_of
from zarrdask.storage.resolve import resolve


@pytest.fixture(scope="module")
def endpoint():
    with serving() as url:
        yield url


def control(endpoint, command):
    request = urllib.request.Request(f"{endpoint}/-/{command}", method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["requests"]


def read_rate(store):
    return retry.request_rate(place_of(store.url, store.identity.endpoint), "read")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("scheme", ["s3", "http"])
@pytest.mark.parametrize("remote", ["fsspec", "obstore"])
def test_each_refusal_is_counted(endpoint, remote, scheme, status, setting):
    setting({"zarrdask.remote": remote})
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    bucket = retry.retrying(resolve(f"s3://{remote}-{scheme}", options))
    bucket.set("key", b"value")
    store = bucket if scheme == "s3" else retry.retrying(resolve(f"{endpoint}/{remote}-http", {}))
    rate = read_rate(store)
    control(endpoint, f"set?faults={status},{status},0")
    assert bytes(store.get("key")) == b"value"
    assert (control(endpoint, "stats")["GET"], rate.refused) == (3, 2)


@pytest.fixture
def configure(monkeypatch, tmp_path):
    """Return a function that names the server for S3 in one of three places.

    It returns the options that are needed beside.
    """
    for name in tuple(os.environ):
        if name.startswith(("AWS_", "FSSPEC_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    keys = {"key": "k", "secret": "s"}

    def configure(where, endpoint):
        aws.session_of.cache_clear()
        if where == "options":
            return {**keys, "endpoint_url": endpoint}
        if where == "environment":
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        else:
            text = f"[default]\nregion = us-east-1\nendpoint_url = {endpoint}\n"
            (tmp_path / "config").write_text(text)
        # fsspec has one file system for equal options.
        return {**keys, "client_kwargs": {"region_name": "us-east-1"}, "skip_instance_cache": True}

    yield configure
    aws.session_of.cache_clear()


@pytest.mark.parametrize("where", ["options", "environment", "profile"])
@pytest.mark.parametrize("remote", ["fsspec", "obstore"])
def test_buckets_of_one_name_on_two_servers_have_rates_of_their_own(
    endpoint, remote, where, setting, configure
):
    setting({"zarrdask.remote": remote})
    stores = []
    with serving() as other:
        for each in (endpoint, other):
            store = retry.retrying(resolve("s3://same", configure(where, each)))
            store.set("key", each.encode())  # from here on, the server is known
            stores.append(store)
        assert [bytes(store.get("key")).decode() for store in stores] == [endpoint, other]
        control(endpoint, "set?faults=503")
        assert bytes(stores[0].get("key")).decode() == endpoint
        assert [read_rate(store).refused for store in stores] == [1, 0]
        assert read_rate(stores[0]).place == f"s3://same at {endpoint}"
