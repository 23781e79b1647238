"""Small stored arrays as Dask arrays."""

import dask.array as da
import numpy as np

import zarrdask

SHAPE = (8, 12)
VALUES = np.random.default_rng(5).random(SHAPE)


def stored(place=None, values=VALUES, chunks=2):
    """Return a Dask array of a stored array, one block for each chunk."""
    place = {} if place is None else place
    zarrdask.to_zarr(da.from_array(values, chunks=chunks), place)
    return zarrdask.from_zarr(place, chunks="stored")
