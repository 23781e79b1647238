"""Dask's rechunking from worker to worker, by way of their disks, on a cluster of two processes."""

import logging
from functools import cache

import dask.array as da
from distributed import Client

from benchmarks.rows import Layout


@cache
def client() -> Client:
    """Return the cluster: the tiny job starts it."""
    return Client(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.ERROR,
    )


def rechunk(source: str, target: str, layout: Layout, onto: Layout, memory: int) -> None:
    x = da.from_zarr(source).rechunk(onto.chunks, method="p2p")
    later = da.to_zarr(x, target, compute=False, **onto.options())
    client().compute(later).result()
