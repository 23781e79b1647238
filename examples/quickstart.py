"""Write a field with Dask as a sharded Zarr v3 array, then read and reduce it on a cluster.

Run it with ``python examples/quickstart.py``, which takes about ten seconds; ``--mib`` sets the
size of the field (256 MiB by default), ``--keep DIR`` keeps the array that it writes.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import dask
import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from distributed import Client, LocalCluster

import zarrdask

# One plane is 1 MiB of float32. A shard is one file of 8 MiB, a chunk in it 128 KiB.
PLANE = (512, 512)
SHARD = (32, 256, 256)
CHUNK = (8, 64, 64)


def block_of_field(block_info=None):
    """Return one block of the field: smooth waves, and noise, to a hundredth."""
    place = block_info[None]["array-location"]
    t, y, x = np.ogrid[tuple(slice(start, stop) for start, stop in place)]
    waves = np.sin(t / 25) + np.cos(y / 80) * np.sin(x / 60)
    random = np.random.default_rng([start for start, _ in place])
    noise = random.normal(scale=0.05, size=waves.shape)
    return np.round(280 + 10 * waves + noise, 2).astype("f4")


def make_field(mib):
    """Return the field, of so many MiB, as a Dask array of which nothing is computed yet."""
    chunks = normalize_chunks(SHARD, shape=(mib, *PLANE))
    return da.map_blocks(block_of_field, chunks=chunks, dtype="f4", meta=np.empty((0, 0, 0), "f4"))


def run(mib, folder):
    """Do everything; return the steps as (what, MiB of values, seconds) and the stored MiB."""
    path = folder / "field.zarr"
    steps = []

    print(f"Making {mib} MiB and writing them to {path}")
    start = perf_counter()
    zarrdask.to_zarr(
        make_field(mib),
        path,
        chunks=CHUNK,
        shards=SHARD,
        dimension_names=("t", "y", "x"),
        attributes={"units": "K"},
        overwrite=True,
        progress=True,
    )
    steps.append(("make and write", mib, perf_counter() - start))
    stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 2**20

    x = zarrdask.from_zarr(path)
    print(f"\n{zarrdask.open_array(path)}")
    print(f"as a Dask array: {x.npartitions} blocks of {x.chunksize}")

    print("Reducing it on two worker processes")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        start = perf_counter()
        results = client.compute([x.mean(), x.min(), x.max()])
        mean, least, most = client.gather(results)
        steps.append(("mean, minimum, maximum", mib, perf_counter() - start))
    print(f"\nmean {mean:.2f}, minimum {least:.2f}, maximum {most:.2f}")

    start = perf_counter()
    window = x[:, 100:130, 200:260].compute()  # reads only the chunks that it overlaps
    steps.append(("all times of a small window", window.nbytes / 2**20, perf_counter() - start))
    return steps, stored


def report(steps, stored, mib):
    """Print what happened."""
    print(f"\n{'step':<30}{'MiB':>10}{'seconds':>10}{'MB/s':>10}")
    for what, size, seconds in steps:
        print(f"{what:<30}{size:>10.3f}{seconds:>10.3f}{size * 2**20 / 1e6 / seconds:>10.1f}")
    print(f"{mib} MiB of values take {stored:.1f} MiB on disk: ratio {mib / stored:.2f}")


def main():
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256, help="size of the field (%(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the array here, keep it")
    options = parser.parse_args()
    with (
        TemporaryDirectory(prefix="zarrdask-") as scratch,
        dask.config.set({"temporary-directory": scratch}),  # of the workers
    ):
        steps, stored = run(options.mib, options.keep or Path(scratch))
    report(steps, stored, options.mib)


# Worker processes import this file; they must not run it.
if __name__ == "__main__":
    main()
