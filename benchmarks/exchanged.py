"""Other blocks within a computation: the sum of time series of an array that is stored as maps.

The job is that of https://github.com/dask/dask/issues/11162, where (96432, 721, 1440) float32 in
blocks of (1, 721, 1440) gets blocks of (8760, 72, 144), scaled by 10 along time and by 4 along the
others: (9643, 181, 360), 2.3 GiB. It runs on a cluster of two processes with a thread and a memory
limit each, which end and restart workers that exceed it. `rechunk` stores the array with the other
chunks, and computes nothing else.

    python -m benchmarks.exchanged [--times 9643] [--memory 1GiB] [--timeout 600] [--data DIR]
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import dask
import dask.array as da
import numpy as np

import zarrdask
from benchmarks.timing import outcome

SHAPE, BLOCKS = (9643, 181, 360), (876, 18, 36)
WORKERS = 2


def make(place: Path, times: int) -> None:
    """Store the array, unless it is there."""
    try:
        if zarrdask.open_array(place).shape[0] == times:
            return
    except zarrdask.ZarrdaskError:
        pass
    x = da.random.default_rng(0).random((times, *SHAPE[1:]), "f4", chunks=(64, *SHAPE[1:]))
    zarrdask.to_zarr(x, place, chunks=(1, *SHAPE[1:]), mode="w", compressors=None)


def anomalies(place: Path) -> da.Array:
    """Return what is computed from the stored array, in blocks of one time each."""
    x = zarrdask.from_zarr(place, chunks=(1, *SHAPE[1:]))
    return x - np.float32(0.5)


def summed(rechunk: Callable[[da.Array], da.Array]) -> Callable[[Path, Path], float]:
    """Return the job for a way to exchange blocks."""

    def job(place: Path, _: Path) -> float:
        return float(rechunk(anomalies(place)).sum(dtype="f8").compute())

    return job


def with_method(method: str) -> Callable[[da.Array], da.Array]:
    """Return Dask's own way to exchange blocks."""

    def rechunk(x: da.Array) -> da.Array:
        with dask.config.set({"array.rechunk.method": method}):
            return x.rechunk(BLOCKS)

    return rechunk


def through_store(x: da.Array) -> da.Array:
    """Exchange blocks through temporary objects."""
    return zarrdask.rechunked(x, BLOCKS)


def from_store(place: Path, _: Path) -> float:
    """Sum the stored array itself, which has chunks of one time each."""
    x = zarrdask.rechunked(zarrdask.from_zarr(place), BLOCKS)
    return float((x - np.float32(0.5)).sum(dtype="f8").compute())


def stored(place: Path, data: Path) -> None:
    """Store the array with other chunks."""
    target = data / "target.zarr"
    plan = zarrdask.rechunk(place, target, chunks=BLOCKS, compressors=None, overwrite=True)
    plan.execute(progress=False)
    shutil.rmtree(target)


JOBS: dict[str, Callable[[Path, Path], Any]] = {
    "zarrdask.rechunk": stored,
    "zarrdask.rechunked": summed(through_store),
    "zarrdask.rechunked (stored)": from_store,
    "dask tasks": summed(with_method("tasks")),
    "dask p2p": summed(with_method("p2p")),
}


def peak() -> int:
    """Return the most bytes of memory that this process has had (Linux only)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def run(name: str, data: Path, memory: str) -> None:
    """Do a job in a cluster of its own, and print what it took, as JSON."""
    from distributed import Client, LocalCluster

    options = {"memory_limit": memory, "dashboard_address": None, "silence_logs": 50}
    options["local_directory"] = str(data / "workers")
    with (
        dask.config.set({"temporary-directory": str(data)}),
        LocalCluster(WORKERS, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        processes = set(client.run(lambda: __import__("os").getpid()).values())
        client.run(lambda: __import__("zarrdask.parallel.rewrite.rechunked"))
        start = perf_counter()
        result = JOBS[name](data / "maps.zarr", data)
        seconds = perf_counter() - start
        peaks = client.run(peak)
        killed = processes - set(client.run(lambda: __import__("os").getpid()).values())
        facts = {"seconds": seconds, "memory": max(peaks.values()), "sum": result}
        print(json.dumps({**facts, "killed": len(killed)}))


def describe(found: dict[str, Any]) -> str:
    """Return an outcome for the terminal."""
    if "failed" in found:
        return str(found["failed"])
    text = f"{found['seconds']:.1f} s, {found['memory'] / 2**20:.0f} MiB in a worker"
    if found["killed"]:
        text += f", {found['killed']} workers ended"
    return text if found["sum"] is None else f"{text}, sum {found['sum']:.6g}"


def measure(name: str, data: Path, memory: str, timeout: float) -> dict[str, Any]:
    """Do a job in a process of its own, and return what it took, or why it failed."""
    options = ("--job", name, "--data", data, "--memory", memory)
    return outcome("exchanged", *options, timeout=timeout)


def main() -> None:
    """Do each job in a process of its own."""
    parser = argparse.ArgumentParser(description="Other blocks within a computation.")
    parser.add_argument("--times", type=int, default=SHAPE[0])
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default=",".join(JOBS))
    parser.add_argument("--job")
    options = parser.parse_args()
    if options.job:
        run(options.job, options.data, options.memory)
        return
    data = options.data or Path(tempfile.mkdtemp(prefix="zarrdask-benchmark-"))
    data.mkdir(exist_ok=True)
    make(data / "maps.zarr", options.times)
    for name in JOBS:
        if name not in options.only.split(","):
            continue
        found = measure(name, data, options.memory, options.timeout)
        print(f"{name:28} {describe(found)}", flush=True)
    if options.data is None:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    main()
