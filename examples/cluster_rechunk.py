"""Rechunk on a cluster of two worker processes, within a limit of memory for each."""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import numpy as np
from distributed import Client, LocalCluster

import zarrdask


def main(folder):
    """Rewrite frames as columns on two workers, within 16 MiB each."""
    frames = zarrdask.create_array(
        folder / "frames.zarr", shape=(200, 256, 256), dtype="f4", chunks=(1, 256, 256)
    )
    t, y, x = np.ogrid[:200, :256, :256]
    frames[...] = np.sin(t / 9 + x / 30) * np.cos(y / 40 - t / 25)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        plan = zarrdask.rechunk(
            folder / "frames.zarr",
            folder / "columns.zarr",
            chunks=(200, 32, 32),
            max_mem="16 MiB",
            scheduler=client,
        )
        columns = plan.execute(scheduler=client, progress=False)
        print(f"{frames.nbytes >> 20} MiB, within 16 MiB in each of {len(client.ncores())} workers")
        print(f"{frames.nchunks} chunks {frames.chunks} became {columns.nchunks} {columns.chunks}")
        same = zarrdask.compare(frames, columns, scheduler=client).ok
        print(f"the same values: {same}")
    return plan


# Worker processes import this file; they must not run it.
if __name__ == "__main__":
    with (
        TemporaryDirectory() as folder,
        dask.config.set({"temporary-directory": folder}),  # of the workers
    ):
        main(Path(folder))
