"""Large chunks are read in ranges of one version, by every package, from S3 and by HTTP."""

import json
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest

import zarrdask
from benchmarks.object_server import serving
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES
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


@pytest.mark.parametrize("remote", ["fsspec", "auto"])
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_parts_of_large_chunks_are_read_in_ranges(endpoint, remote, scheme, setting):
    setting({"zarrdask.remote": remote})
    options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    bucket = resolve(f"s3://parts-{remote}-{scheme}", options)
    values = np.random.default_rng(0).standard_normal((2, 768, 1024), dtype="f4")
    blosc = {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "blocksize": 2**17}
    blosc = {"name": "blosc", "configuration": blosc | {"typesize": 4}}
    for name, compressors in (("raw", []), ("blosc", [blosc])):
        INDEXES.clear()
        zarrdask.to_zarr(
            values, bucket, name, chunks=(1, 768, 1024), compressors=compressors, mode="w"
        )
        url, its = bucket.url, options
        if scheme == "http":
            url, its = f"{endpoint}/parts-{remote}-{scheme}", {}
        z = zarrdask.open_array(url, name, storage_options=its)
        heads = 2 if name == "blosc" else 0
        for row, sent in ((700, 2 + heads), (400, 2)):
            plan = zarrdask.plan_read(z, np.s_[:, row, 5:9])
            requests(endpoint)
            with zarrdask.measured() as m:
                np.testing.assert_array_equal(z[:, row, 5:9], values[:, row, 5:9])
            assert requests(endpoint) == plan.requests == sent
            assert plan.fetched == m.bytes_fetched < values.nbytes / 5
        zarrdask.open_array(bucket, name, mode="r+")[...] = -values
        np.testing.assert_array_equal(z[:, 400, 5:9], -values[:, 400, 5:9])
