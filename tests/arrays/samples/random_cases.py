"""Random stored arrays, and the same as ndarrays."""

import math

import numpy as np

import zarrdask


def random_array(rng, *, min_dims=0, shape=None, names=None):
    """Return a stored array of any layout, with missing chunks, and its elements."""
    if shape is None:
        shape = tuple(rng.integers(1, 13, rng.integers(min_dims, 4)).tolist())
    chunks = tuple(rng.integers(1, 6, len(shape)).tolist())
    options = {"shape": shape, "chunks": chunks, "dtype": rng.choice(["i4", "u1", "f8"])}
    kind = rng.integers(4)
    if kind == 1 and shape:
        options["shards"] = tuple(n * int(rng.integers(1, 4)) for n in chunks)
    elif kind == 2:
        options |= {"zarr_format": 2, "order": rng.choice(["C", "F"])}
    elif kind == 3 and shape:
        options["chunks"] = tuple(_lengths(rng, n) for n in shape)
    if names is not None and kind != 2:
        options["dimension_names"] = names
    z = zarrdask.create_array({}, fill_value=7, **options)
    expected = np.full(shape, 7, options["dtype"])
    stop = tuple(slice(0, int(rng.integers(n // 2, n + 1))) for n in shape)
    values = np.arange(math.prod(expected[stop].shape)).reshape(expected[stop].shape) % 250
    expected[stop] = values
    z[stop] = values
    return z, expected


def _lengths(rng, size):
    lengths = [int(rng.integers(1, 5))]
    while sum(lengths) < size:
        lengths.append(int(rng.integers(1, 5)))
    return tuple(lengths)
