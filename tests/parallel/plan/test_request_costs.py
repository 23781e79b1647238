"""Plans count the requests that are sent, by class, and add prices of the settings."""

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.errors import MetadataError
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
