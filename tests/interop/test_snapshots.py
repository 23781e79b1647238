"""Snapshots of a bucket that keeps versions, and of one that does not: moto's server."""

from collections.abc import Iterator

import dask
import numpy as np
import pytest

import zarrdask
from tests.interop.s3 import Bucket, Service, serving
from zarrdask.errors import SnapshotError
from zarrdask.storage.snapshots.object_manifest import Manifest


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


@pytest.fixture(params=["fsspec", "auto"])
def bucket(service: Service, request: pytest.FixtureRequest) -> Iterator[Bucket]:
    with dask.config.set({"zarrdask.remote": request.param}):
        yield service.new_bucket()


def keep_versions(bucket: Bucket) -> None:
    bucket.client.put_bucket_versioning(
        Bucket=bucket.url.removeprefix("s3://"), VersioningConfiguration={"Status": "Enabled"}
    )


def make(bucket: Bucket, **options: object) -> zarrdask.Array:
    z = zarrdask.create_array(
        f"{bucket.url}/a", shape=16, chunks=2, dtype="i4", storage_options=bucket.options, **options
    )
    z[...] = np.arange(16)
    return z


@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}, {"shards": 8}])
def test_versions_are_read_while_others_write(bucket, options, tmp_path):
    keep_versions(bucket)
    z = make(bucket, **options)
    url, stored = f"{bucket.url}/a", {"storage_options": bucket.options}
    zarrdask.manifest(url, versions=True, **stored).save(tmp_path / "m.json")
    manifest = Manifest.load(tmp_path / "m.json")
    assert all(entry.version_id for entry in manifest.entries)
    x = zarrdask.from_zarr(url, snapshot=manifest, **stored)
    z[...] = -1
    z.resize(20)
    np.testing.assert_array_equal(x.compute(), np.arange(16))
    np.testing.assert_array_equal(x[3:5].compute(), [3, 4])
    again = zarrdask.open_array(url, snapshot=tmp_path / "m.json", **stored)
    np.testing.assert_array_equal(again[...], np.arange(16))
    zarrdask.create_array(url, shape=1, dtype="i1", overwrite=True, **stored)
    np.testing.assert_array_equal(again[5:9], np.arange(5, 9))
    with dask.config.set({"zarrdask.remote": "fsspec"}):
        once_more = zarrdask.open_array(url, snapshot=manifest, **stored)
    np.testing.assert_array_equal(once_more[1:3], [1, 2])


@pytest.mark.parametrize("options", [{}, {"shards": 8}])
def test_without_versions_a_changed_chunk_is_an_error(bucket, options):
    z = make(bucket, **options)
    url, stored = f"{bucket.url}/a", {"storage_options": bucket.options}
    manifest = zarrdask.manifest(url, versions=True, **stored)
    assert not any(entry.version_id for entry in manifest.entries)
    x = zarrdask.from_zarr(url, snapshot=manifest, **stored)
    np.testing.assert_array_equal(x.compute(), np.arange(16))
    z[0] = -1
    np.testing.assert_array_equal(x[-4:].compute(), np.arange(12, 16))
    with pytest.raises(SnapshotError, match="c/0"):
        x[:4].compute()


def test_a_manifest_reads_no_object_whose_etag_is_a_digest(bucket):
    make(bucket)
    bucket.log.taken()
    manifest = zarrdask.manifest(f"{bucket.url}/a", storage_options=bucket.options)
    assert all(entry.digest.startswith("md5:") for entry in manifest.entries)
    requests = bucket.log.taken()
    assert [request.method for request in requests] == ["GET"] * len(requests)
    assert len(requests) <= 3
