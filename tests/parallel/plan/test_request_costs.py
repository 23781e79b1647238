"""Plans count the requests that are sent, by class, and add prices of the settings."""

import json
import random
from collections import Counter
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.tools.cli.commands import call
from zarrdask.errors import MetadataError
from zarrdask.formats.byte_ranges import Entry, StoredObject, cut
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

    def _count(self, kind, key, value):
        if key.startswith("c/") or "/c/" in key or "/packed/" in key:
            self.counts[kind] += 1
            self.counts["fetched" if kind == "GET" else "stored"] += len(value or b"")

    def get(self, key):
        value = super().get(key)
        self._count("GET", key, value)
        return value

    def get_range(self, key, start, length=None):
        value = self.values.get(key)
        part = None if value is None else cut(value, start, length)
        self._count("GET", key, part)
        return part

    def set(self, key, value):
        self._count("PUT", key, bytes(value))
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
    assert within(planned.costs.fetched, sent["fetched"])
    assert planned.to_dict()["requests_by_class"] == planned.requests_by_class


def layout(pick, shape):
    """Return random chunks and shards."""
    chunks = tuple(pick.randint(3, min(16, n)) for n in shape)
    shards = tuple(n * pick.randint(1, 3) for n in chunks) if pick.random() < 0.5 else False
    return {"chunks": chunks, "shards": shards}


def planned_job(kind, pick, z, target):
    """Return the costs of a random job, and a function that does it."""
    options = layout(pick, z.shape)
    if kind == "read":
        blocks = tuple(pick.randint(5, n) for n in z.shape)
        x = zarrdask.from_zarr(z, chunks=blocks)[pick.randint(0, 5) :, :: pick.randint(1, 3)]
        return zarrdask.plan_read(x).costs, partial(x.compute, scheduler="sync")
    if kind == "copy":
        options = options if pick.random() < 0.5 else {"shards": options["shards"]}
        costs = zarrdask.copy(z, target, dry_run=True, **options).costs
        return costs, partial(zarrdask.copy, z, target, progress=False, **options)
    if kind == "pyramid":
        plan = zarrdask.pyramid(z, target, max_mem=pick.choice([2**21, 2**23]))
    else:
        plan = zarrdask.rechunk(z, target, max_mem=pick.choice([40_000, 2**20]), **options)
    return plan.requests_planned, partial(plan.execute, "sync", progress=False)


def check_plan(kind, seed):
    """Check the plan of a random job against a store that counts."""
    pick, source, target = random.Random(seed), Bucket(), Bucket()
    shape = tuple(pick.randint(20, 50) for _ in range(2))
    compressors = pick.choice([[], "zstd"])
    z = zarrdask.create_array(
        source, shape=shape, dtype="f4", compressors=compressors, **layout(pick, shape)
    )
    z[...] = np.random.default_rng(seed).integers(1, 50, shape)
    costs, job = planned_job(kind, pick, z, target)
    source.counts.clear()
    job()
    sent = source.counts + target.counts
    planned = {**costs.requests, "fetched": costs.fetched, "stored": costs.stored}
    if kind == "pyramid":
        del planned["PUT"]  # Of so few objects, one is more than 2 percent.
    for name, number in planned.items():
        is_right = name in costs.estimates or within(number or 0, sent[name])
        assert is_right, (seed, name, sent, costs)
    for basis in costs.estimates.values():
        assert f"({basis})" in str(costs)


@pytest.mark.parametrize("kind", ["read", "copy", "rechunk", "pyramid"])
def test_a_random_job_moves_as_much_as_planned(kind):
    check_plan(kind, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["read", "copy", "rechunk", "pyramid"])
def test_random_jobs_move_as_much_as_planned(kind):
    for seed in range(20):
        check_plan(kind, seed)


def test_a_plan_says_how_it_estimates_bytes():
    x = da.ones((20, 30), chunks=(20, 30), dtype="f4")
    plan = zarrdask.plan_write(x, {}, chunks=(10, 10))
    assert "6 PUT, about 2.34 KiB stored (before compression)" in str(plan)
    assert plan.to_dict()["bytes_stored"] == 2400
    assert plan.to_dict()["estimates"] == {"stored": "before compression"}
    plan = zarrdask.plan_write(x, {}, chunks=(10, 10), compressors=[])
    assert "6 PUT, 2.34 KiB stored" in str(plan)
    assert plan.to_dict()["estimates"] == {}


def test_the_commands_print_the_same_numbers(tmp_path, capsys):
    z = zarrdask.create_array(tmp_path / "a.zarr", shape=(40, 40), chunks=(20, 20), dtype="f4")
    z[...] = 1
    expected = {"requests_by_class", "bytes_fetched", "bytes_stored", "estimates", "price"}
    a, b = str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")
    for command in (
        ("plan-read", a),
        ("plan-write", a, b),
        ("rechunk", a, b, "--chunks", "40,10", "--dry-run"),
        ("copy", a, b, "--dry-run"),
        ("pyramid", a, b, "--dry-run"),
    ):
        numbers = json.loads(call(capsys, *command, "--json")[1])
        assert expected <= numbers.keys(), command


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
    region = {"y": slice(1, 3), "x": slice(0, 4)}
    for chunks in ({}, None):
        ds = xr.open_dataset(store, engine="zarrdask", chunks=chunks)
        plan = ds.zarrdask.plan_read(region)
        store.counts.clear()
        ds.isel(region).compute(scheduler="sync")
        assert plan.requests_by_class == {"GET": store.counts["GET"]}
        assert ds.zarrdask.plan_read().requests_by_class == {"GET": 12}
