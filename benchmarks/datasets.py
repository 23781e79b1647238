"""Measure xarray with zarrdask and with its own engine: ``python -m benchmarks.datasets``.

Each measurement is a process of its own, which does the job once to warm up and then several times;
the shortest time counts, and the least CPU time. Requests that take 50 ms take it for all of them,
by a file system of fsspec.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr

from benchmarks import machine, slow
from benchmarks.__main__ import HERE, installed

#: What is timed: it gets the number of the round.
Job = Callable[[int], Any]

FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"
TOOLS = ("zarrdask", "zarr", "zarr fused")
ROWS = {
    "open": "open 20 variables and 5 coordinates",
    "open-plain": "the same, not consolidated",
    "mean": "`ds.mean()`, 64 KiB chunks, 64 MiB",
    "mean-shards": "`ds.mean()`, 64 KiB chunks in shards",
    "months": "monthly means, `xr.open_dataset(chunks={})`, 108 KiB chunks, 154 MiB",
    "series": "a time series at a point, 64 chunks",
    "write": "`ds.to_zarr`, 64 MiB, 256 KiB chunks",
    "append": "append one step to 20 variables",
}


def engine(tool: str) -> tuple[Callable[..., xr.Dataset], Callable[..., Any]]:
    """Return what opens a dataset, and what writes one."""
    if tool == "zarrdask":
        import zarrdask.xarray

        return zarrdask.xarray.open_zarr, zarrdask.xarray.to_zarr
    import zarr

    if tool == "zarr fused":
        zarr.config.set({"codec_pipeline.path": FUSED})
    return xr.open_zarr, xr.Dataset.to_zarr


def field(shape: tuple[int, ...]) -> np.ndarray:
    """Return values that compress to about a half."""
    return np.random.default_rng(0).normal(280, 10, shape).astype("f4").round(1)


def many(steps: int, start: int = 0) -> xr.Dataset:
    """Return 20 variables along time, with five coordinates."""
    values = field((steps, 32, 64))
    times = pd.date_range("2000-01-01", periods=start + steps, freq="h")[start:]
    return xr.Dataset(
        {f"v{n:02}": (("time", "lat", "lon"), values) for n in range(20)},
        {
            "time": times,
            "lat": np.linspace(-90, 90, 32),
            "lon": np.arange(64.0),
            "step": ("time", np.arange(steps)),
            "height": 2.0,
        },
    )


def large(step: int) -> xr.Dataset:
    """Return 64 MiB in blocks of some steps."""
    x = da.from_array(field((256, 256, 256)), chunks=(step, 256, 256))
    return xr.Dataset({"t": (("time", "y", "x"), x)}, {"time": np.arange(256)})


def year() -> xr.Dataset:
    """Return 154 MiB: a year of values, eight a day."""
    times = pd.date_range("2001-01-01", periods=2920, freq="3h")
    x = da.from_array(field((2920, 96, 144)), chunks=(80, 96, 144))
    return xr.Dataset({"t": (("time", "lat", "lon"), x)}, {"time": times})


def monthly(place: str, tool: str) -> xr.Dataset:
    """Return the means of the months of a dataset that is opened by xarray's own function."""
    name = "zarrdask" if tool == "zarrdask" else "zarr"
    ds = xr.open_dataset(place, engine=name, chunks={})
    return ds.groupby("time.month").mean().compute()


def prepare(row: str, tool: str, place: str, root: Path) -> Job:
    """Return a job on data that are made now, by xarray's own engine."""
    open_zarr, to_zarr = engine(tool)
    if row in ("open", "open-plain"):
        many(24).to_zarr(root / "d", consolidated=row == "open", zarr_format=3)
        return lambda _: open_zarr(f"{place}/d")
    if row in ("mean", "mean-shards"):
        encoding: dict[str, Any] = {"chunks": (1, 128, 128)}
        if row == "mean-shards":
            encoding["shards"] = (64, 256, 256)
        large(64).to_zarr(root / "d", encoding={"t": encoding}, zarr_format=3)
        return lambda _: open_zarr(f"{place}/d").mean().compute()
    if row == "months":
        year().to_zarr(root / "d", encoding={"t": {"chunks": (8, 48, 72)}}, zarr_format=3)
        return lambda _: monthly(f"{place}/d", tool)
    if row == "series":
        large(64).to_zarr(root / "d", encoding={"t": {"chunks": (4, 64, 64)}}, zarr_format=3)
        return lambda _: open_zarr(f"{place}/d").t.isel(y=100, x=100).compute()
    if row == "write":
        # Blocks end where chunks do, so that nobody has to move boundaries.
        ds, encoding = large(64).persist(), {"t": {"chunks": (1, 256, 256)}}
        return lambda n: to_zarr(ds, f"{place}/{n}", encoding=encoding, zarr_format=3)
    many(24).to_zarr(root / "d", zarr_format=3)
    steps = [many(1, 24 + n) for n in range(100)]
    return lambda n: to_zarr(steps[n], f"{place}/d", append_dim="time")


def measure(row: str, tool: str, rounds: int, *, far: bool) -> dict[str, float]:
    """Return the shortest time, and the least CPU time."""
    warnings.simplefilter("ignore")
    root = Path(tempfile.mkdtemp())
    place = f"{slow.SlowFileSystem.protocol}://{root}" if far else str(root)
    try:
        with dask.config.set(scheduler="threads", num_workers=2):
            job = prepare(row, tool, place, root)
            job(0)
            times = []
            for number in range(1, rounds + 1):
                start = time.perf_counter(), time.process_time()
                job(number)
                times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    finally:
        rmtree(root)
    seconds, cpu = map(min, zip(*times, strict=True))
    return {"seconds": seconds, "cpu": cpu}


def in_process(row: str, tool: str, rounds: int, *, far: bool) -> dict[str, float] | None:
    """Measure in a process of its own."""
    machine.wait(20)
    command = [sys.executable, "-m", "benchmarks.datasets", "--one", row, tool, str(int(far))]
    done = subprocess.run(
        [*command, "--rounds", str(rounds)],
        cwd=HERE,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return json.loads(done.stdout) if not done.returncode else None


def cell(result: dict[str, float] | None, ours: dict[str, float] | None) -> str:
    """Return a time and, of others, its ratio to zarrdask's; that of CPU time in brackets."""
    if result is None or ours is None:
        return ""
    if result is ours:
        return f"{result['seconds'] * 1000:.0f} ms"
    return f"{result['seconds'] / ours['seconds']:.1f} ({result['cpu'] / ours['cpu']:.1f})"


def main() -> None:
    """Measure all rows, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        row, tool, far = options.one
        print(json.dumps(measure(row, tool, options.rounds, far=far == "1")))
        return
    tools = [tool for tool in TOOLS if tool != "zarr fused" or has_fused()]
    print(f"| job | {' | '.join(tools)} |\n|---{'|---' * len(tools)}|")
    for row in options.rows.split(","):
        for far in (False, True):
            found = [in_process(row, tool, options.rounds, far=far) for tool in tools]
            cells = " | ".join(map(partial(cell, ours=found[0]), found))
            print(f"| {ROWS[row]}{', 50 ms' if far else ''} | {cells} |", flush=True)


def has_fused() -> bool:
    """Whether zarr-python has the newer codec pipeline."""
    if not installed("zarr"):
        return False
    from zarr.core import codec_pipeline

    return hasattr(codec_pipeline, FUSED.rpartition(".")[2])


if __name__ == "__main__":
    main()
