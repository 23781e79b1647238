"""Measure opening many stores as one: ``python -m benchmarks.many_stores``.

There are `--stores` stores of three variables. Each measurement is a process of its own, which
opens a few stores to warm up; its CPU time counts, and with requests that take 50 ms its time. The
bare loop requests the document and the coordinates of each store, 64 at a time, and does nothing
with them.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import xarray as xr

from benchmarks import slow

#: What is measured, and the packages that it needs.
TOOLS = {
    "zarrdask open_many": (),
    "zarrdask open_mfdataset": (),
    "xarray + zarr": ("zarr",),
    "VirtualiZarr": ("virtualizarr", "zarr", "arro3"),
    "tensorstore concat": ("tensorstore",),
    "bare loop": (),
}
IN_FLIGHT = 64
STEPS = 4


def write(root: Path, count: int) -> None:
    """Write equal stores, which differ in their times only in an archive."""
    dataset = xr.Dataset(
        {
            name: (("time", "lat", "lon"), np.zeros((STEPS, 6, 8), "f4"), {"units": "K"})
            for name in "tuv"
        },
        {
            "time": np.arange(STEPS),
            "lat": np.linspace(0, 1, 6),
            "lon": np.linspace(0, 1, 8),
        },
    )
    import zarrdask.xarray

    zarrdask.xarray.to_zarr(dataset, root / "day-0.zarr")
    for number in range(1, count):
        copytree(root / "day-0.zarr", root / f"day-{number}.zarr")


def bare_loop(urls: list[str], *, far: bool) -> Any:
    """Request the document and the coordinates of each store, and do nothing with them."""
    from zarrdask.storage.resolve import open_store

    store = open_store(urls[0].rpartition("/")[0], None)
    names = [url.rpartition("/")[2] for url in urls]
    keys = [
        f"{name}/{key}" for key in ("zarr.json", "time/c/0", "lat/c/0", "lon/c/0") for name in names
    ]
    if not far:
        return [store.get(key) for key in keys]
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        return list(pool.map(store.get, keys))


def combined(urls: list[str], open_mfdataset: Any, **options: Any) -> Any:
    """Open the stores by xarray's function, without comparing anything."""
    how = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
    return open_mfdataset(urls, combine="nested", concat_dim="time", **how, **options)


def virtual(urls: list[str]) -> Any:
    """Open the stores as references."""
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_mfdataset
    from virtualizarr.parsers import ZarrParser
    from virtualizarr.registry import ObjectStoreRegistry

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    files = [f"file://{url}" for url in urls]
    return combined(files, open_virtual_mfdataset, registry=registry, parser=ZarrParser())


def tensorstores(urls: list[str]) -> Any:
    """Open one variable of each store, and concatenate them; it has no datasets."""
    import tensorstore as ts

    specs = [
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{url}/{name}"}}
        for name in "tuv"
        for url in urls
    ]
    arrays = [each.result() for each in [ts.open(spec) for spec in specs]]
    return [ts.concat(arrays[n : n + len(urls)], axis=0) for n in range(0, len(arrays), len(urls))]


def open_all(tool: str, urls: list[str], *, far: bool) -> Any:
    """Open the stores as a tool does."""
    if tool == "bare loop":
        return bare_loop(urls, far=far)
    if tool == "VirtualiZarr":
        return virtual(urls)
    if tool == "tensorstore concat":
        return tensorstores(urls)
    if tool == "xarray + zarr":
        return combined(urls, xr.open_mfdataset, engine="zarr")
    import zarrdask.xarray

    if tool == "zarrdask open_mfdataset":
        return combined(urls, zarrdask.xarray.open_mfdataset)
    return zarrdask.xarray.open_many(urls, "time")


def measure(tool: str, root: str, count: int, *, far: bool) -> None:
    """Print the seconds that opening takes, and the size of the graph of a variable."""
    prefix = f"{slow.SlowFileSystem.protocol}://{root}" if far else root
    urls = [f"{prefix}/day-{number}.zarr" for number in range(count)]
    open_all(tool, urls[:2], far=far)
    start, cpu = time.perf_counter(), time.process_time()
    opened = open_all(tool, urls, far=far)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    text = f"{tool:24} {seconds:8.2f} s {cpu:8.2f} s of CPU"
    if isinstance(opened, xr.Dataset) and hasattr(opened["t"].data, "dask"):
        graph = opened["t"].data.dask
        text += f"   {len(graph.layers)} layers, {len(graph)} tasks a variable"
    print(text, flush=True)


def main() -> None:
    """Measure each tool in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", type=int, default=2000)
    parser.add_argument("--far", action="store_true", help="requests that take 50 ms")
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        tool, root = arguments.one
        measure(tool, root, arguments.stores, far=arguments.far)
        return
    with tempfile.TemporaryDirectory() as root:
        write(Path(root), arguments.stores)
        for tool in arguments.tools:
            if not all(map(find_spec, TOOLS[tool])):
                print(f"{tool:24} is not installed")
                continue
            far = ["--far"] if arguments.far else []
            options = ["--stores", str(arguments.stores), *far, "--one", tool, root]
            subprocess.run([sys.executable, "-m", "benchmarks.many_stores", *options], check=False)


if __name__ == "__main__":
    main()
