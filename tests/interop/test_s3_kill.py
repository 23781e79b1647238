"""Workers that are killed in the middle of each verb, on an object store."""

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrdask
from benchmarks.object_server import serving

pytestmark = pytest.mark.stress

ROOT = Path(__file__).parents[2]
VALUES = np.arange(96 * 80, dtype="i4").reshape(96, 80)
CHUNKS = {"chunks": (8, 8)}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving(0.02) as url:
        yield url


@pytest.fixture
def client() -> Iterator[Client]:
    # Of each test: no test waits until a nanny has replaced the worker that was killed before.
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def requests(endpoint: str, after: int = 0) -> int:
    """Return how many requests the server has answered: at once, or after so many, or a second."""
    with urlopen(f"{endpoint}/-/stats?after={after}&within=1") as answer:
        return sum(json.load(answer)["requests"].values())


class Job:
    """A verb on arrays of an object store, which are new for each run."""

    def __init__(self, verb: str, endpoint: str) -> None:
        self.verb = verb
        self.url = f"s3://kill-{uuid4().hex}"
        self.options = {"key": "k", "secret": "s", "endpoint_url": endpoint}
        self.place = {"storage_options": self.options}
        if verb not in ("unaligned", "shards"):
            z = zarrdask.create_array(
                self.url, "a", shape=VALUES.shape, dtype="i4", **CHUNKS, **self.place
            )
            z[...] = VALUES

    def run(self) -> None:
        x = da.from_array(VALUES, chunks=(30, 20))
        source, target = f"{self.url}/a", f"{self.url}/b"
        match self.verb:
            case "read":
                found = zarrdask.from_zarr(source, **self.place, chunks="stored").compute()
                np.testing.assert_array_equal(found, VALUES)
            case "unaligned":
                zarrdask.to_zarr(x, target, **CHUNKS, **self.place, overwrite=True)
            case "shards":
                shards = {"shards": (16, 16)}
                zarrdask.to_zarr(x, target, **CHUNKS, **shards, **self.place, overwrite=True)
            case "append":
                zarrdask.append(x, source, **self.place)
            case "rechunk":
                plan = zarrdask.rechunk(
                    source, target, chunks=(96, 2), max_mem="24 kiB", **self.place
                )
                plan.execute()
            case "copy":
                zarrdask.copy(source, target, **self.place)
            case "verify":
                assert zarrdask.verify(source, **self.place).ok

    def check(self) -> None:
        name, values = ("a", VALUES) if self.verb in ("read", "verify") else ("b", VALUES)
        if self.verb == "append":
            name, values = "a", np.concatenate([VALUES, VALUES])
        z = zarrdask.open_array(self.url, name, **self.place)
        np.testing.assert_array_equal(z[...], values)
        assert zarrdask.verify(z).ok


VERBS = ["read", "unaligned", "shards", "append", "rechunk", "copy", "verify"]
REMOTES = ["fsspec", "auto"]


@pytest.mark.parametrize(("verb", "remote"), [*zip(VERBS, cycle(REMOTES))])
def test_a_worker_is_killed(client, endpoint, verb, remote, setting):
    setting({"zarrdask.remote": remote})
    job, before = Job(verb, endpoint), requests(endpoint)
    job.run()
    count = requests(endpoint) - before
    job.check()
    job, before, ended = Job(verb, endpoint), requests(endpoint), threading.Event()
    victim = random.choice(list(client.run(os.getpid).values()))
    number = random.randrange(count // 8, count // 2)
    in_the_middle = []

    def kill() -> None:
        while requests(endpoint, before + number) < before + number and not ended.is_set():
            pass
        in_the_middle.append(not ended.is_set())
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        job.run()
    except Exception:
        killer.join()
        job.run()
    finally:
        ended.set()
        killer.join()
    assert in_the_middle == [True]
    job.check()
