"""Measure arrays of very many blocks, most of them missing: ``python -m benchmarks.sparse``.

Each measurement is a process of its own, on two threads of Dask. The table has seconds of work of
all threads, which other work of the machine changes little, and in brackets elapsed seconds.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import dask
import dask.array as da
import numpy as np

import zarrdask

#: 50,000 chunks of 256 KiB, and how many of them are stored.
COUNTS, LENGTH, SHARE = (250, 200), 256, 0.03


def make(folder: Path) -> None:
    """Make an array of which few chunks are stored, and one of 10^7 chunks without any."""
    shape = tuple(n * LENGTH for n in COUNTS)
    z = zarrdask.create_array(folder / "sparse", shape=shape, dtype="f4", chunks=LENGTH)
    rng = np.random.default_rng(0)
    size = COUNTS[0] * COUNTS[1]
    for number in rng.choice(size, int(size * SHARE), replace=False).tolist():
        z.blocks[divmod(number, COUNTS[1])] = rng.random((LENGTH, LENGTH), "f4")
    zarrdask.create_array(folder / "large", shape=(10**7, 10**6), dtype="f4", chunks=1000)


def _lazy(tool: str, path: Path) -> da.Array:
    if tool == "dask + zarr-python":
        return da.from_zarr(str(path))
    return zarrdask.from_zarr(path, chunks="stored", skip_missing=tool == "zarrdask")


def _copy(tool: str, folder: Path) -> Any:
    x, target = _lazy(tool, folder / "sparse") + 0, folder / "copy"
    return x.to_zarr(str(target)) if "+" in tool else zarrdask.to_zarr(x, target)


#: What is measured, given the name of a tool and the folder of the data.
JOBS: dict[str, Callable[[str, Path], Any]] = {
    "open": lambda tool, folder: _lazy(tool, folder / "sparse"),
    "mean": lambda tool, folder: _lazy(tool, folder / "sparse").mean().compute(),
    "copy": _copy,
    "half of 10^7 blocks": lambda tool, folder: _lazy(tool, folder / "large")[: 5 * 10**6],
}
TOOLS = ("zarrdask", "zarrdask, all blocks", "dask + zarr-python")


def measure(job: str, tool: str, folder: Path) -> str:
    """Return the times of a job."""
    JOBS["open"](tool, folder)  # whatever is imported by it
    work, start = process_time(), perf_counter()
    with dask.config.set(scheduler="threads", num_workers=2):
        JOBS[job](tool, folder)
    return f"{process_time() - work:.2f} ({perf_counter() - start:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("JOB", "TOOL", "FOLDER"), help="in this process")
    options = parser.parse_args()
    if options.one:
        job, tool, folder = options.one
        print(measure(job, tool, Path(folder)))
        return
    tools = [tool for tool in TOOLS if "+" not in tool or find_spec("zarr")]
    print(f"| | {' | '.join(tools)} |")
    print(f"|---|{'---|' * len(tools)}")
    for job in JOBS:
        cells = []
        for tool in tools:
            with tempfile.TemporaryDirectory() as folder:
                make(Path(folder))
                command = [sys.executable, "-m", "benchmarks.sparse", "--one", job, tool, folder]
                run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                cells.append(run.stdout.strip())
        print(f"| {job} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
