"""What is read in the place of chunks that are not stored, or that the server refuses to send."""

import pickle
from itertools import count

import dask
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.arrays.hierarchy.test_find import UnlistableBucket
from tests.covering import for_each
from tests.storage.latency import LatencyStore
from zarrdask.errors import ChunkNotFoundError, MetadataError, StoreError
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.resolve import resolve
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr

PLAIN = {"chunks": (2, 3)}
SHARDED = {"chunks": (2, 3), "shards": (4, 6)}
UNEVEN = {"chunks": ((4, 2, 2), (3, 9))}
NESTED = {
    "chunks": (4, 6),
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [4, 3],
                "codecs": [
                    {
                        "name": "sharding_indexed",
                        "configuration": {
                            "chunk_shape": [2, 3],
                            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                            "index_codecs": [
                                {"name": "bytes", "configuration": {"endian": "little"}}
                            ],
                        },
                    }
                ],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            },
        }
    ],
}


def sparse(store, layout):
    """Write an array of which the chunk of the first elements is stored only."""
    group = zarrdask.create_group(store)
    z = group.create_array(
        "a", shape=(8, 12), dtype="i4", dimension_names=("y", "x"), fill_value=-1, **layout
    )
    z[:2, :3] = 7
    return z


@pytest.fixture(params=["memory", "latency", "local", "zip"])
def new_store(request, tmp_path):
    """Return a function that makes a store; local ones convert errors of the file system."""
    numbers = count()
    return {
        "memory": MemoryStore,
        "latency": lambda: LatencyStore(seconds=0),
        "local": lambda: resolve(tmp_path / str(next(numbers))),
        "zip": lambda: resolve(tmp_path / f"{next(numbers)}.zip"),
    }[request.param]


READS = [
    lambda z: z[...],
    lambda z: z.oindex[[0, 5], [1, 2, 11]],
    lambda z: z.vindex[[0, 5], [1, 11]],
    lambda z: z.read_many([(slice(0, 1), slice(0, 8)), 6]),
    lambda z: zarrdask.read_many({"a": z}, [(slice(0, 8),)]),
    lambda z: zarrdask.from_zarr(z).sum().compute(),
    lambda z: zarrdask.from_zarr(z, chunks="stored").sum().compute(),
    lambda z: pickle.loads(pickle.dumps(z))[4:],
]


@for_each("layout", [PLAIN, SHARDED, UNEVEN, NESTED])
def test_a_missing_chunk_is_an_error_if_the_user_says_so(new_store, layout):
    group = new_store()
    z = sparse(group, layout)
    strict = zarrdask.open_array(group, "a", missing="error")
    for read in READS:
        read(z)
        with pytest.raises(ChunkNotFoundError):
            read(strict)
    np.testing.assert_array_equal(strict[:2, :3], 7)
    np.testing.assert_array_equal(zarrdask.from_zarr(strict)[:2, :3].compute(), 7)


@for_each(
    ("layout", "region", "place"),
    [
        (PLAIN, (slice(0, 2), slice(4, 5)), "a/c/0/1: chunk (0, 1)"),
        (SHARDED, (slice(4, 5), slice(0, 1)), "a/c/1/0: shard (1, 0)"),
        (SHARDED, (slice(2, 3), slice(0, 1)), "a/c/0/0: inner chunk (1, 0)"),
        (NESTED, (slice(2, 3), slice(0, 1)), "a/c/0/0: inner chunk (0, 0): inner chunk (1, 0)"),
        (NESTED, (slice(2, 3), slice(3, 4)), "a/c/0/0: inner chunk (0, 1)"),
    ],
)
def test_the_error_names_the_index_and_the_key(new_store, layout, region, place):
    group = new_store()
    sparse(group, layout)
    z = zarrdask.open_array(group, "a", missing="error")
    with pytest.raises(ChunkNotFoundError) as caught:
        z[region]
    assert caught.value.key == f"{group.url}/{place}"
    assert 'missing="fill"' in str(caught.value)


def test_the_setting_is_read_when_the_array_is_opened():
    store = {}
    sparse(store, PLAIN)
    with dask.config.set({"zarrdask.missing": "error"}):
        x, z = zarrdask.from_zarr(store, "a"), zarrdask.open(store)["a"]
        lenient = zarrdask.open_array(store, "a", missing="fill")
    for read in (x.compute, lambda: z[...], lambda: z[-1, -1]):
        with pytest.raises(ChunkNotFoundError):
            read()
    with dask.config.set({"zarrdask.missing": "error"}):
        assert lenient[-1, -1] == -1


def test_the_policy_of_an_opened_array_stays_unless_a_call_says_otherwise():
    store = {}
    sparse(store, PLAIN)
    strict = zarrdask.open_array(store, "a", missing="error")
    assert zarrdask.open_array(strict) is strict
    with pytest.raises(ChunkNotFoundError):
        zarrdask.open_array(strict, strict=True)[...]
    with pytest.raises(ChunkNotFoundError):
        zarrdask.from_zarr(strict).compute()
    assert zarrdask.open_array(strict, missing="fill")[-1, -1] == -1
    assert zarrdask.from_zarr(strict, missing="fill")[-1, -1].compute() == -1


def test_reads_of_either_policy_have_tasks_of_their_own():
    store = {}
    sparse(store, PLAIN)
    names = {zarrdask.from_zarr(store, "a", missing=each).name for each in ("fill", "error")}
    assert len(names) == 2


def test_the_policy_travels_to_other_processes(tmp_path):
    sparse(tmp_path, PLAIN)
    x = zarrdask.from_zarr(tmp_path, "a", missing="error")
    with pytest.raises(ChunkNotFoundError, match=r"chunk \(\d, \d\)"):
        x.sum().compute(scheduler="processes", num_workers=1)


def test_parts_of_missing_chunks_can_be_written():
    store = {}
    sparse(store, SHARDED)
    z = zarrdask.open_array(store, "a", "r+", missing="error")
    z[5, 7] = 3
    np.testing.assert_array_equal(zarrdask.open_array(store, "a")[5, 6:9], [-1, 3, -1])


@for_each("chunks", [None, {}])
def test_variables_of_xarray(chunks):
    store = MemoryStore({})
    sparse(store, PLAIN)
    for open_dataset in (open_zarr, xr.open_dataset):
        options = {} if open_dataset is open_zarr else {"engine": ZarrdaskBackendEntrypoint}
        strict = open_dataset(store, chunks=chunks, missing="error", **options)
        assert strict.a[:2, :3].values.min() == 7
        with pytest.raises(ChunkNotFoundError):
            strict.a.load()
        assert open_dataset(store, chunks=chunks, **options).a.values[-1, -1] == -1
        with pytest.raises(MetadataError, match="skip_missing"):
            open_dataset(store, chunks=chunks, missing="error", skip_missing=True, **options)
    strict = xr.open_dataset(store, engine=ZarrdaskBackendEntrypoint, missing="error")
    with pytest.raises(ChunkNotFoundError):
        pickle.loads(pickle.dumps(strict)).load()


def test_missing_chunks_that_are_errors_are_not_skipped():
    store = {}
    sparse(store, PLAIN)
    with pytest.raises(MetadataError, match="skip_missing"):
        zarrdask.from_zarr(store, "a", skip_missing=True, missing="error")
    with pytest.raises(MetadataError, match="missing: unknown value"):
        zarrdask.open_array(store, "a", missing="zero")


class FarBucket(UnlistableBucket):
    """The same bucket, each request of which takes a while."""

    capabilities = LatencyStore(seconds=0).capabilities

    def get_range(self, key, start, length=None):
        return self.get(key)[start:][:length]


def refusing(layout):
    values = {}
    sparse(MemoryStore(values), layout)
    return FarBucket(values)


@for_each("layout", [PLAIN, SHARDED])
def test_what_the_server_refuses_to_send_is_missing_if_the_user_says_so(layout):
    store = refusing(layout)
    with pytest.raises(StoreError, match="Access Denied"):
        zarrdask.open_array(store, "a")[...]
    with dask.config.set({"zarrdask.forbidden": "missing"}):
        z = zarrdask.open_array(store, "a")
        strict = zarrdask.open_array(store, "a", missing="error")
        x = zarrdask.from_zarr(store, "a")
        writable = zarrdask.open_array(store, "a", "r+")
        ds = xr.open_dataset(
            store, engine=ZarrdaskBackendEntrypoint, consolidated=False, chunks=None
        )
    expected = np.full((8, 12), -1)
    expected[:2, :3] = 7
    for read in (z, x, pickle.loads(pickle.dumps(z)), ds.a):
        np.testing.assert_array_equal(read[...], expected)
    with pytest.raises(ChunkNotFoundError):
        strict[...]
    writable[5, 7] = expected[5, 7] = 3
    np.testing.assert_array_equal(z[...], expected)
