"""Members in object stores that were changed after the list of them was saved."""

import pickle
import shutil
from dataclasses import replace

import pytest

import zarrdask
from tests.storage.bucket import tag_of
from tests.storage.latency import VersionedStore
from zarrdask import register
from zarrdask.arrays.chunks.members import stale_members
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Version
from zarrdask.storage.identity import Identity
from zarrdask.storage.local.local_store import LocalStore

#: Stores that were opened stay open: each test has a bucket of its own.
BUCKET = "far://{}"


class Bucket(VersionedStore):
    """A bucket whose ETags are digests of values, as those of S3 are; it is in a directory."""

    def __init__(self, root, url):
        path = url.removeprefix(BUCKET.format(root.name))
        super().__init__(LocalStore(f"{root}{path}"), seconds=0)
        self.root, self._url = root, url

    @property
    def url(self):
        return self._url

    @property
    def identity(self):
        return Identity.at(self.url, self.url)

    @property
    def capabilities(self):
        has = super().capabilities
        return replace(has, shared=True, stamps=False, directories=False, lists_parts=False)

    def __reduce__(self):
        return Bucket, (self.root, self.url)

    def request(self, name, keys, call):
        REQUESTS.append(name)
        return super().request(name, keys, call)

    def get_if_changed(self, key, tag, start=0, length=None):
        value = self.request("get_if_changed", [key], lambda: self.inner.get(key))
        found = tag_of(value)
        return Version(None if tag == found else value, len(value or b""), found)


REQUESTS = []
CHANGED = r"day-1\.zarr: this array was changed.*refresh\(\)"


@pytest.fixture
def bucket(own_registries, tmp_path):
    register.store("far", lambda url, options: Bucket(tmp_path, url))
    stale_members._CHECKED.clear()
    REQUESTS.clear()
    return Bucket(tmp_path, BUCKET.format(tmp_path.name))


def store_days(bucket, numbers=range(3), *, grouped=False, zarr_format=3, **options):
    for day in numbers:
        if grouped:
            group = zarrdask.create_group(bucket, f"day-{day}.zarr", zarr_format=zarr_format)
            dims = {"dimension_names": ["time"]}
            z = group.create_array("t", shape=2, dtype="i4", **dims, **options)
        else:
            path = f"day-{day}.zarr"
            z = zarrdask.create_array(
                bucket, path, shape=2, dtype="i4", zarr_format=zarr_format, **options
            )
        z[...] = day
    return [f"{bucket.url}/day-{day}.zarr" for day in numbers]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_list_has_the_etags_that_came_with_the_documents(bucket, zarr_format):
    array = zarrdask.concat(store_days(bucket, zarr_format=zarr_format))
    REQUESTS.clear()
    array.save(f"{bucket.url}/list.json")
    assert REQUESTS == ["get_range", "set"]  # whether the file is one of these, and the file
    opened = zarrdask.open_array(f"{bucket.url}/list.json")
    assert opened[...].tolist() == [0, 0, 1, 1, 2, 2]
    assert all(member.stamp for member in opened.concatenation.present())


def test_a_changed_member_is_an_error_until_the_list_is_refreshed(bucket):
    zarrdask.concat(store_days(bucket)).save(f"{bucket.url}/list.json")
    store_days(bucket, [1], overwrite=True, fill_value=5)
    opened = zarrdask.open_array(f"{bucket.url}/list.json")
    assert opened[:2].tolist() == [0, 0]
    for read in (
        lambda: opened[...],
        lambda: opened.read_many([slice(1, 3)]),
        lambda: pickle.loads(pickle.dumps(opened))[...],
    ):
        with pytest.raises(StoreError, match=CHANGED):
            read()
    changes = opened.refresh()
    assert (changes.added, changes.changed) == ([], [f"{bucket.url}/day-1.zarr"])
    assert opened[...].tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.slow
def test_tasks_that_read_a_changed_member_fail(bucket):
    zarrdask.concat(store_days(bucket)).save(f"{bucket.url}/list.json")
    store_days(bucket, [1], overwrite=True, fill_value=5)
    opened = zarrdask.open_array(f"{bucket.url}/list.json")
    x = zarrdask.from_zarr(opened, chunks="stored")
    for read in (
        lambda: x.compute(scheduler="sync"),
        lambda: x[2:4].compute(scheduler="sync"),
        lambda: zarrdask.copy(opened, {}),
        lambda: zarrdask.rechunk(opened, {}, chunks=6).execute(progress=False),
    ):
        with pytest.raises(StoreError, match=CHANGED):
            read()


def test_a_removed_member_is_an_error(bucket):
    zarrdask.concat(store_days(bucket)).save(f"{bucket.url}/list.json")
    bucket.erase_prefix("day-1.zarr/")
    with pytest.raises(StoreError, match=r"day-1\.zarr: this array was removed"):
        zarrdask.open_array(f"{bucket.url}/list.json")[...]


@pytest.mark.parametrize(("zarr_format", "is_consolidated"), [(2, True), (3, True), (3, False)])
def test_arrays_of_groups_have_the_etag_of_the_document_that_was_read(
    bucket, zarr_format, is_consolidated
):
    urls = store_days(bucket, grouped=True, zarr_format=zarr_format)
    for url in urls if is_consolidated else ():
        zarrdask.consolidate_metadata(url)
    zarrdask.concat(urls, "time").save(f"{bucket.url}/list.json")
    opened = zarrdask.open(f"{bucket.url}/list.json")
    assert opened["t"][...].tolist() == [0, 0, 1, 1, 2, 2]
    names = {member.stamped_key for member in opened["t"].concatenation.present()}
    own = "t/zarr.json" if zarr_format == 3 else "t/.zarray"
    joint = "zarr.json" if zarr_format == 3 else ".zmetadata"
    assert names == {f"day-{n}.zarr/{joint if is_consolidated else own}" for n in range(3)}
    (name,) = (name for name in names if "day-1" in name)
    bucket.inner.set(name, bucket.inner.get(name) + b" ")
    stale_members._CHECKED.clear()
    with pytest.raises(StoreError, match=r"day-1\.zarr/t: this array was changed"):
        zarrdask.open(f"{bucket.url}/list.json")["t"][...]


def test_members_are_checked_together_and_not_again_by_the_next_read(bucket):
    zarrdask.concat(store_days(bucket, range(8))).save(f"{bucket.url}/list.json")
    opened = zarrdask.open_array(f"{bucket.url}/list.json")
    REQUESTS.clear()
    opened[...]
    assert REQUESTS.count("get_if_changed") == 8
    REQUESTS.clear()
    opened[...]
    assert "get_if_changed" not in REQUESTS


def test_an_array_that_is_not_saved_is_read_without_further_requests(bucket):
    array = zarrdask.concat(store_days(bucket))
    REQUESTS.clear()
    array[...]
    assert "get_if_changed" not in REQUESTS


@pytest.mark.parametrize("zarr_format", ["v3-draft", "v3-draft-protocol"])
@pytest.mark.parametrize("name", ["list.json", "list"])
def test_members_of_the_drafts_are_opened_from_a_list(tmp_path, zarr_format, name):
    for day in range(3):
        group = zarrdask.create_group(tmp_path / f"day-{day}.zarr", zarr_format=zarr_format)
        z = group.create_array("t", shape=2, dtype="i4", dimension_names=["time"])
        z[...] = day
    pattern = f"{tmp_path}/day-*.zarr"
    arrays = zarrdask.concat(pattern, component="t")
    groups = zarrdask.concat(pattern, "time")
    for joined in (arrays, groups):
        joined.save(tmp_path / name)
        opened = zarrdask.open(tmp_path / name)
        array = opened if joined is arrays else opened["t"]
        assert array[...].tolist() == [0, 0, 1, 1, 2, 2]
        assert opened.refresh() == ([], [], [])
        path = tmp_path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    arrays.save(tmp_path / name)
    tmp_path.rename(moved)
    again = zarrdask.open_array(moved / name)
    assert again[...].tolist() == [0, 0, 1, 1, 2, 2]
    shutil.rmtree(moved / "day-2.zarr")
    with pytest.raises(StoreError, match="was removed"):
        again[...]
    moved.rename(tmp_path)
