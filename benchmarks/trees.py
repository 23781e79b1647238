"""Measure opening trees of groups by xarray: ``python -m benchmarks.trees``.

A tree of scans, each with `--sweeps` groups of three arrays. All sweeps are alike; with
``--distinct`` their arrays have different attributes. Each measurement is a process of its own,
which opens a small tree to warm up. Its CPU time counts, and how much of it is spent on the
documents, before xarray makes datasets of them; with ``--far``, which serves the tree from an
object store whose answers are 30 ms late (`benchmarks.object_server`), its time, and the requests.
``--scans 2 --sweeps 5000`` is a tree in which the pattern ``/*/sweep_0`` chooses two groups.
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
    "zarrdask, /*/sweep_0": ("zarrdask", {"group_filter": "/*/sweep_0"}, "zarrdask"),
    "xarray + zarr": ("zarr", {}, "zarr"),
    # It reads no consolidated metadata.
    "rustytree": ("rustytree", {"consolidated": False}, "rustytree"),
    "rustytree, /*/sweep_0": (
        "rustytree",
        {"consolidated": False, "group_filter": "/*/sweep_0"},
        "rustytree",
    ),
}


def connection(engine: str, server: str) -> dict[str, str]:
    """Return the storage options of an engine."""
    if engine != "rustytree":
        return {"key": "key", "secret": "secret", "endpoint_url": server}
    return {
        "access_key_id": "key",
        "secret_access_key": "secret",
        "endpoint": server,
        "region": "us-east-1",
        "allow_http": "true",
    }


def make(
    place: Any,
    scans: int,
    sweeps: int,
    *,
    consolidated: bool = True,
    distinct: bool = False,
    **options: Any,
) -> None:
    """Make a tree in a store: all sweeps are copies of the first one, but for attributes."""
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

    def copied(key: str, value: bytes, number: int) -> bytes:
        if not distinct or not key.endswith(".json"):
            return value
        attributes = {"units": "dBZ", "scan": f"number {number}", "range": [number, number + 1]}
        return json.dumps(json.loads(value) | {"attributes": attributes}).encode()

    copies = (
        (
            key.replace("sweep", f"scan_{scan}/sweep_{sweep}", 1),
            copied(key, value, scan * sweeps + sweep),
        )
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
        how["storage_options"] = connection(engine, server)
    # rustytree has no `open_groups`; a tree of xarray takes longer to make than a dict.
    opened = xr.open_datatree if engine == "rustytree" else xr.open_groups
    opened(f"{url}-small", **how)
    if server:
        urllib.request.urlopen(f"{server}/-/set", data=b"").close()
    start, cpu = time.perf_counter(), time.process_time()
    groups = opened(url, **how)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    requests = ""
    if server:
        with urllib.request.urlopen(f"{server}/-/stats", data=b"") as answer:
            requests = str(sum(json.load(answer)["requests"].values()))
    number = len(groups.groups) if engine == "rustytree" else len(groups)
    cells = (number, f"{seconds:.3f} s", f"{cpu:.3f} s", _of_documents(how, url), requests)
    print(f"| {tool} | {' | '.join(map(str, cells))} |", flush=True)


def _of_documents(how: dict[str, Any], url: str) -> str:
    """Return the CPU time until zarrdask has the metadata of all arrays, and the coordinates."""
    if how["engine"] != "zarrdask":
        return ""
    from zarrdask.arrays.hierarchy.group_filter import GroupFilter
    from zarrdask.xarray.coordinates import read_coordinates
    from zarrdask.xarray.datastore import Hierarchy, OpenOptions

    chosen = how.get("group_filter")
    options = OpenOptions(
        consolidated=how["consolidated"],
        storage_options=how.get("storage_options"),
        group_filter=None if chosen is None else GroupFilter.of(chosen),
    )
    cpu = time.process_time()
    read_coordinates(Hierarchy(url, options).tree())
    return f"{time.process_time() - cpu:.3f} s"


def main() -> None:
    """Measure each tool in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    parser.add_argument("--scans", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=9)
    parser.add_argument("--far", action="store_true", help="requests that take 30 ms")
    parser.add_argument("--documents", action="store_true", help="without consolidated metadata")
    parser.add_argument("--distinct", action="store_true", help="with different attributes")
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), choices=TOOLS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(*arguments.one, consolidated=not arguments.documents)
        return
    print("| | groups | time | CPU | of it documents | requests |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as root, serving() as server:
        url, options = f"{root}/tree", dict[str, Any]()
        if arguments.far:
            options = {"storage_options": connection("zarrdask", server)}
            url = "s3://tree"  # rustytree takes only the bucket from a URL
        options["consolidated"] = not arguments.documents
        options["distinct"] = arguments.distinct
        make(f"{url}-small", 2, 2, **options)
        make(url, arguments.scans, arguments.sweeps, **options)
        if arguments.far:
            urllib.request.urlopen(f"{server}/-/set?delay={DELAY}", data=b"").close()
        for tool in arguments.tools:
            if find_spec(TOOLS[tool][2]) is None:
                print(f"| {tool} | not installed | | | | |")
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
