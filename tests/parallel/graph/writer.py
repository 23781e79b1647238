"""A process to be killed: ``python -m tests.parallel.graph.writer PLACE KIND LAYOUT HOW``."""

import os
import resource
import sys
import time

import dask.array as da
import numpy as np

import zarrdask

OLD = np.arange(1, 60 * 48 + 1).reshape(60, 48)
NEW = -OLD
LAYOUTS = (
    {"chunks": (20, 12), "compressors": ()},
    {"chunks": (10, 6), "shards": (20, 12), "compressors": ()},
    {"chunks": (20, 12), "zarr_format": 2, "compressors": ()},
)


def write_slowly(write=os.write):
    """Let each write of a value be done in several parts, with time between them."""

    def slow(fd, data):
        # Others write to pipes, a few bytes.
        if len(data) < 200:
            return write(fd, data)
        time.sleep(0.005)
        return write(fd, memoryview(data)[: max(len(data) // 3, 199)])

    os.write = slow


def job(place, kind, number):
    """Return what is to be written to the array "a", and the options of that."""
    x = da.from_array(NEW, chunks=(7, 13))
    match kind:
        case "region":
            return x, {"region": np.s_[:, :]}
        case "part":
            return x[3:57, 2:], {"region": np.s_[3:57, 2:]}
        case "self":  # it stays until the new one is complete
            return -zarrdask.from_zarr(place, "a"), {"overwrite": True, **LAYOUTS[number]}
        case "last":
            return x, {"overwrite": True, "commit": "last", **LAYOUTS[number]}
    return x, {"overwrite": True, **LAYOUTS[number]}


def main(place, kind, number, how):
    """Write when there is a line to read."""
    x, options = job(place, kind, int(number))
    if how == "limit":
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    else:
        write_slowly()
    if how == "cluster":
        from distributed import Client, LocalCluster

        client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0"))
        client.run(write_slowly)
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    try:
        zarrdask.to_zarr(x, place, "a", **options)
    except zarrdask.errors.StoreError as error:
        print(error, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
