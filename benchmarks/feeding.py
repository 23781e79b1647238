"""Measure batches, points and cubes beside other tools: ``python -m benchmarks.feeding``.

Each measurement is a process of its own, and contestants take turns. The tables have seconds of
work of all threads, which other work of the machine changes little, elapsed seconds, and how much
the memory of the process grew; in brackets the ratio of the work to that of zarrdask. Contestants
that are not installed are left out: insitubatch, xbatcher, tensorstore, and xarray with zarr.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import dask.array as da
import numpy as np

import zarrdask
from benchmarks import machine

#: Samples of 91 x 180 float32, and how many are in a batch, and in a chunk.
SAMPLES, SHAPE, BATCH, WIDTHS = 2048, (91, 180), 32, (1, 8, 32)
#: The memory for chunks and batches, in parts of the data.
PARTS = (0.05, 0.1, 0.5)
#: An array of 288 chunks, of which points are read.
GRID, GRID_CHUNKS = (48, 720, 1440), (8, 120, 180)
#: Cubes with halos around some points of an array of 1000^3.
CUBE, CUBE_CHUNKS, CENTRES, HALO = 1000, 100, 1000, 30

#: What is timed: it returns the sum of all elements that it has read.
Job = Callable[[], float]


def make(folder: Path) -> None:
    """Make the arrays, with the values of random walks."""
    rng = np.random.default_rng(0)
    walks = rng.integers(-9, 10, (SAMPLES, *SHAPE)).cumsum(axis=-1).astype("f4")
    names = ("n", "y", "x")
    for width in WIDTHS:
        group = zarrdask.create_group(folder / f"samples{width}")
        options: dict[str, Any] = {"chunks": (width, *SHAPE), "dimension_names": names}
        z = group.create_array("t", shape=walks.shape, dtype="f4", **options)
        z[...] = walks
    group = zarrdask.create_group(folder / "points")
    z = group.create_array("t", shape=GRID, dtype="f4", chunks=GRID_CHUNKS, dimension_names=names)
    z[...] = rng.integers(-9, 10, GRID).cumsum(axis=-1)
    z = zarrdask.create_array(folder / "cube", shape=(CUBE,) * 3, dtype="u1", chunks=CUBE_CHUNKS)
    for start in range(0, CUBE, CUBE_CHUNKS):
        part = rng.integers(0, 16, (CUBE_CHUNKS, CUBE, CUBE), "u1")
        z[start : start + CUBE_CHUNKS] = part


def _tensorstore(path: Path, cached: int = 0) -> Any:
    import tensorstore as ts

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    context = {"cache_pool": {"total_bytes_limit": cached}}
    return ts.open({**spec, "context": context}).result()


def _xarray(path: Path) -> Any:
    import xarray as xr

    return xr.open_zarr(path, chunks=None, consolidated=False).t


# ---- batches


def _by_zarrdask(path: Path, memory: int) -> Iterator[np.ndarray]:
    yield from zarrdask.batches(zarrdask.open_array(path / "t"), batch=BATCH, memory=memory)


def _by_insitubatch(path: Path, memory: int) -> Iterator[np.ndarray]:
    import insitubatch

    store = insitubatch.obstore_store(f"file://{path}")
    geometries = insitubatch.open_geometries(store, variables=["t"])
    manifest = insitubatch.split_by_chunk(geometries["t"], fractions=(1.0, 0.0, 0.0))
    chunk = zarrdask.open_array(path / "t").chunks[0] * SHAPE[0] * SHAPE[1] * 4
    options = {"batch_size": BATCH, "block_chunks": max(memory // chunk, 1)}
    dataset = insitubatch.InSituDataset(store, manifest, geometries=geometries, **options)
    for batch in dataset.train:
        yield batch.arrays["t"]


def _by_tensorstore(path: Path, memory: int) -> Iterator[np.ndarray]:
    t = _tensorstore(path / "t", memory)
    for numbers in _orders():
        yield np.stack([read.result() for read in [t[n].read() for n in numbers]])


def _by_xarray(path: Path, memory: int) -> Iterator[np.ndarray]:
    x = _xarray(path)
    for numbers in _orders():
        yield x.isel(n=numbers).values


def _by_xbatcher(path: Path, memory: int) -> Iterator[np.ndarray]:
    import xbatcher

    samples = xbatcher.BatchGenerator(_xarray(path), {"n": 1, "y": SHAPE[0], "x": SHAPE[1]})
    for numbers in _orders():
        yield np.concatenate([samples[n].values for n in numbers])


def _orders() -> Iterator[list[int]]:
    order = np.random.default_rng(1).permutation(SAMPLES)
    yield from (each.tolist() for each in np.split(order, SAMPLES // BATCH))


#: The last two have no memory for chunks.
BATCHES: dict[str, Callable[[Path, int], Iterator[np.ndarray]]] = {
    "zarrdask": _by_zarrdask,
    "insitubatch": _by_insitubatch,
    "tensorstore": _by_tensorstore,
    "xarray + zarr": _by_xarray,
    "xbatcher": _by_xbatcher,
}


def _epoch(tool: str, folder: Path, width: int, part: float) -> Job:
    memory = int(part * SAMPLES * SHAPE[0] * SHAPE[1] * 4)
    path = folder / f"samples{width}"

    def run() -> float:
        return sum(float(batch.sum(dtype="f8")) for batch in BATCHES[tool](path, memory))

    return run


# ---- points and cubes


def _points(tool: str, folder: Path, count: int) -> Job:
    rng, path = np.random.default_rng(1), folder / "points"
    index = tuple(rng.integers(0, size, count) for size in GRID)
    reads: dict[str, Callable[[], Any]] = {
        "zarrdask": lambda: zarrdask.open_array(path / "t").vindex[index],
        "zarrdask, Dask": lambda: _computed(zarrdask.from_zarr(path / "t").vindex[index]),
        "tensorstore": lambda: _tensorstore(path / "t").vindex[index].read().result(),
        "xarray + zarr": lambda: _pointwise(_xarray(path), index),
        "dask + zarr": lambda: _computed(da.from_zarr(str(path / "t")).vindex[index]),
    }
    return lambda: float(np.sum(reads[tool](), dtype="f8"))


def _computed(x: Any) -> Any:
    return x.compute()


def _pointwise(x: Any, index: tuple[np.ndarray, ...]) -> Any:
    import xarray as xr

    pairs = zip(x.dims, index, strict=True)
    return x.isel({dim: xr.Variable("point", each) for dim, each in pairs}).values


def _halos(tool: str, folder: Path) -> Job:
    path, rng = folder / "cube", np.random.default_rng(1)
    points, size = rng.integers(HALO, CUBE - HALO, (CENTRES, 3)), 2 * HALO + 1
    parts = [tuple(slice(n - HALO, n + HALO + 1) for n in point) for point in points.tolist()]

    def by_tensorstore() -> np.ndarray:
        t = _tensorstore(path)
        return np.stack([read.result() for read in [t[part].read() for part in parts]])

    def by_dask() -> Any:
        x = da.from_zarr(str(path))
        return da.stack([x[part] for part in parts]).compute()

    reads: dict[str, Callable[[], Any]] = {
        "zarrdask": lambda: zarrdask.sample(zarrdask.open_array(path), points, size),
        "zarrdask, Dask": lambda: zarrdask.sample(zarrdask.from_zarr(path), points, size).compute(),
        "tensorstore": by_tensorstore,
        "dask + zarr": by_dask,
    }
    return lambda: float(np.sum(reads[tool](), dtype="f8"))


ALL = ("zarrdask", "zarrdask, Dask", "tensorstore", "xarray + zarr", "dask + zarr")
PACKAGES = {"tensorstore": "tensorstore", "insitubatch": "insitubatch", "xbatcher": "xbatcher"}


def jobs() -> dict[str, tuple[tuple[str, ...], Callable[[str, Path], Job]]]:
    """Return what is measured, by its name: the contestants, and what makes the job of one."""
    found: dict[str, tuple[tuple[str, ...], Callable[[str, Path], Job]]] = {}
    for part in PARTS:
        for width in WIDTHS:
            # Those without memory for chunks take the same time with any.
            tools = tuple(BATCHES)[: None if part == PARTS[1] else 3]
            found[f"{width} a chunk, memory {part:.0%}"] = (
                tools,
                lambda tool, folder, width=width, part=part: _epoch(tool, folder, width, part),
            )
    for power in (5, 6):
        count = 10**power
        found[f"10^{power} points"] = (
            ALL,
            lambda tool, folder, count=count: _points(tool, folder, count),
        )
    found["10^3 cubes of 61^3"] = ALL[:3] + ALL[4:], _halos
    return found


def measure(job: str, tool: str, folder: Path) -> None:
    """Print what a job takes in this process, as JSON, after it has done a small one."""
    if "memory" in job:
        next(BATCHES[tool](folder / f"samples{WIDTHS[0]}", 2**22))
    else:
        _points(tool, folder, 9)()
    run = jobs()[job][1](tool, folder)
    machine.forget_peak()
    held, _ = machine.memory()
    began, start = process_time(), perf_counter()
    total = run()
    seconds, cpu = perf_counter() - start, process_time() - began
    _, peak = machine.memory()
    print(json.dumps({"seconds": seconds, "cpu": cpu, "memory": peak - held, "total": total}))


def rows(folder: Path, chosen: str, repeat: int) -> Iterator[str]:
    """Yield the lines of the tables."""
    every = {name: each for name, each in jobs().items() if chosen in name}
    for tools, group in groupby(every.items(), lambda item: item[1][0]):
        names = [name for name in tools if find_spec(PACKAGES.get(name, "zarr"))]
        yield f"| | {' | '.join(names)} |"
        yield "|---" * (len(names) + 1) + "|"
        for job, _ in group:
            found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
            for _ in range(repeat):
                for name in names:
                    found[name].append(_one(job, name, folder))
            totals = {round(one["total"]) for each in found.values() for one in each}
            if len(totals) > 1:
                raise RuntimeError(f"{job}: the sums differ: {totals}")
            cpu = {name: median(one["cpu"] for one in each) for name, each in found.items()}
            cells = [
                f"{cpu[name]:.2f} ({cpu[name] / cpu[names[0]]:.2f}), "
                f"{median(one['seconds'] for one in found[name]):.2f} s, "
                f"{median(one['memory'] for one in found[name]) / 2**20:.0f} MiB"
                for name in names
            ]
            yield f"| {job} | {' | '.join(cells)} |"


def _one(job: str, tool: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.feeding", "--one", job, tool, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("JOB", "TOOL", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="the jobs that have this in their names")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the median counts")
    parser.add_argument("--data", type=Path, help="where the arrays are, or are made")
    options = parser.parse_args()
    if options.one:
        measure(options.one[0], options.one[1], Path(options.one[2]))
        return
    with tempfile.TemporaryDirectory() as own:
        folder = options.data or Path(own)
        if not (folder / "cube").exists():
            make(folder)
        print(machine.about(), flush=True)
        for line in rows(folder, options.only, options.repeat):
            print(line, flush=True)


if __name__ == "__main__":
    main()
