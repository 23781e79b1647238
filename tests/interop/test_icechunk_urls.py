"""Repositories of icechunk by URL: branches, tags and snapshots, on disks and in S3."""

import icechunk
import numpy as np
import pytest

import zarrdask
from tests.interop.s3 import serving
from zarrdask.errors import (
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    UnsupportedError,
)


@pytest.fixture(scope="module")
def service():
    with serving() as service:
        yield service


def versions(storage):
    """Commit two versions of an array; return the snapshot of the first, whose tag is v1."""
    repository = icechunk.Repository.create(storage)
    for number in (1, 2):
        session = repository.writable_session("main")
        z = zarrdask.create_array(session.store, "g/a", shape=4, dtype="i4", overwrite=True)
        z[...] = number
        snapshot = session.commit(str(number))
        if number == 1:
            repository.create_tag("v1", snapshot_id=snapshot)
            first = snapshot
    return first


def test_each_version_of_a_repository_is_opened(tmp_path):
    place = tmp_path / "repository"
    first = versions(icechunk.local_filesystem_storage(str(place)))
    for version, expected in (
        ("icechunk", 2),
        ("icechunk://", 2),
        ("icechunk://branch.main", 2),
        ("icechunk://tag.v1", 1),
        (f"icechunk://{first}", 1),
    ):
        for url in (f"{version}::{place}", f"{version}::file://{place}"):
            np.testing.assert_array_equal(zarrdask.from_zarr(url, "g/a"), np.full(4, expected))
    url = f"icechunk::{place}"
    with pytest.raises(ReadOnlyError):
        zarrdask.open_array(url, "g/a", mode="r+")[...] = 1
    with pytest.raises(StoreError, match="can't open this repository"):
        zarrdask.open(f"icechunk://tag.v2::{place}")
    with pytest.raises(StoreError, match="can't open this repository"):
        zarrdask.open(f"icechunk::{tmp_path}/none")
    with pytest.raises(NodeNotFoundError, match=f"pass icechunk::{place}"):
        zarrdask.open(place)


def test_a_repository_in_a_bucket_is_opened(service):
    url, options, *_ = service.new_bucket()
    storage = icechunk.s3_storage(
        bucket=url.removeprefix("s3://"),
        prefix="repository",
        region="us-east-1",
        endpoint_url=options["endpoint_url"],
        access_key_id=options["key"],
        secret_access_key=options["secret"],
        force_path_style=True,
        allow_http=True,
    )
    versions(storage)
    options = {**options, "client_kwargs": {"region_name": "us-east-1"}}
    z = zarrdask.open_array(f"icechunk://tag.v1::{url}/repository", "g/a", storage_options=options)
    np.testing.assert_array_equal(z[...], np.full(4, 1))


def test_urls_that_name_no_repository_raise_errors():
    for url in ("icechunk://tag.v1", "icechunk::"):
        with pytest.raises(StoreError, match="does not name a repository"):
            zarrdask.open(url)
    with pytest.raises(MetadataError, match="'branch' or 'tag'"):
        zarrdask.open("icechunk://tga.v1::/none")
    with pytest.raises(UnsupportedError, match="the option 'acl'"):
        zarrdask.open("icechunk::s3://bucket/x", storage_options={"acl": 1})
    with pytest.raises(UnsupportedError, match="anon"):
        zarrdask.open("icechunk::/none", storage_options={"anon": True})
    with pytest.raises(UnsupportedError, match="s3, gs and http"):
        zarrdask.open("icechunk::ftp://host/x")
