"""Processes that are killed while they write datasets to an object store."""

import multiprocessing
import random
import signal
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import dask
import pytest
import xarray as xr

from benchmarks.object_server import serving
from tests.crashes.conftest import Clock
from tests.interop.test_s3_kill import requests
from tests.xarray.writes import days, together
from zarrdask.storage.locks import leases
from zarrdask.xarray import open_zarr, to_zarr

pytestmark = [
    pytest.mark.stress,
    pytest.mark.filterwarnings("ignore:.*was interrupted"),
    pytest.mark.timeout(300),
]

PROCESSES = multiprocessing.get_context("forkserver")
OLD, NEW = days(3, chunks=2), days(4, 3, chunks=2)
#: The number of killed processes for each mode.
KILLS = 3
#: The options of each mode of the writer, the dataset before, and the dataset afterwards.
MODES: dict[str, tuple[dict[str, Any], xr.Dataset | None, xr.Dataset]] = {
    "new": ({}, None, NEW.compute()),
    "append": ({"append_dim": "time"}, OLD, together(OLD, NEW)),
    # The old dataset is erased, variable by variable, before the new one appears.
    "replace": ({"mode": "w"}, OLD, NEW.compute()),
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving(0.005) as url:
        yield url


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    # The lease of a killed process ends at once.
    monkeypatch.setattr(leases, "time", Clock())


def write(url: str, dataset: xr.Dataset, options: dict[str, Any], remote: str) -> None:
    with dask.config.set({"scheduler": "threads", "zarrdask.remote": remote}):
        to_zarr(dataset, url, **options)


def opened(url: str, options: dict[str, Any]) -> xr.Dataset | None:
    """Return a dataset as a reader finds it, if there is one."""
    try:
        with open_zarr(url, chunks=None, storage_options=options) as found:
            return found.load()
    except FileNotFoundError:
        return None


@pytest.mark.parametrize("remote", ["fsspec", "auto"])
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_writer_leaves_the_old_dataset_or_the_new_one(
    endpoint: str, mode: str, remote: str
) -> None:
    storage = {"key": "k", "secret": "s", "endpoint_url": endpoint}
    options, old, new = MODES[mode]
    options = {**options, "storage_options": storage}
    states = {0 if each is None else each.sizes["time"] for each in (old, new)}

    def begin() -> str:
        url = f"s3://kill-{uuid4().hex}"
        if old is not None:
            to_zarr(old, url, storage_options=storage)
        return url

    url = begin()
    before = requests(endpoint)
    write(url, NEW, options, remote)
    count = requests(endpoint) - before
    exit_codes = set()
    for _ in range(KILLS):
        url = begin()
        number = requests(endpoint) + random.randrange(1, count)
        process = PROCESSES.Process(target=write, args=(url, NEW, options, remote))
        process.start()
        while requests(endpoint, number) < number and process.is_alive():
            pass
        process.kill()
        process.join()
        exit_codes.add(process.exitcode)
        found = opened(url, storage)
        if mode != "replace":
            assert (0 if found is None else found.sizes["time"]) in states
        if found is None or not found.identical(new):
            write(url, NEW, options, remote)
        xr.testing.assert_identical(opened(url, storage), new)
    assert -signal.SIGKILL in exit_codes
