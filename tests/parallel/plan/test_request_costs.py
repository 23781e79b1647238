"""Plans count the requests that are sent, by class, and add prices of the settings."""

from collections import Counter

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.errors import MetadataError
from zarrdask.formats.byte_ranges import Entry, StoredObject
from zarrdask.storage.memory import MemoryStore


def within(planned, sent):
    return abs(planned - sent) <= 0.02 * sent


@pytest.mark.parametrize("region", [np.s_[:, :], np.s_[3:17, 5:6], np.s_[::7, 2:]])
def test_a_planned_read_sends_as_many_requests(region):
    z = zarrdask.create_array(MemoryStore(), "x", shape=(20, 30), chunks=(4, 7), dtype="f4")
    z[...] = np.arange(600).reshape(20, 30)
    x = zarrdask.from_zarr(z, chunks=(5, 9))[region]
    plan = zarrdask.plan_read(x)
    with zarrdask.measured() as m:
        x.compute(scheduler="sync")
    assert within(plan.requests_by_class["GET"], m.requests["GET"])
    assert within(plan.fetched, m.bytes_fetched)


def test_a_planned_write_sends_as_many_requests():
    z = zarrdask.create_array(MemoryStore(), "x", shape=(20, 30), chunks=(4, 7), dtype="f4")
    z[...] = 1
    x = da.ones((20, 30), chunks=(20, 30), dtype="f4")[2:]
    region = (slice(2, 20), slice(0, 30))
    plan = zarrdask.plan_write(x, z, region=region)
    with zarrdask.measured() as m:
        zarrdask.to_zarr(x, z, region=region)
    row = m.by("task")["write_x",]
    assert plan.requests_by_class["PUT"] == row["requests"]["PUT"]
    assert plan.requests_by_class["GET"] == row["requests"]["GET"]


def test_prices_add_a_sum():
    z = zarrdask.create_array(MemoryStore(), "x", shape=4000, chunks=4, dtype="f4")
    z[...] = 1
    plan = zarrdask.plan_read(z)
    assert plan.price is None
    with dask.config.set({"zarrdask.prices": {"GET": 0.5, "GiB": 2}}):
        assert plan.price == pytest.approx(0.5 + 2 * plan.fetched / 2**30)
        assert "price 0.5" in str(plan)
        assert plan.to_dict()["price"] == plan.price


@pytest.mark.parametrize("prices", [{"POST": 1}, {"GET": -1}, "cheap"])
def test_prices_are_checked(prices):
    z = zarrdask.create_array(MemoryStore(), "x", shape=4, chunks=4, dtype="f4")
    plan = zarrdask.plan_read(z)
    with dask.config.set({"zarrdask.prices": prices}), pytest.raises(MetadataError, match="price"):
        plan.price  # noqa: B018


class Bucket(MemoryStore):
    """Counts requests for chunks and temporary objects; its listing has ETags."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def _count(self, kind, key):
        if key.startswith("c/") or "/c/" in key or "/packed/" in key:
            self.counts[kind] += 1

    def get(self, key):
        self._count("GET", key)
        return super().get(key)

    def set(self, key, value):
        self._count("PUT", key)
        super().set(key, bytes(value))

    def entries(self, prefix, after="", until=None, *, objects=False):
        for key in self.list_prefix(prefix):
            value = self.values[key]
            tag = f'"{hash(bytes(value)):x}"'
            yield Entry(key, len(value), object=StoredObject(key, "s3://b/", len(value), 1.0, tag))


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((64, 64), {}),
        ((96, 80), {}),
        ((128, 128), {"levels": 4, "max_mem": 2**23}),
        ((64, 64), {"shards": (32, 32)}),
        ((70, 50), {"chunks": (8, 24)}),
    ],
)
def test_a_planned_pyramid_sends_as_many_requests(shape, options):
    source, target = Bucket(), Bucket()
    z = zarrdask.create_array(source, shape=shape, chunks=(16, 16), dtype="f4")
    z[...] = np.random.default_rng(0).random(shape)
    plan = zarrdask.pyramid(z, target, **{"max_mem": 2**21} | options)
    source.counts.clear()
    plan.execute("sync", progress=False)
    sent = source.counts + target.counts
    planned = plan.to_dict()["requests_by_class"]
    assert within(planned["GET"], sent["GET"]), (planned, sent)
    assert within(planned["PUT"], sent["PUT"]), (planned, sent)
    assert f"{planned['GET']} GET" in str(plan)


@pytest.mark.parametrize(
    "changes",
    [{}, {"chunks": (8, 40)}, {"compressors": "gzip"}, {"chunks": (20, 20), "shards": 40}],
)
def test_a_dry_run_of_a_copy_counts_as_many_requests(changes):
    source, target = Bucket(), Bucket()
    group = zarrdask.create_group(source)
    z = group.create_array("a", shape=(60, 80), chunks=(16, 16), dtype="f4")
    z[...] = np.random.default_rng(0).random((60, 80))
    group.create_array("b", shape=(50, 50), chunks=(25, 10), dtype="i2")[...] = 1
    planned = zarrdask.copy(source, target, dry_run=True, **changes)
    source.counts.clear()
    zarrdask.copy(source, target, **changes)
    sent = source.counts + target.counts
    assert within(planned.requests_by_class["GET"], sent["GET"]), (planned, sent)
    assert within(planned.requests_by_class["PUT"], sent["PUT"]), (planned, sent)
    assert f"costs: {sent['GET']} GET" in str(planned)
    assert planned.to_dict()["requests_by_class"] == planned.requests_by_class


def test_a_copy_out_of_shards_has_no_costs_beforehand():
    z = zarrdask.create_array({}, shape=8, chunks=2, shards=4, dtype="i4")
    z[...] = 1
    assert zarrdask.copy(z, {}, shards=False, dry_run=True).costs is None


def test_a_planned_read_of_a_concatenation_sends_as_many_requests():
    members = [Bucket() for _ in range(3)]
    for number, store in enumerate(members, 1):
        z = zarrdask.create_array(store, shape=(8, 10), chunks=(4, 5), dtype="f4")
        z[...] = number
    joined = zarrdask.concat(members)
    plan = zarrdask.plan_read(joined, (slice(2, 20), slice(0, 4)))
    for store in members:
        store.counts.clear()
    zarrdask.from_zarr(joined)[2:20, :4].compute(scheduler="sync")
    assert plan.requests_by_class["GET"] == sum(store.counts["GET"] for store in members) == 5


def test_a_dataset_plans_to_read_its_variables():
    xr = pytest.importorskip("xarray")
    store = Bucket()
    group = zarrdask.create_group(store)
    for name in ("t", "u"):
        z = group.create_array(
            name, shape=(8, 9), chunks=(4, 3), dtype="f4", dimension_names=("y", "x")
        )
        z[...] = 1
    ds = xr.open_dataset(store, engine="zarrdask", chunks={})
    region = {"y": slice(1, 3), "x": slice(0, 4)}
    plan = ds.zarrdask.plan_read(region)
    store.counts.clear()
    ds.isel(region).compute(scheduler="sync")
    assert plan.requests_by_class == {"GET": store.counts["GET"]}
    assert ds.zarrdask.plan_read().requests_by_class == {"GET": 12}
