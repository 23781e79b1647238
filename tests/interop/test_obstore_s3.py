"""What obstore and s3fs store in S3 is the same, and what obstore requests: moto's server."""

from collections.abc import Iterator

import dask
import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

import zarrdask
from tests.interop.s3 import LAYOUTS, VALUES, Bucket, Service, serving
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.resolve import resolve
from zarrdask.testing import StoreContract


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


@pytest.fixture
def bucket(service: Service) -> Iterator[Bucket]:
    with dask.config.set({"zarrdask.remote": "auto"}):
        yield service.new_bucket()


@pytest.fixture
def store(bucket: Bucket) -> Store:
    store = resolve(bucket.url, bucket.options)
    assert store.identity.opened_by == "obstore"
    return store


def other(bucket: Bucket) -> FsspecStore:
    return FsspecStore.from_url(bucket.url, bucket.options)


@pytest.mark.parametrize("package", ["fsspec", "obstore"])
class TestUnchangedValues:
    def test_they_are_not_sent_again(self, bucket, package):
        with dask.config.set({"zarrdask.remote": package}):
            store = resolve(bucket.url, bucket.options)
        StoreContract().test_a_value_that_has_not_changed_is_not_sent_again(store)
        store.set("k", b"0123456")
        tag = store.get_if_changed("k", None).tag
        bucket.log.taken()
        assert store.get_if_changed("k", tag).is_unchanged
        assert store.get_if_changed("k", tag, 2, 3).is_unchanged
        assert [request.sent for request in bucket.log.taken()] == [0, 0]
        assert not store.get_if_changed("k", tag, 20, 3).value  # behind the end
        store.set("k", b"")
        assert store.get_if_changed("k", tag, 0, 3).value == b""

    def test_ranges_in_the_cache_directory_are_those_of_the_values(self, bucket, package, tmp_path):
        settings = {"zarrdask.remote": package, "zarrdask.cache-directory": str(tmp_path)}
        with dask.config.set(settings):
            store = resolve(bucket.url, bucket.options)
        StoreContract().test_a_range_is_part_of_the_value_and_ends_where_that_ends(store)

    def test_a_chunk_is_fetched_and_decoded_once(self, bucket, package):
        with dask.config.set({"zarrdask.remote": package, "zarrdask.cache-size": "1 MiB"}):
            options = {"storage_options": bucket.options}
            writer = zarrdask.create_array(
                bucket.url, "a", shape=(13, 20), dtype="f4", chunks=(5, 8), **options
            )
            writer[...] = VALUES
            z = zarrdask.open_array(bucket.url, "a", **options)
            z[0]
            bucket.log.taken()
            for row in range(1, 5):
                np.testing.assert_array_equal(z[row], VALUES[row])
            assert [request.sent for request in bucket.log.taken()] == [0] * 12
            writer[3, 9] = -1
            assert z[3, 9] == -1

    @pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
    def test_a_second_epoch_transfers_no_data(self, bucket, package, layout, tmp_path):
        options = {"storage_options": bucket.options}
        zarrdask.create_array(bucket.url, "a", shape=(13, 20), dtype="f4", **options, **layout)
        zarrdask.open_array(bucket.url, "a", mode="r+", **options)[...] = VALUES
        cached = {"zarrdask.remote": package, "zarrdask.cache-directory": str(tmp_path)}
        sent = []
        for _ in range(2):
            bucket.log.taken()
            with dask.config.set(cached):
                z = zarrdask.open_array(
                    bucket.url, "a", zarr_format=layout.get("zarr_format", 3), **options
                )
            np.testing.assert_array_equal(z[:7, 3], VALUES[:7, 3])
            np.testing.assert_array_equal(z[...], VALUES)
            requests = [
                each for each in bucket.log.taken() if "/c/" in each.path or "/0." in each.path
            ]
            sent.append((len(requests), sum(each.sent for each in requests)))
        assert sent[0][1] > 0
        assert sent[1][0] <= sent[0][0]
        assert sent[1][1] == 0
        with dask.config.set({**cached, "zarrdask.cache-offline": True}):
            z = zarrdask.open_array(
                bucket.url, "a", zarr_format=layout.get("zarr_format", 3), **options
            )
            np.testing.assert_array_equal(z[...], VALUES)
        assert not bucket.log.taken()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_what_is_written_is_read_by_either_package(bucket, layout):
    options = {"storage_options": bucket.options}
    x = da.from_array(VALUES, chunks=(7, 6))
    zarrdask.to_zarr(x, bucket.url, "a/x y", **options, **layout)
    np.testing.assert_array_equal(zarrdask.open(other(bucket), "a/x y")[...], VALUES)
    zarrdask.to_zarr(x + 1, other(bucket), "b", **layout)
    np.testing.assert_array_equal(zarrdask.open(bucket.url, "b", **options)[...], VALUES + 1)


def test_two_processes_of_a_cluster_write_and_read(bucket):
    options = {"storage_options": bucket.options}
    x = da.from_array(VALUES, chunks=(7, 6))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        zarrdask.to_zarr(x, bucket.url, "x", **options, **LAYOUTS["v3-shards"])
        stored = zarrdask.from_zarr(bucket.url, "x", chunks="stored", **options)
        pids = set(client.run(lambda: __import__("os").getpid()).values())
        np.testing.assert_array_equal(stored.compute(), VALUES)
        assert float((stored + 1).sum().compute()) == float((VALUES + 1).sum())
    assert len(pids) == 2
    np.testing.assert_array_equal(zarrdask.open(other(bucket), "x")[...], VALUES)


class TestRequests:
    def test_keys_are_listed_flat_and_erased_together(self, bucket, store):
        for number in range(20):
            store.set(f"a/c/{number}/0", b"1")
        store.set("ab", b"2")
        bucket.log.taken()
        assert len(list(store.list_prefix("a/"))) == 20
        assert [request.method for request in bucket.log.taken()] == ["GET"]
        store.erase_prefix("a/")
        assert [request.method for request in bucket.log.taken()] == ["GET", "POST"]
        assert bucket.names() == ["ab"]

    def test_ranges_are_one_request_each_and_neighbours_one(self, bucket, store):
        value = bytes(range(256)) * 1024
        store.set("k", value)
        bucket.log.taken()
        ranges = [(0, 4), (8, 4), (200_000, 4)]
        parts = [bytes(part) for part in store.get_ranges("k", ranges, Scratch())]
        assert parts == [value[start : start + size] for start, size in ranges]
        sent = sorted(request.sent for request in bucket.log.taken())
        assert sent == [4, 12]
        assert bytes(store.get_range("k", -4)) == value[-4:]
        assert [(r.method, r.sent) for r in bucket.log.taken()] == [("GET", 4)]


def test_what_is_missing_is_none(store):
    assert store.get("k") is None
    assert store.get_range("k", 3, 4) is None
    store.erase("k")
    store.erase_values(["k", "l"])
