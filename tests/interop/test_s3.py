"""zarrdask on S3, by obstore and by s3fs: moto's server on loopback."""

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import zarrdask
from tests.covering import covering
from tests.interop.s3 import KEYS, LAYOUTS, VALUES, Bucket, Request, Service, serving
from tests.test_examples import check_example
from zarrdask.storage.resolve import resolve


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


#: The values of `bucket`: which package opens its URLs.
PACKAGES = ["auto", "fsspec"]


@pytest.fixture(params=PACKAGES)
def bucket(service: Service, request: pytest.FixtureRequest, setting: Any) -> Bucket:
    """A bucket whose URLs are opened by obstore, which is installed, or by fsspec."""
    setting({"zarrdask.remote": request.param})
    return service.new_bucket()


def write(bucket: Bucket, component: str, values: np.ndarray = VALUES, **options: Any) -> Any:
    z = zarrdask.create_array(
        bucket.url,
        component,
        shape=values.shape,
        dtype=values.dtype,
        storage_options=bucket.options,
        **options,
    )
    z[...] = values
    return z


def check(bucket: Bucket, component: str, values: np.ndarray = VALUES) -> None:
    """Read with zarrdask in both its ways."""
    options = {"storage_options": bucket.options}
    z = zarrdask.open_array(bucket.url, component, **options)
    np.testing.assert_array_equal(z[...], values)
    x = zarrdask.from_zarr(bucket.url, component, chunks="stored", **options)
    np.testing.assert_array_equal(x.compute(scheduler="threads"), values)
    at_its_own_url = zarrdask.from_zarr(f"{bucket.url}/{component}", **options)
    np.testing.assert_array_equal(at_its_own_url.compute(scheduler="sync"), values)


def test_a_range_behind_the_end_of_a_value_is_empty(bucket):
    store = resolve(bucket.url, bucket.options)
    store.set("k", b"0123")
    store.set("empty", b"")
    parts = [store.get_range(*each) for each in (("k", 4, 2), ("k", 9), ("k", 3, 5), ("empty", -1))]
    assert parts == [b"", b"", b"3", b""]
    assert store.get_range("missing", 4, 2) is None


@covering(strength=1, bucket=PACKAGES, layout=LAYOUTS, indirect=["bucket"])
class TestArrays:
    def test_eager_writes(self, bucket, layout):
        write(bucket, "a/x y", **layout)
        check(bucket, "a/x y")

    def test_dask_writes(self, bucket, layout):
        x = da.from_array(VALUES, chunks=(7, 6))
        options = {"storage_options": bucket.options, **layout}
        zarrdask.to_zarr(x, bucket.url, "a/x", **options)
        check(bucket, "a/x")

    def test_a_region_is_written(self, bucket, layout):
        write(bucket, "x", **layout)
        options = {"storage_options": bucket.options, "region": np.s_[3:7, 5:14]}
        zarrdask.to_zarr(da.full((4, 9), -1, "f4", chunks=-1), bucket.url, "x", **options)
        expected = VALUES.copy()
        expected[3:7, 5:14] = -1
        check(bucket, "x", expected)

    def test_growing_and_shrinking(self, bucket, layout):
        z = write(bucket, "x", **layout)
        z.append(VALUES)
        z.resize((26, 7))
        z.resize((26, 20))
        expected = np.where(np.arange(20) < 7, np.concatenate([VALUES, VALUES]), 0)
        check(bucket, "x", expected.astype("f4"))

    def test_zarr_python_reads(self, bucket, layout):
        write(bucket, "x", **layout)
        store = zarr.storage.FsspecStore.from_url(f"{bucket.url}/x", bucket.options)
        np.testing.assert_array_equal(zarr.open_array(store, mode="r")[...], VALUES)

    def test_return_stored(self, bucket, layout):
        x = da.from_array(VALUES, chunks=(7, 6))
        options = {"storage_options": bucket.options, "return_stored": True, **layout}
        stored = zarrdask.to_zarr(x, bucket.url, "x", **options)
        assert float(stored.sum().compute()) == VALUES.sum()

    def test_nothing_but_metadata_before_it_is_computed(self, bucket, layout):
        x = da.from_array(VALUES, chunks=(7, 6))
        options = {"storage_options": bucket.options, "compute": False, **layout}
        done = zarrdask.to_zarr(x, bucket.url, "x", **options)
        names = {key.rpartition("/")[2] for key in bucket.names()}
        assert names <= {"zarr.json", ".zarray", ".zgroup", ".zattrs"}
        done.compute()
        check(bucket, "x")


class TestHierarchies:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_listing(self, bucket, zarr_format):
        options = {"storage_options": bucket.options}
        root = zarrdask.create_group(bucket.url, zarr_format=zarr_format, **options)
        root.attrs["n"] = 1
        root.create_array("sub/x", shape=(6,), dtype="i4", chunks=(2,))[2:4] = 7
        root.create_group("empty")
        found = zarrdask.open_group(bucket.url, **options)
        assert dict(found.attrs) == {"n": 1}
        assert [path for path, _ in found.walk()] == ["empty", "sub", "sub/x"]
        assert found["sub/x"].nchunks_stored() == 1

    def test_what_others_add_is_seen(self, bucket):
        options = {"storage_options": bucket.options}
        root = zarrdask.create_group(bucket.url, **options)
        assert list(root) == []
        name = bucket.url.removeprefix("s3://")
        document = b'{"zarr_format": 3, "node_type": "group"}'
        bucket.client.put_object(Bucket=name, Key="late/zarr.json", Body=document)
        assert list(root) == ["late"]
        assert root["late"].zarr_format == 3

    def test_deleting(self, bucket):
        root = zarrdask.create_group(bucket.url, storage_options=bucket.options)
        for name in ("keep", "drop/x", "drop*", "dropped"):
            write(bucket, name, chunks=(5, 8))
        del root["drop"]
        assert list(root) == ["drop*", "dropped", "keep"]
        del root["drop*"]
        assert list(root) == ["dropped", "keep"]
        assert {key.partition("/")[0] for key in bucket.names()} == {"zarr.json", "dropped", "keep"}
        check(bucket, "dropped")
        check(bucket, "keep")

    def test_overwriting_leaves_nothing_of_the_old(self, bucket):
        write(bucket, "x", chunks=(1, 20))
        options = {"storage_options": bucket.options}
        with pytest.raises(zarrdask.errors.NodeExistsError):
            zarrdask.create_array(bucket.url, "x", shape=(1,), dtype="i4", **options)
        zarrdask.to_zarr(da.zeros((2, 2), chunks=2), bucket.url, "x", overwrite=True, **options)
        assert [key for key in bucket.names() if key.startswith("x/")] == ["x/zarr.json"]
        check(bucket, "x", np.zeros((2, 2)))


def test_a_zip_file_on_s3(bucket, tmp_path):
    z = zarrdask.create_array(tmp_path / "x", shape=(13, 20), dtype="f4", chunks=(5, 8))
    z[...] = VALUES
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for file in (tmp_path / "x").rglob("*"):
            archive.write(file, file.relative_to(tmp_path))
    name = bucket.url.removeprefix("s3://")
    bucket.client.upload_file(tmp_path / "x.zip", name, "x.zip")
    url, options = f"zip://x::{bucket.url}/x.zip", {"s3": bucket.options}
    np.testing.assert_array_equal(zarrdask.open(url, storage_options=options)[...], VALUES)
    x = zarrdask.from_zarr(url, storage_options=options, chunks="stored")
    np.testing.assert_array_equal(x.compute(scheduler="threads"), VALUES)


class TestErrors:
    VERBS = (zarrdask.open, zarrdask.open_array, zarrdask.open_group, zarrdask.from_zarr)

    @pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
    def test_a_missing_key(self, bucket, verb):
        with pytest.raises(zarrdask.errors.NodeNotFoundError, match="nowhere"):
            verb(bucket.url, "nowhere", storage_options=bucket.options)

    @pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
    def test_a_missing_bucket(self, bucket, verb):
        with pytest.raises(zarrdask.errors.StoreError, match="no bucket 'no-bucket'"):
            verb("s3://no-bucket/x", storage_options=bucket.options)

    def test_an_unknown_option(self, bucket):
        options = bucket.options | {"anonn": True}
        with pytest.raises(zarrdask.errors.StoreError, match=r"storage_options.* 'anon'.*'anonn'"):
            zarrdask.open(bucket.url, storage_options=options)

    def test_a_copy_between_buckets(self, bucket):
        write(bucket, "x", chunks=(2, 4))
        place = f"{bucket.url}/x", f"{bucket.url}/copy"
        zarrdask.copy(*place, storage_options=bucket.options)
        assert zarrdask.compare(*place, storage_options=bucket.options).ok

    def test_writing_to_a_missing_bucket(self, bucket):
        options = {"shape": (1,), "dtype": "i4", "storage_options": bucket.options}
        with pytest.raises(zarrdask.errors.StoreError):
            zarrdask.create_array("s3://no-bucket/x", **options)
        with pytest.raises(zarrdask.errors.StoreError):
            zarrdask.to_zarr(da.zeros(3), "s3://no-bucket/x", storage_options=bucket.options)

    def test_no_service(self, bucket):
        options = {**KEYS, "endpoint_url": "http://127.0.0.1:1"}
        with pytest.raises(zarrdask.errors.StoreError, match=r"127\.0\.0\.1:1|onnect"):
            zarrdask.open(bucket.url, storage_options=options)

    def test_a_damaged_shard(self, bucket):
        write(bucket, "x", chunks=(2, 4), shards=(6, 8))
        name = bucket.url.removeprefix("s3://")
        bucket.client.put_object(Bucket=name, Key="x/c/0/0", Body=b"too short")
        z = zarrdask.open_array(bucket.url, "x", storage_options=bucket.options)
        for part in (np.s_[...], np.s_[0, 0]):
            with pytest.raises(zarrdask.ZarrdaskError, match="x/c/0/0"):
                z[part]


class TestRequests:
    """Chunks of 64 KiB, uncompressed, so that what is read shows in bytes."""

    SIZE = 2**16
    INDEX = 16 * 16 + 4
    VALUES = np.arange(1024 * 512, dtype="f4").reshape(1024, 512)

    def asked(self, bucket: Bucket, act: Callable[[], Any], expected: np.ndarray) -> list[Request]:
        bucket.log.taken()
        np.testing.assert_array_equal(act(), expected)
        return bucket.log.taken()

    @pytest.mark.parametrize(
        ("part", "shards", "chunks"),
        [
            (np.s_[3, 5], 1, 1),
            (np.s_[130:140, 130:140], 1, 1),
            (np.s_[200, 10:500], 1, 4),
            (np.s_[:, 0], 2, 8),
            (np.s_[500:520], 2, 8),
            (np.s_[::512, ::511], 2, 4),
        ],
    )
    def test_of_shards_the_index_and_the_chunks_that_a_slice_meets(
        self, bucket, part, shards, chunks
    ):
        options = {"chunks": (128, 128), "shards": (512, 512), "compressors": []}
        z = write(bucket, "x", self.VALUES, **options)
        x = zarrdask.from_zarr(z)[part]
        compute = partial(x.compute, scheduler="sync")
        # The indexes are kept for the second read.
        for act, index in ((lambda: z[part], self.INDEX), (compute, 0)):
            asked = self.asked(bucket, act, self.VALUES[part])
            assert len({r.path for r in asked}) == shards
            assert all(r.method == "GET" and r.range for r in asked)
            assert sum(r.sent for r in asked) == shards * index + chunks * self.SIZE

    def test_neighbours_in_a_shard_are_one_request(self, bucket):
        options = {"chunks": (128, 128), "shards": (512, 512), "compressors": []}
        z = write(bucket, "x", self.VALUES, **options)
        asked = self.asked(bucket, lambda: z[200], self.VALUES[200])
        assert [r.sent for r in asked] == [self.INDEX, 4 * self.SIZE]

    def test_chunks_that_a_slice_meets_and_no_listing(self, bucket):
        z = write(bucket, "x", self.VALUES, chunks=(128, 128), compressors=[])
        x = zarrdask.from_zarr(z)
        for act in (lambda: z[300:310, 100:200], x[300:310, 100:200].compute):
            asked = self.asked(bucket, act, self.VALUES[300:310, 100:200])
            assert sorted((r.method, r.path.partition("/x/")[2], r.sent) for r in asked) == [
                ("GET", "c/2/0", self.SIZE),
                ("GET", "c/2/1", self.SIZE),
            ]
        two = (x[0, 0], x[-1, -1])
        asked = self.asked(
            bucket,
            lambda: dask.compute(*two, scheduler="sync"),
            (self.VALUES[0, 0], self.VALUES[-1, -1]),
        )
        assert sorted(r.path.partition("/x/")[2] for r in asked) == ["c/0/0", "c/7/3"]

    def test_opening_asks_for_documents_only(self, bucket):
        write(bucket, "x", chunks=(5, 8))
        bucket.log.taken()
        zarrdask.from_zarr(bucket.url, "x", storage_options=bucket.options)
        asked = [(r.method, r.path.rpartition("/")[2]) for r in bucket.log.taken()]
        assert ("GET", "zarr.json") in asked
        documents = {("GET", name) for name in ("zarr.json", ".zarray", ".zgroup", ".zattrs")}
        assert set(asked) <= documents
        assert len(asked) <= len(documents)

    def test_only_one_layer_repeats_requests(self, bucket):
        z = write(bucket, "x", VALUES, chunks=(5, 8))
        bucket.log.status = "503 Slow Down"
        settings = {"zarrdask.retries": 2, "zarrdask.retry-delay": 0.01}
        acts = (lambda: z[0, 0], lambda: z.__setitem__(np.s_[:5, :8], 1))
        for act, method in zip(acts, ("GET", "PUT"), strict=True):
            bucket.log.taken()
            with dask.config.set(settings), pytest.raises(zarrdask.errors.StoreError):
                act()
            assert [r.method for r in bucket.log.taken()] == [method] * 3
        bucket.log.status = None
        check(bucket, "x")

    def test_whole_chunks_are_written_without_being_read(self, bucket):
        z = write(bucket, "x", self.VALUES[:256], chunks=(128, 128))
        bucket.log.taken()
        z[...] = self.VALUES[:256] + 1
        asked = bucket.log.taken()
        assert sorted(r.method for r in asked) == ["PUT"] * 8


def test_a_node_is_created_where_there_is_none_by_a_condition(bucket, monkeypatch):
    store = resolve(bucket.url, bucket.options)
    assert store.capabilities.create_exclusive
    assert [store.create("k", b"first"), store.create("k", b"second")] == [True, False]
    assert store.get("k") == b"first"
    monkeypatch.setattr(
        "zarrdask.arrays.hierarchy.find.node_exists", lambda *_: False
    )  # both looked before
    write(bucket, "a", VALUES)
    with pytest.raises(zarrdask.errors.NodeExistsError):
        write(bucket, "a", VALUES[:1])
    check(bucket, "a")


@pytest.mark.parametrize(
    ("bucket", "layout", "memory"),
    [("fsspec", "v3", 900), ("auto", "v3-shards", "1 MiB")],
    indirect=["bucket"],
)
def test_arrays_are_rechunked(bucket, layout, memory):
    write(bucket, "a", **LAYOUTS[layout])
    source, target = f"{bucket.url}/a", f"{bucket.url}/b"
    given = {"source_options": bucket.options, "target_options": bucket.options}
    given |= {"chunks": (13, 2), "shards": False, "max_mem": memory, "scheduler": "threads"}
    for way in zarrdask.rechunk(source, target, **given).schemes:
        plan = zarrdask.rechunk(source, target, overwrite=True, **given)
        replace(plan, schemes=(way,)).execute("threads", progress=False)
        check(bucket, "b")
    assert not [name for name in bucket.names() if "rewrite" in name]


def test_the_example_of_the_gallery_prints_what_the_page_shows(tmp_path, capsys):
    check_example("s3", tmp_path, capsys)


def test_the_error_for_a_bucket_lists_its_stores(bucket: Bucket) -> None:
    for name in ("a.zarr", "b"):
        zarrdask.create_group(f"{bucket.url}/{name}", storage_options=bucket.options)
    with pytest.raises(zarrdask.errors.NodeNotFoundError, match=r"pass one of 'a\.zarr', 'b'"):
        zarrdask.open(bucket.url, storage_options=bucket.options)
