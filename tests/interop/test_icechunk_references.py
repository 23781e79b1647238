"""Copies by reference: the chunks in a session of icechunk are the objects of another store."""

import os

import dask
import icechunk
import numpy as np
import pytest

import zarrdask
from tests.interop.s3 import LAYOUTS, VALUES, serving
from zarrdask.errors import StoreError, UnsupportedError, ZarrdaskError


def _repository(prefix, store, credentials):
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
    storage = icechunk.in_memory_storage()
    access = icechunk.containers_credentials({prefix: credentials})
    return icechunk.Repository.create(storage, config, authorize_virtual_chunk_access=access)


@pytest.fixture
def local(tmp_path):
    """A repository that may refer to a directory, and that directory."""
    (folder := tmp_path / "archive").mkdir()
    store = icechunk.local_filesystem_store(str(folder))
    access = icechunk.credentials.LocalFileSystemAccess
    return _repository(f"file://{folder}/", store, access), folder


@pytest.fixture(scope="module")
def service():
    with serving() as service:
        yield service


@pytest.fixture
def remote(service):
    """A repository that may refer to a bucket, and that bucket."""
    bucket = service.new_bucket()
    store = icechunk.s3_store(
        region="us-east-1",
        endpoint_url=service.endpoint,
        allow_http=True,
        s3_compatible=True,
        force_path_style=True,
    )
    access = icechunk.s3_credentials(access_key_id="testing", secret_access_key="testing")
    return _repository(f"{bucket.url}/", store, access), bucket


def _committed(repository, session):
    session.commit("references")
    return repository.readonly_session("main").store


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chunks_in_a_directory_are_referenced(local, layout):
    repository, folder = local
    group = zarrdask.create_group(folder, zarr_format=LAYOUTS[layout].get("zarr_format", 3))
    layout = {"shape": (13, 20), "dtype": "f4", **LAYOUTS[layout]}
    array = group.create_array("a b/x", attributes={"units": "K"}, **layout)
    array[6:] = VALUES[6:]  # some chunks are missing
    session = repository.writable_session("main")
    report = zarrdask.copy(folder, session, "copied", by="reference")
    [copied] = report.arrays
    assert (copied.method, copied.objects) == ("referenced", array.stored_map().sum())
    stored = zarrdask.open_array(_committed(repository, session), "copied/a b/x")
    np.testing.assert_array_equal(stored[...], array[...])
    assert (stored.attrs["units"], stored.zarr_format) == ("K", 3)


@pytest.mark.parametrize("package", ["obstore", "fsspec"])
def test_chunks_in_a_bucket_are_listed_and_not_read(remote, package):
    repository, bucket = remote
    url = f"{bucket.url}/field"
    zarrdask.to_zarr(VALUES, url, chunks=(5, 8), storage_options=bucket.options)
    session = repository.writable_session("main")
    bucket.log.taken()
    with dask.config.set({"zarrdask.remote": package}):
        zarrdask.copy(url, session.store, by="reference", source_options=bucket.options)
    requests = bucket.log.taken()
    assert not [each for each in requests if "/c/" in each.path]
    stored = zarrdask.open_array(_committed(repository, session))
    np.testing.assert_array_equal(stored[...], VALUES)


@pytest.mark.parametrize("package", ["obstore", "fsspec"])
def test_an_object_that_changed_in_the_same_second_is_an_error(remote, package):
    repository, bucket = remote
    url = f"{bucket.url}/field"
    session = repository.writable_session("main")
    with dask.config.set({"zarrdask.remote": package}):
        place = {"chunks": (13, 20), "compressors": (), "storage_options": bucket.options}
        zarrdask.to_zarr(VALUES, url, **place)
        zarrdask.copy(url, session, by="reference", source_options=bucket.options)
        zarrdask.to_zarr(VALUES + 1, url, overwrite=True, **place)
    with pytest.raises(StoreError, match="changed"):
        zarrdask.open_array(session)[...]


def test_a_file_that_changed_later_is_an_error(local):
    repository, folder = local
    zarrdask.to_zarr(VALUES, folder / "x", chunks=(13, 20))
    session = repository.writable_session("main")
    zarrdask.copy(folder / "x", session, by="reference")
    chunk = folder / "x/c/0/0"
    changed = chunk.stat().st_mtime + 2
    os.utime(chunk, (changed, changed))
    with pytest.raises(StoreError, match="changed"):
        zarrdask.open_array(session)[...]


def test_what_can_not_be_referenced_is_refused_before_anything_is_changed(local, tmp_path):
    repository, folder = local
    session = repository.writable_session("main")
    zarrdask.to_zarr(VALUES, folder / "x", chunks=(5, 8))
    elsewhere = tmp_path / "elsewhere"
    for source in (elsewhere, tmp_path / "x.zip", memory := {}):
        zarrdask.copy(folder / "x", source)
    refused = [
        (elsewhere, session, {}, StoreError, "virtual chunk container"),
        (tmp_path / "x.zip", session, {}, UnsupportedError, "not files or objects"),
        (memory, session, {}, UnsupportedError, "not files or objects"),
        (folder / "x", session, {"chunks": (4, 4)}, UnsupportedError, "differ"),
        (folder / "x", session, {"dtype": "f8"}, UnsupportedError, "differ"),
        (folder / "x", tmp_path / "new", {}, UnsupportedError, "session of icechunk"),
        (folder / "x", session, {"by": "name"}, ZarrdaskError, "'reference'"),
    ]
    for source, target, options, error, text in refused:
        with pytest.raises(error, match=text):
            zarrdask.copy(source, target, **{"by": "reference", **options})
    assert not session.has_uncommitted_changes
    assert not (tmp_path / "new").exists()


def test_the_chunks_of_members_are_referenced(local):
    repository, folder = local
    for number in range(3):
        z = zarrdask.create_array(
            folder / f"{number}.zarr", shape=(4, 6), dtype="f4", chunks=(2, 6)
        )
        z[2:] = number + 1  # a chunk of each is missing
    array = zarrdask.concat(f"{folder}/*.zarr")
    session = repository.writable_session("main")
    [copied] = zarrdask.copy(array, session, "joined", by="reference").arrays
    assert (copied.method, copied.objects) == ("referenced", 3)
    stored = zarrdask.open_array(_committed(repository, session), "joined")
    np.testing.assert_array_equal(stored[...], array[...])


def test_chunks_of_members_that_are_cut_are_not_referenced(local):
    repository, folder = local
    z = zarrdask.create_array(folder / "a.zarr", shape=(5, 6), dtype="f4", chunks=(2, 6))
    z[...] = 1
    session = repository.writable_session("main")
    with pytest.raises(UnsupportedError, match="can't be referenced"):
        zarrdask.copy(zarrdask.concat([z, z]), session, "joined", by="reference")
