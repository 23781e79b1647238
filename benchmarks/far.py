"""Measure reads and writes of an object store with latency: ``python -m benchmarks.far``.

Each measurement is a process of its own, which opens and warms up, does a job once beside a server
on loopback that answers each request late (`benchmarks.object_server`), and checks the result. The
table has seconds and, in brackets, the requests and the most that were in flight; contestants take
turns. `limit` is a bare loop of obstore calls in 64 threads, which decodes nothing.
"""

import argparse
import asyncio
import atexit
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from statistics import median
from typing import Any

import dask.array as da
import numpy as np
import obstore
import xarray as xr
from obstore.store import S3Store

import zarrdask
import zarrdask.xarray
from benchmarks.__main__ import run
from benchmarks.object_server import serving
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES
from zarrdask.runtime.decoded_chunks import CHUNKS

IN_FLIGHT = 64
#: What is written. Each measurement is a process of its own.
NEW = f"new-{os.getpid()}"
#: The same job, small, by which a process warms up: the first one imports much.
WARM_UP = {"write": "write a few"}
SMALL = {"shape": (1024, 2**14), "chunks": (1, 2**14), "dtype": "f4", "compressors": []}
LARGE = {**SMALL, "shape": (128, 2**18), "chunks": (1, 2**18)}
CUBES = {"shape": (64, 256, 256), "chunks": (64, 64, 64), "dtype": "f4"}
SHARDS = {"shape": (1000, 64, 64), "chunks": (1, 16, 16), "shards": (1, 64, 64), "dtype": "f4"}
INDEX = 16 * 16 + 4
WINDOW, ROW, MEMBERS, POINTS = np.s_[:256, 5:20, 5:10], np.s_[:, 3, 3], 100, 20
VARIABLES, VARIABLE = 20, {"shape": 2**17, "chunks": 2**14, "dtype": "f4", "compressors": []}
JOBS = {
    "write": "write 1,024 chunks of 64 KiB",
    "read": "sum of 1,024 chunks of 64 KiB",
    "http": "sum of 128 chunks of 1 MiB, HTTP",
    "window": "a window through 256 shards",
    "row": "a row through 1,000 shards",
    "open": "open a group of 100 arrays",
    "consolidated": "the same, consolidated",
    "points": "20 points, one after another",
    "again": "sum of 1,024 chunks of 64 KiB, cached on the disk",
    "rows": "64 rows of chunks of 64³, one by one, with a cache",
    "load": "load 20 variables of 8 chunks",
}
#: The arrays of the jobs that use a cache, and its size in bytes.
CACHED, CACHE_BYTES = {"again": "small", "rows": "cubes"}, 2**28
Job = Callable[[], Any]


def s3(url: str) -> S3Store:
    """Return the bucket of the measurements in obstore."""
    return S3Store(
        "bench",
        endpoint=url,
        region="us-east-1",
        access_key_id="key",
        secret_access_key="secret",
        client_options={"allow_http": True},
    )


def options(url: str) -> dict[str, Any]:
    return {"key": "key", "secret": "secret", "endpoint_url": url}


def values(job: str) -> np.ndarray:
    return np.ones(SMALL["shape"] if job == "write" else (2, 2**14), "f4")


def is_write(job: str) -> bool:
    return job in (*WARM_UP, *WARM_UP.values())


def new(job: str) -> str:
    """Return where a job writes."""
    return f"{NEW}-{job.replace(' ', '-')}"


# ---- contestants: what each does for a job; None where it can't


def zarrdask_url(job: str, url: str) -> Job | None:
    """Return what zarrdask does with its default settings."""
    return _zarrdask(job, "s3://bench", url, storage_options=options(url))


def zarrdask_fsspec(job: str, url: str) -> Job | None:
    import dask

    dask.config.set({"zarrdask.remote": "fsspec"})
    return _zarrdask(job, "s3://bench", url, storage_options=options(url))


def new_directory() -> str:
    """Return a directory for a cache, which exists as long as this process."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return folder.name


def _warm(job: str, whole: Callable[[], Any], row: Callable[[int], Any]) -> Job:
    """Return a job that uses a cache: that is filled for "again", and empty for "rows"."""
    if job == "rows":
        return lambda: [row(n) for n in range(CUBES["shape"][0])]
    whole()
    return lambda: np.sum(whole())


def zarrdask_obstore(job: str, url: str) -> Job | None:
    return _zarrdask(job, s3(url), url)


def _zarrdask(job: str, place: Any, url: str, **how: Any) -> Job | None:
    # Else the indexes of shards are known from warming up, and what is measured takes one round.
    INDEXES.clear()
    CHUNKS.clear()
    if job in CACHED:
        import dask

        dask.config.set({"zarrdask.cache-size": CACHE_BYTES})
        if job == "again":
            dask.config.set({"zarrdask.cache-size": 0, "zarrdask.cache-directory": new_directory()})
        z = zarrdask.open_array(f"s3://bench/{CACHED[job]}", storage_options=options(url))
        return _warm(job, lambda: z[...], lambda n: z[n])
    members = {"open": "plain", "consolidated": "consolidated"}
    if is_write(job):
        x = da.from_array(values(job), chunks=(64, -1))
        return lambda: zarrdask.to_zarr(
            x, place, new(job), chunks=SMALL["chunks"], compressors=[], **how
        )
    if job in members:
        return lambda: [*zarrdask.open_group(place, members[job], **how).arrays()]
    if job == "points":
        z = zarrdask.open_array(place, "small", **how)
        return lambda: [z[i, 0] for i in range(POINTS)]
    if job == "load":
        ds = xr.open_dataset(place, group="variables", engine="zarrdask", **how)
        return ds.zarrdask.load
    if job == "http":
        x = zarrdask.from_zarr(f"{url}/bench/large")
        return lambda: x.sum().compute()
    x = zarrdask.from_zarr(place, "small" if job == "read" else "shards", **how)
    return (x.sum() if job == "read" else x[WINDOW if job == "window" else ROW]).compute


def dask_zarr(job: str, url: str) -> Job | None:
    import zarr

    if job in CACHED:
        return None
    store = zarr.storage.FsspecStore.from_url("s3://bench", storage_options=options(url))
    if is_write(job):
        x = da.from_array(values(job), chunks=SMALL["chunks"])
        z = zarr.create_array(store, name=new(job), overwrite=True, **SMALL | {"shape": x.shape})
        return lambda: da.store(x, z, lock=False)
    if job in ("open", "consolidated"):
        return _open_zarr(store, job)
    if job == "load":
        return _xarray_zarr(store).load
    if job == "points":
        z = zarr.open_array(store, path="small", mode="r")
        return lambda: [z[i, 0] for i in range(POINTS)]
    if job == "http":
        web = zarr.storage.FsspecStore.from_url(f"{url}/bench", read_only=True)
        return da.from_zarr(zarr.open_array(web, path="large", mode="r")).sum().compute
    x = da.from_zarr(zarr.open_array(store, path="small" if job == "read" else "shards", mode="r"))
    return (x.sum() if job == "read" else x[WINDOW if job == "window" else ROW]).compute


def zarr_obstore(job: str, url: str) -> Job | None:
    import zarr

    zarr.config.set({"async.concurrency": IN_FLIGHT})
    store = zarr.storage.ObjectStore(s3(url))
    if is_write(job):
        x = values(job)
        z = zarr.create_array(store, name=new(job), overwrite=True, **SMALL | {"shape": x.shape})
        return lambda: z.__setitem__(..., x)
    if job in ("open", "consolidated"):
        return _open_zarr(store, job)
    if job == "load":
        ds = _xarray_zarr(store)
        # All variables at the same time; s3fs can't be used from another event loop than its own.
        return lambda: asyncio.run(ds.load_async())
    if job == "http":
        return None
    if job in CACHED:
        from zarr.experimental.cache_store import CacheStore

        # It caches encoded values, and never asks whether they have changed.
        kept = zarr.storage.LocalStore(new_directory())
        cached = CacheStore(store, cache_store=kept, max_size=CACHE_BYTES)
        z = zarr.open_array(cached, path=CACHED[job], mode="r")
        return _warm(job, lambda: z[...], lambda n: z[n])
    z = zarr.open_array(store, path="shards" if job in ("window", "row") else "small", mode="r")
    if job == "points":
        return lambda: [z[i, 0] for i in range(POINTS)]
    return {
        "read": lambda: np.sum(z[...]),
        "window": lambda: z[WINDOW],
        "row": lambda: z[ROW],
    }[job]


def _open_zarr(store: Any, job: str) -> Job:
    import zarr

    is_consolidated = job == "consolidated"
    path = "consolidated" if is_consolidated else "plain"
    return lambda: [
        *zarr.open_group(store, path=path, mode="r", use_consolidated=is_consolidated).arrays()
    ]


def _xarray_zarr(store: Any) -> xr.Dataset:
    return xr.open_dataset(store, group="variables", engine="zarr", consolidated=False)


def tensorstore(job: str, url: str) -> Job | None:
    import tensorstore as ts

    if job in ("open", "consolidated", "load"):
        return None

    def opened(
        name: str,
        base: dict[str, Any] | None = None,
        more_context: dict[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        store = base or {
            "driver": "s3",
            "bucket": "bench",
            "endpoint": url,
            "aws_region": "us-east-1",
            "aws_credentials": {"type": "anonymous"},
            "path": name,
        }
        context = {"s3_request_concurrency": {"limit": IN_FLIGHT}, **(more_context or {})}
        return ts.open({"driver": "zarr3", "kvstore": store, "context": context, **more}).result()

    if is_write(job):
        x = values(job)
        metadata = {
            "shape": x.shape,
            "data_type": "float32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": SMALL["chunks"]}},
        }
        z = opened(f"{new(job)}/", metadata=metadata, create=True, delete_existing=True)
        return lambda: z.write(x).result()
    if job == "http":
        z = opened("", {"driver": "http", "base_url": f"{url}/bench/large/"})
        return lambda: z.read().result().sum()
    if job in CACHED:
        # It caches decoded chunks in memory, and asks whether they have changed.
        pool = {"cache_pool": {"total_bytes_limit": CACHE_BYTES}}
        z = opened(f"{CACHED[job]}/", more_context=pool, recheck_cached_data=True)
        return _warm(job, lambda: z.read().result(), lambda n: z[n].read().result())
    z = opened("shards/" if job in ("window", "row") else "small/")
    if job == "points":
        return lambda: [z[i, 0].read().result() for i in range(POINTS)]
    return {
        "read": lambda: z.read().result().sum(),
        "window": lambda: z[WINDOW].read().result(),
        "row": lambda: z[ROW].read().result(),
    }[job]


def limit(job: str, url: str) -> Job | None:
    store, pool = s3(url), ThreadPoolExecutor(IN_FLIGHT)

    def get(key: str) -> int:
        return len(obstore.get(store, key).bytes())

    def part(key: str, start: int, length: int) -> int:
        return len(obstore.get_range(store, key, start=start, length=length))

    if job in CACHED:
        return None
    if is_write(job):
        body, count = bytes(2**16), len(values(job))
        return lambda: [
            *pool.map(lambda n: obstore.put(store, f"{new(job)}/c/{n}/0", body), range(count))
        ]
    if job == "points":
        return lambda: [get(f"small/c/{n}/0") for n in range(POINTS)]
    if job == "consolidated":
        return lambda: get("consolidated/zarr.json")
    if job == "open":
        return lambda: [
            *pool.map(
                lambda prefix: get(f"{prefix}/zarr.json"),
                obstore.list_with_delimiter(store, "plain")["common_prefixes"],
            )
        ]
    if job in ("window", "row"):
        keys = [f"shards/c/{n}/0/0" for n in range(256 if job == "window" else 1000)]
        # Of each shard its index, then a chunk.
        rounds = [partial(part, start=0, length=length) for length in (INDEX, 500)]
        return lambda: [[*pool.map(ask, keys)] for ask in rounds]
    if job == "load":
        count = VARIABLE["shape"] // VARIABLE["chunks"]
        keys = [f"variables/v{n}/c/{chunk}" for n in range(VARIABLES) for chunk in range(count)]
        return lambda: [*pool.map(get, keys)]
    name, count = ("large", 128) if job == "http" else ("small", 1024)
    return lambda: [*pool.map(get, [f"{name}/c/{n}/0" for n in range(count)])]


TOOLS = {
    "zarrdask": zarrdask_url,
    "zarrdask+fsspec": zarrdask_fsspec,
    "zarrdask+obstore": zarrdask_obstore,
    "dask+zarr": dask_zarr,
    "zarr+obstore": zarr_obstore,
    "tensorstore": tensorstore,
    "limit": limit,
}

# ---- the measurement


def control(url: str, command: str) -> Any:
    request = urllib.request.Request(f"{url}/-/{command}", method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def prepare(url: str) -> None:
    """Store what is read."""
    store = s3(url)
    for name, how in {
        "small": SMALL,
        "large": LARGE,
        "shards": SHARDS,
        "cubes": CUBES,
    }.items():
        zarrdask.create_array(store, name, **how)[...] = 1
    for name in ("plain", "consolidated"):
        group = zarrdask.create_group(store, name)
        for number in range(MEMBERS):
            group.create_array(f"a{number}", shape=4, dtype="i4")
    zarrdask.consolidate_metadata(store, "consolidated")
    group = zarrdask.create_group(store, "variables")
    for number in range(VARIABLES):
        group.create_array(f"v{number}", dimension_names=["x"], **VARIABLE)[...] = 1


def measure(job: str, tool: str, url: str, delay: float) -> dict[str, Any]:
    """Return the time and the requests of one job."""
    control(url, f"set?delay={delay}")
    # Beside the delay, so that all connections are open.
    warm_up = TOOLS[tool](WARM_UP.get(job, job), url)
    if warm_up is None:
        return {}
    warm_up()
    work = TOOLS[tool](job, url)
    control(url, f"set?delay={delay}")
    start, cpu = time.perf_counter(), time.process_time()
    work()  # type: ignore[misc]
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    stats = control(url, "stats")
    return {
        "seconds": seconds,
        "cpu": cpu,
        "requests": sum(stats["requests"].values()),
        "most": stats["most"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--delays", default="0.005,0.05", help="seconds, separated by commas")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        job, tool, url, delay = given.one
        print(json.dumps(measure(job, tool, url, float(delay))))
        return
    tools = given.tools.split(",")
    with serving() as url:
        prepare(url)
        for delay in given.delays.split(","):
            print(f"\n{float(delay) * 1000:g} ms\n\n| job | {' | '.join(tools)} |")
            print(f"|---|{'---|' * len(tools)}")
            for job in given.jobs.split(","):
                found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in tools}
                for _ in range(given.repeat):
                    for tool in tools:
                        with suppress(subprocess.CalledProcessError):
                            result = run("far", "--one", job, tool, url, delay)
                            found[tool].append(json.loads(result))
                cells = [_cell(found[tool]) for tool in tools]
                print(f"| {JOBS[job]} | {' | '.join(cells)} |", flush=True)


def _cell(results: list[dict[str, Any]]) -> str:
    if not (results and results[0]):
        return "-"
    first = results[0]
    seconds = median(result["seconds"] for result in results)
    cpu = median(result["cpu"] for result in results)
    return f"{seconds:.2f}, CPU {cpu:.2f} ({first['requests']}, {first['most']})"


if __name__ == "__main__":
    main()
