"""A request that is refused is repeated by zarrdask alone, so that it knows of each refusal."""

import json
import urllib.request

import pytest

from benchmarks.object_server import serving
from zarrdask.storage import retry
from zarrdask.storage.rates import place_of
from zarrdask.storage.resolve import resolve


@pytest.fixture(scope="module")
def endpoint():
    with serving() as url:
        yield url


def control(endpoint, command):
    request = urllib.request.Request(f"{endpoint}/-/{command}", method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["requests"]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("scheme", ["s3", "http"])
@pytest.mark.parametrize("remote", ["fsspec", "obstore"])
def test_each_refusal_is_counted(endpoint, remote, scheme, status, setting):
    setting({"zarrdask.remote": remote})
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    bucket = retry.retrying(resolve(f"s3://{remote}-{scheme}", options))
    bucket.set("key", b"value")
    store = bucket if scheme == "s3" else retry.retrying(resolve(f"{endpoint}/{remote}-http", {}))
    rate = retry.request_rate(place_of(store.url), "read")
    control(endpoint, f"set?faults={status},{status},0")
    assert bytes(store.get("key")) == b"value"
    assert (control(endpoint, "stats")["GET"], rate.refused) == (3, 2)
