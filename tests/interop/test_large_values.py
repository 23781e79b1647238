"""Large chunks are read in ranges of one version, by every package, from S3 and by HTTP."""

import json
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest

import zarrdask
from benchmarks.object_server import serving
from zarrdask.storage.resolve import resolve


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving() as url:
        yield url


def requests(endpoint: str) -> int:
    """Return the number of requests since the last call."""
    with urllib.request.urlopen(f"{endpoint}/-/stats") as answer:
        count = sum(json.load(answer)["requests"].values())
    urllib.request.urlopen(f"{endpoint}/-/set").close()
    return count


@pytest.mark.parametrize("remote", ["fsspec", "auto"])
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_large_chunks_are_read_in_ranges(endpoint, remote, scheme, setting):
    setting({"zarrdask.remote": remote, "zarrdask.range-size": 1000})
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    bucket = resolve(f"s3://{remote}-{scheme}", options)
    values = np.arange(2200, dtype="i4").reshape(2, 1100)
    zarrdask.to_zarr(values, bucket, "a", chunks=(1, 1100), compressors=[])
    if scheme == "http":
        place, options = f"{endpoint}/{remote}-{scheme}", {}
    else:
        place = bucket.url
    z = zarrdask.open_array(place, "a", storage_options=options)
    requests(endpoint)
    np.testing.assert_array_equal(z[...], values)
    assert requests(endpoint) == 2 * 5
    store = resolve(place, options)
    for key, value in {"k": b"0123456", "empty": b""}.items():
        bucket.set(key, value)
    first = store.get_part("k", 0, 4)
    assert (bytes(first.value), first.size) == (b"0123", 7)
    last = store.get_part("k", 4, 4, first.tag)
    assert (bytes(last.value), last.tag) == (b"456", first.tag)
    assert bytes(store.get_part("k", -2, 2, first.tag).value) == b"56"
    bucket.set("k", b"6543210")
    assert store.get_part("k", 4, 4, first.tag) is None
    assert store.get_part("none", 0, 4) is None
    assert bytes(store.get_part("empty", 0, 4).value) == b""
