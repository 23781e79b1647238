"""Measure `zarrdask.pyramid` beside other software: ``python -m benchmarks.pyramids DIRECTORY``.

Each contestant reads the same array of smooth and noisy uint8, and writes five levels of means with
its own defaults for codecs: in a process of its own, after the same work on a tiny array, in turn
in each round. Times are the least of all rounds, in seconds of the clock and of the processor,
since machines are seldom quiet; memory is the most that the process takes above what it has before.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import zarrdask
from benchmarks import machine
from benchmarks.data import made

LEVELS = 5
CHUNK = 512
#: That of the source and of the others, with a checksum: so no bytes of the source can be copied.
ENCODED_ANEW = [{"name": "zstd", "configuration": {"level": 0, "checksum": True}}]
FACTORS = [{"z": 1, "y": 2**n, "x": 2**n} for n in range(1, LEVELS)]
#: The shape of each job, and that of its shards.
JOBS: dict[str, tuple[tuple[int, int, int], tuple[int, int, int] | None]] = {
    "tiny": ((2, 2 * CHUNK, 2 * CHUNK), None),
    "chunks": ((16, 4096, 4096), None),
    "shards": ((16, 4096, 4096), (1, 4096, 4096)),
    # A quarter of the length and the width of 30 x 15,000 x 15,000.
    "ngff-zarr#48": ((30, 3750, 3750), None),
}


def make(root: Path, name: str) -> Path:
    """Return the place of the array of a job, which is made if it is not there."""
    shape, shards = JOBS[name]

    def write(path: Path) -> None:
        group, rng = zarrdask.create_group(path), np.random.default_rng(0)
        z = group.create_array(
            "image",
            shape=shape,
            dtype="u1",
            chunks=(1, CHUNK, CHUNK),
            shards=shards,
            dimension_names=("z", "y", "x"),
        )
        y, x = np.ogrid[: shape[1], : shape[2]]
        for n in range(shape[0]):
            smooth = 100 + 60 * np.sin(y / 90 + n) * np.cos(x / 70)
            z[n] = (smooth + rng.normal(0, 4, shape[1:])).astype("u1")

    return made(root / f"{name.replace('#', '-')}.zarr", write)


# ---- contestants


def ours(source: Path, target: Path) -> None:
    """Copy the encoded bytes of level 0."""
    plan = zarrdask.pyramid(source / "image", target, levels=LEVELS)
    plan.execute("threads", progress=False)


def ours_encoded(source: Path, target: Path) -> None:
    """Encode level 0 as well, as others do."""
    options = {"levels": LEVELS, "compressors": ENCODED_ANEW}
    zarrdask.pyramid(source / "image", target, **options).execute("threads", progress=False)


def ours_copied(source: Path, target: Path) -> None:
    """Write level 0 alone, encoded anew: what the time of a pyramid is compared with."""
    options = {"compressors": ENCODED_ANEW, "scheduler": "threads"}
    zarrdask.copy(source / "image", target / "0", **options)


def topozarr(source: Path, target: Path) -> None:
    """Write a raster of several bands."""
    import xarray as xr
    import xproj  # noqa: F401 - the accessor ds.proj
    from topozarr.coarsen import create_pyramid

    ds = xr.open_zarr(source, chunks=None, consolidated=False)[["image"]]
    ds = ds.proj.assign_crs(spatial_ref="EPSG:3857")
    shards = 8 if ds.image.encoding.get("shards") else None
    sizes = {"target_chunk_bytes": CHUNK**2, "chunks_per_shard": shards}
    create_pyramid(ds, levels=LEVELS, **sizes).write(target)


def ngff_zarr(source: Path, target: Path) -> None:
    """Write by ngff-zarr, with the means of blocks."""
    import dask.array as da
    import ngff_zarr as nz

    image = nz.to_ngff_image(da.from_zarr(str(source / "image")), dims=["z", "y", "x"])
    chunks = {"z": 1, "y": CHUNK, "x": CHUNK}
    levels = nz.to_multiscales(image, FACTORS, nz.Methods.DASK_BIN_SHRINK, chunks=chunks)
    nz.to_ngff_zarr(str(target), levels, version="0.5")


def ome_zarr(source: Path, target: Path) -> None:
    """Write by ome-zarr-py, with local means."""
    import dask.array as da
    from ome_zarr.scale import Methods
    from ome_zarr.writer import write_image

    x = da.from_zarr(str(source / "image"))
    options = {"chunks": (1, CHUNK, CHUNK)}
    method = Methods.LOCAL_MEAN
    write_image(x, str(target), FACTORS, axes="zyx", method=method, storage_options=options)


TOOLS: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    "zarrdask": ("zarrdask", ours),
    "zarrdask, encoded": ("zarrdask", ours_encoded),
    "zarrdask, level 0 alone": ("zarrdask", ours_copied),
    "topozarr": ("topozarr", topozarr),
    "ngff-zarr": ("ngff-zarr", ngff_zarr),
    "ome-zarr-py": ("ome-zarr", ome_zarr),
}


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


def measure(tool: str, job: str, root: Path) -> dict[str, float]:
    """Do a job in this process, after a tiny one."""
    import dask

    _, run = TOOLS[tool]
    source, target = make(root, job), root / "written.zarr"
    shutil.rmtree(target, ignore_errors=True)  # of a run that has failed
    with dask.config.set(scheduler="threads", num_workers=machine.CORES):
        run(make(root, "tiny"), target)
        shutil.rmtree(target)
        machine.forget_peak()
        held, _ = machine.memory()
        before, start = processor_seconds(), perf_counter()
        run(source, target)
        seconds, processor = perf_counter() - start, processor_seconds() - before
        _, peak = machine.memory()
    shutil.rmtree(target)
    return {"seconds": seconds, "processor": processor, "memory": peak - held}


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return a table of Markdown, with ratios to zarrdask that encodes level 0."""
    lines = ["| job | contestant | seconds | processor | MiB |", "|---|---|---|---|---|"]
    for job, found in results.items():
        ours = found.get("zarrdask, encoded")
        for tool, least in found.items():
            cells = [f"{least[key]:.2f}" for key in ("seconds", "processor")]
            if ours is not None and not tool.startswith("zarrdask"):
                keys = "seconds", "processor"
                cells = [
                    f"{c} ({least[k] / ours[k]:.1f})" for c, k in zip(cells, keys, strict=True)
                ]
            memory = f"{least['memory'] / 2**20:.0f}"
            lines.append(f"| {' | '.join([job, tool, *cells, memory])} |")
    return "\n".join(lines)


def named(tool: str) -> str | None:
    """Return a contestant with its version; None if it is not installed."""
    try:
        return f"{tool} {version(TOOLS[tool][0])}"
    except PackageNotFoundError:
        return tool if tool.startswith("zarrdask") else None


def main() -> None:
    """Run the contestants, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--jobs", nargs="+", default=[*JOBS][1:], choices=[*JOBS])
    parser.add_argument("--tools", nargs="+", default=[*TOOLS], choices=[*TOOLS])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--run", nargs=2, metavar=("TOOL", "JOB"))
    options = parser.parse_args()
    if options.run:
        print(json.dumps(measure(*options.run, options.root)))
        return
    tools = {tool: name for tool in options.tools if (name := named(tool))}
    results: dict[str, dict[str, Any]] = {}
    for job in options.jobs:
        make(options.root, job)
        found = results.setdefault(job, {})
        for _ in range(options.repeat):
            for tool in tools:
                command = [sys.executable, "-m", "benchmarks.pyramids", str(options.root)]
                done = subprocess.run(
                    [*command, "--run", tool, job], stdout=subprocess.PIPE, text=True, check=False
                )
                if done.returncode:
                    print(f"{job}: {tool} failed", file=sys.stderr)
                    continue
                result = json.loads(done.stdout.splitlines()[-1])
                least = found.get(tool, result)
                found[tool] = {key: min(least[key], result[key]) for key in result}
    print(", ".join(tools.values()))
    print(table(results))


if __name__ == "__main__":
    main()
