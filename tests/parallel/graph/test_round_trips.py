"""How many requests, in how many round trips, verbs need on an object store."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.storage.bucket import Bucket
from zarrdask.arrays.hierarchy import claim
from zarrdask.arrays.hierarchy.changes import append as append_module
from zarrdask.storage.locks import leases

OPTIONS = {"shape": 4, "chunks": 2, "dtype": "i4"}


@pytest.fixture(params=[0, 0.05, 0.4], ids=["near", "50 ms", "400 ms"])
def bucket(request, monkeypatch):
    store = Bucket(request.param)
    for module in (append_module, claim, leases):
        monkeypatch.setattr(module, "clock", store.now)
    with dask.config.set(scheduler="synchronous"):
        yield store


def test_an_append_to_an_open_array(bucket):
    z = zarrdask.create_array(bucket, **OPTIONS)
    bucket.clear()
    z.append(np.array([1, 2], "i4"))
    # The lease; the document and the record; the chunk; the document; the lease.
    assert bucket.counts == (6, 5)
    assert zarrdask.open_array(bucket.inner)[...].tolist() == [0, 0, 0, 0, 1, 2]
    assert not [key for key in bucket.inner.values if "lease" in key]


@pytest.mark.parametrize(("zarr_format", "requests"), [(2, 14), (3, 12)])
def test_an_append_of_a_dask_array_to_a_member_of_a_group(bucket, zarr_format, requests):
    group = zarrdask.create_group(bucket, zarr_format=zarr_format)
    group.create_array("a", **OPTIONS)
    bucket.clear()
    zarrdask.append(da.from_array(np.array([1, 2], "i4")), bucket, "a")
    # Besides, the array is opened, and consolidated metadata above it is looked for at the end.
    assert bucket.counts == (requests, 7)
    assert zarrdask.open_array(bucket.inner, "a")[...].tolist() == [0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize("bucket", [0.4], indirect=True, ids=["400 ms"])
def test_an_append_finds_out_what_others_change_meanwhile(bucket):
    z = zarrdask.create_array(bucket, **OPTIONS)

    class Meanwhile:
        """Values during the computation of which another writer sets an attribute."""

        shape, dtype, ndim = (2,), np.dtype("i4"), 1

        def __getitem__(self, selection):
            zarrdask.open_array(bucket.inner, mode="r+").attrs["theirs"] = 1
            return np.array([1, 2], "i4")[selection]

    zarrdask.append(
        da.from_array(Meanwhile(), chunks=2, name="meanwhile", meta=np.empty(0, "i4")), z
    )
    found = zarrdask.open_array(bucket.inner)
    assert (found[...].tolist(), found.attrs.asdict()) == ([0, 0, 0, 0, 1, 2], {"theirs": 1})


@pytest.mark.parametrize("bucket", [0.4], indirect=True, ids=["400 ms"])
def test_an_append_relies_on_its_lease_only_as_long_as_nobody_can_take_it(bucket, monkeypatch):
    z = zarrdask.create_array(bucket, **OPTIONS)

    def take(key, value):
        # The process was suspended, and another writer took the lease.
        bucket.rounds += int(2 * leases.Lease.EXPIRY / bucket.latency)
        bucket.inner.set(".zarrdask-rewrite/lease", b"another writer")
        return Bucket.create(bucket, key, value)

    monkeypatch.setattr(bucket, "create", take)
    with pytest.raises(zarrdask.errors.StoreError, match="another writer took this lease"):
        z.append(np.array([1, 2, 3, 4], "i4"))
    assert zarrdask.open_array(bucket.inner).shape == (4,)


@pytest.mark.parametrize(("zarr_format", "requests"), [(2, 8), (3, 7)])
def test_a_new_array(bucket, zarr_format, requests):
    zarrdask.create_array(bucket, **OPTIONS, zarr_format=zarr_format)
    # What is there; the document; whether another writer began to create the array, too.
    assert bucket.counts == (requests, 3)


@pytest.mark.parametrize("bucket", [0.4], indirect=True, ids=["400 ms"])
@pytest.mark.parametrize(
    ("create", "options", "requests"),
    [(zarrdask.create_array, OPTIONS, 13), (zarrdask.create_group, {}, 11)],
)
def test_the_format_of_the_group_around_a_new_node_is_read_with_what_is_there(
    bucket, create, options, requests
):
    zarrdask.create_group(bucket)
    bucket.clear()
    create(bucket, "a", **options)
    assert bucket.counts == (requests, 3)
    assert "a" in zarrdask.open_group(bucket.inner)


@pytest.mark.parametrize("bucket", [0.4], indirect=True, ids=["400 ms"])
@pytest.mark.parametrize(("zarr_format", "requests"), [(2, 15), (3, 13)])
def test_a_new_array_in_a_group(bucket, zarr_format, requests):
    group = zarrdask.create_group(bucket, zarr_format=zarr_format)
    bucket.clear()
    group.create_array("a", **OPTIONS)
    assert bucket.counts == (requests, 3)
    assert zarrdask.open_group(bucket.inner)["a"].shape == (4,)
