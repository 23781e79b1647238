"""Measure opening trees of groups by xarray: ``python -m benchmarks.trees``.

A tree of scans, each with `--sweeps` groups of three arrays. Each measurement is a process of its
own, which opens a small tree to warm up. Its CPU time counts; with ``--far``, which serves the tree
from an object store whose answers are 30 ms late (`benchmarks.object_server`), its time, and the
requests.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import zarrdask
from benchmarks.object_server import serving

DELAY = 0.03
#: What is measured: the engine, its options, and the package that it needs.
TOOLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "zarrdask": ("zarrdask", {}, "zarrdask"),
    "zarrdask, two groups by group_filter": (
        "zarrdask",
        {"group_filter": ["scan_0/sweep_0", "scan_1/sweep_0"]},
        "zarrdask",
    ),
    "xarray + zarr": ("zarr", {}, "zarr"),
    "rustytree": ("rustytree", {}, "rustytree"),
}


def make(place: Any, scans: int, sweeps: int, *, consolidated: bool = True, **options: Any) -> None:
    """Make a tree in a store: all sweeps are copies of the first one."""
    values = dict[str, bytes]()
    model = zarrdask.create_group(values, "sweep")
    for name, dimensions in (("dbz", ("azimuth", "range")), ("azimuth",) * 2, ("range",) * 2):
        names = (dimensions,) if isinstance(dimensions, str) else dimensions
        z = model.create_array(name, shape=(8,) * len(names), dtype="f4", dimension_names=names)
        z[...] = np.arange(8)
    zarrdask.create_group(place, **options)
    for scan in range(scans):
        zarrdask.create_group(place, f"scan_{scan}", **options)
    store = zarrdask.open_group(place, mode="r+", **options).store
    copies = (
        (key.replace("sweep", f"scan_{scan}/sweep_{sweep}", 1), value)
        for scan in range(scans)
        for sweep in range(sweeps)
        for key, value in values.items()
        if key.startswith("sweep")
    )
    store.set_many(copies)
    if consolidated:
        zarrdask.consolidate_metadata(place, **options)


def measure(tool: str, url: str, server: str, *, consolidated: bool) -> None:
    """Print what opening a tree takes."""
    engine, options, _ = TOOLS[tool]
    how = {"engine": engine, "chunks": None, "consolidated": consolidated, **options}
    if server:
        how["storage_options"] = {"key": "key", "secret": "secret", "endpoint_url": server}
    xr.open_groups(f"{url}-small", **how)
    if server:
        urllib.request.urlopen(f"{server}/-/set", data=b"").close()
    start, cpu = time.perf_counter(), time.process_time()
    groups = xr.open_groups(url, **how)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    text = f"| {tool} | {len(groups)} | {seconds:.2f} s | {cpu:.2f} s |"
    if server:
        with urllib.request.urlopen(f"{server}/-/stats", data=b"") as answer:
            text += f" {sum(json.load(answer)['requests'].values())} |"
    print(text, flush=True)


def main() -> None:
    """Measure each tool in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    parser.add_argument("--scans", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=9)
    parser.add_argument("--far", action="store_true", help="requests that take 30 ms")
    parser.add_argument("--documents", action="store_true", help="without consolidated metadata")
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(*arguments.one, consolidated=not arguments.documents)
        return
    print("| | groups | time | CPU | requests |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as root, serving() as server:
        url, options = f"{root}/tree", dict[str, Any]()
        if arguments.far:
            connection = {"key": "key", "secret": "secret", "endpoint_url": server}
            url, options = "s3://bench/tree", {"storage_options": connection}
        options["consolidated"] = not arguments.documents
        make(f"{url}-small", 2, 2, **options)
        make(url, arguments.scans, arguments.sweeps, **options)
        if arguments.far:
            urllib.request.urlopen(f"{server}/-/set?delay={DELAY}", data=b"").close()
        for tool in arguments.tools:
            if find_spec(TOOLS[tool][2]) is None:
                print(f"| {tool} | not installed | | | |")
                continue
            flags = ["--documents"] if arguments.documents else []
            one = ["--one", tool, url, server if arguments.far else ""]
            subprocess.run(
                [sys.executable, "-m", "benchmarks.trees", *flags, *one],
                check=False,
                cwd=Path(__file__).resolve().parents[1],
            )


if __name__ == "__main__":
    main()
