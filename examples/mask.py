"""A sparse mask: a river network of which most chunks are empty, and are not stored."""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np

import zarrdask

SIZE, CHUNK = 4096, 128


def rivers():
    """Return a mask of rivers: random walks from the upper edge to the lower one."""
    rng = np.random.default_rng(2)
    mask = np.zeros((SIZE, SIZE), bool)
    for start in rng.integers(0, SIZE, 7):
        column = start + np.cumsum(rng.normal(scale=2, size=SIZE)) + np.linspace(0, 900, SIZE)
        for width in range(-3, 4):
            mask[np.arange(SIZE), np.clip(column.astype(int) + width, 0, SIZE - 1)] = True
    return mask


def main(folder):
    """Write the mask, count what is stored, and copy it without reading what is empty."""
    mask = da.from_array(rivers(), chunks=(1024, 1024))
    zarrdask.to_zarr(mask, folder / "rivers.zarr", chunks=(CHUNK, CHUNK), fill_value=False)
    stored = zarrdask.open_array(folder / "rivers.zarr")
    print(f"{stored.nchunks_stored()} of {stored.nchunks} chunks are stored")
    print(f"river: {zarrdask.from_zarr(stored).mean().compute():.2%} of the pixels")

    zarrdask.copy(stored, folder / "sharded.zarr", shards=(1024, 1024))
    sharded = zarrdask.open_array(folder / "sharded.zarr")
    print(f"in shards: {sharded.nchunks_stored()} chunks in {len(list_objects(sharded))} objects")
    print(zarrdask.compare(stored, sharded).ok)
    return stored[...], list_objects(stored), CHUNK


def list_objects(array):
    """Return the indices of the stored objects of an array."""
    keys = array.store.list_prefix(f"{array.path}/c/".lstrip("/"))
    return sorted(tuple(map(int, key.split("/")[-2:])) for key in keys)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
