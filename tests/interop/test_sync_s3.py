"""`sync` between a disk and a bucket, and the manifests that are stored in both: moto's server."""

from collections.abc import Iterator

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.interop.s3 import Bucket, Service, serving
from zarrdask.arrays.hierarchy.claim import claimed
from zarrdask.errors import NodeExistsError


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


@pytest.fixture(params=["fsspec", "auto"])
def bucket(service: Service, request: pytest.FixtureRequest, setting) -> Bucket:
    setting({"zarrdask.remote": request.param, "zarrdask.manifests": True})
    return service.new_bucket()


def test_a_bucket_and_a_disk_have_manifests_of_the_same_digests(bucket, tmp_path):
    url, options = f"{bucket.url}/a", {"storage_options": bucket.options}
    z = zarrdask.create_array(tmp_path / "a", shape=16, chunks=2, dtype="i4", compressors=None)
    z[...] = np.arange(1, 17)
    assert len(zarrdask.sync(tmp_path / "a", url, manifest="both", **options).added) == 9
    assert zarrdask.verify(url, manifest=True, **options).ok
    assert zarrdask.verify(tmp_path / "a", manifest=True).ok
    z[3] = -1
    report = zarrdask.sync(tmp_path / "a", url, by="digests", manifest=True, **options)
    assert report.changed == ("c/1",)
    damaged = zarrdask.open_array(url, mode="r+", **options).store
    damaged.set("c/2", bytes(8))
    assert zarrdask.verify(url, manifest=True, **options).changed == ("c/2",)
    assert zarrdask.sync(tmp_path / "a", url, by="digests", **options).changed == ("c/2",)


def test_writers_keep_a_manifest_in_a_bucket(bucket):
    url, options = f"{bucket.url}/b", {"storage_options": bucket.options}
    zarrdask.to_zarr(da.arange(1, 9, chunks=2), url, **options)
    zarrdask.append(da.arange(1, 6, chunks=2), url, **options)
    assert zarrdask.verify(url, manifest=True, **options).ok
    assert zarrdask.sync(url, {}, by="digests", source_options=bucket.options).is_equal


def test_a_claim_of_another_writer_is_an_error(bucket, tmp_path):
    zarrdask.create_array(tmp_path / "c", shape=4, dtype="i4")[...] = 1
    url, options = f"{bucket.url}/c", {"storage_options": bucket.options}
    zarrdask.sync(tmp_path / "c", url, **options)
    zarrdask.open_array(tmp_path / "c", mode="r+")[...] = 2
    with (
        claimed(zarrdask.open_array(url, mode="r+", **options).node_path),
        pytest.raises(NodeExistsError, match="another writer"),
    ):
        zarrdask.sync(tmp_path / "c", url, **options)
    assert (zarrdask.open_array(url, **options)[...] == 1).all()
    zarrdask.sync(tmp_path / "c", url, **options)
    assert (zarrdask.open_array(url, **options)[...] == 2).all()


def test_a_manifest_in_a_bucket_has_what_another_writer_has_stored_meanwhile(bucket, setting):
    setting({"zarrdask.fuse-blocks": 0, "scheduler": "sync"})
    url, options = f"{bucket.url}/c", {"storage_options": bucket.options}

    def overtaken(block, block_id):
        if block_id == (0,):  # It comes last.
            array = zarrdask.open_array(url, mode="r+", **options)
            array[2:6] = array[2:6] + 1
            array.append([1, 2])
        return block

    x = da.arange(1, 7, chunks=2).map_blocks(overtaken, dtype="i8")
    zarrdask.to_zarr(x, url, **options)
    assert zarrdask.verify(url, manifest=True, **options).ok
    zarrdask.to_zarr(x, zarrdask.open_array(url, mode="r+", **options), region=np.s_[0:6])
    assert zarrdask.verify(url, manifest=True, **options).ok
    expected = [1, 2, 4, 5, 6, 7, 1, 2, 1, 2]
    assert zarrdask.open_array(url, **options)[...].tolist() == expected
