"""Small arrays to compare."""

import numpy as np

import zarrdask


def make(values, place=None, **options):
    place = {} if place is None else place
    options = {"shape": values.shape, "dtype": values.dtype, "chunks": 3} | options
    z = zarrdask.create_array(place, **options)
    z[...] = values
    return z


VALUES = np.arange(1, 36, dtype="f4").reshape(5, 7)
