"""Random members of concatenations, with the values that NumPy has for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import zarrdask

FORMATS = (2, 3, "v3-draft")
DTYPES = ("f4", "f8", "i2", ">i4", "u1")


@dataclass
class Case:
    """A concatenation or a stack, and its values."""

    array: Any
    values: np.ndarray


def random_member(rng, shape, dtype):
    """Return a source of some shape, and its values: an array, or a region with steps of one."""
    steps = [int(rng.integers(1, 4)) if rng.random() < 0.3 else 1 for _ in shape]
    pads = [
        [int(n) for n in rng.integers(0, 3, 2)] if rng.random() < 0.3 else [0, 0] for _ in shape
    ]
    full = tuple(
        before + ((n - 1) * step + 1 if n else 0) + after
        for n, step, (before, after) in zip(shape, steps, pads, strict=True)
    )
    zarr_format = FORMATS[rng.integers(3 if full else 2)]
    options = {"chunks": tuple(int(rng.integers(1, max(n, 1) + 2)) for n in full)} if full else {}
    if full and zarr_format == 3 and rng.random() < 0.3:
        options["shards"] = tuple(n * int(rng.integers(1, 3)) for n in options["chunks"])
    options["fill_value"] = int(rng.integers(0, 5))
    z = zarrdask.create_array({}, shape=full, dtype=dtype, zarr_format=zarr_format, **options)
    if all(full) and rng.random() < 0.9:
        part = tuple(slice(0, int(rng.integers(1, n + 1))) for n in full)
        z[part] = rng.integers(0, 100, [pick.stop for pick in part])
    region = tuple(
        slice(before, before + ((n - 1) * step + 1 if n else 0), step)
        for n, step, (before, _) in zip(shape, steps, pads, strict=True)
    )
    is_whole = region == tuple(slice(0, n, 1) for n in full)
    return (z if is_whole else (z, region)), z[...][region]


def random_case(seed):
    """Return a concatenation or a stack of random arrays."""
    rng = np.random.default_rng(seed)
    dtypes = DTYPES if rng.random() < 0.4 else [str(rng.choice(DTYPES))]
    ndim = int(rng.integers(0 if rng.random() < 0.2 else 1, 6))
    is_stack = ndim == 0 or (ndim < 5 and rng.random() < 0.4)
    shape = [int(rng.integers(0 if rng.random() < 0.1 else 1, 5)) for _ in range(ndim)]
    if rng.random() < 0.3 and ndim + 2 * is_stack >= 2:
        return _table(rng, shape, dtypes, is_stack=is_stack)
    axis, sources, values = int(rng.integers(ndim + is_stack)), [], []
    for _ in range(rng.integers(1, 5)):
        if not is_stack:
            shape[axis] = int(rng.integers(6))
        source, own = random_member(rng, shape, rng.choice(dtypes))
        sources.append(source)
        values.append(own)
    lost = int(rng.integers(1, len(sources))) if len(sources) > 1 and is_stack else 0
    if lost:
        sources[lost] = None
    array = (zarrdask.stack if is_stack else zarrdask.concat)(sources, axis)
    if lost:
        values[lost] = np.full_like(values[0], array.metadata.fill, array.dtype)
    values = [np.asarray(each, array.dtype) for each in values] if lost else values
    return Case(array, (np.stack if is_stack else np.concatenate)(values, axis))


def _table(rng, shape, dtypes, *, is_stack):
    axes = tuple(int(axis) for axis in rng.permutation(len(shape) + 2 * is_stack)[:2])
    lengths = [[int(rng.integers(4)) for _ in range(n)] for n in rng.integers(1, 4, 2)]
    rows = []
    for first in lengths[0]:
        row = []
        for second in lengths[1]:
            if not is_stack:
                shape[axes[0]], shape[axes[1]] = first, second
            row.append(random_member(rng, shape, rng.choice(dtypes)))
        rows.append(row)
    sources = [[source for source, _ in row] for row in rows]
    if is_stack:
        inner = axes[1] - (axes[0] < axes[1])
        values = [np.stack([own for _, own in row], inner) for row in rows]
        return Case(zarrdask.stack(sources, axes), np.stack(values, axes[0]))
    values = [np.concatenate([own for _, own in row], axes[1]) for row in rows]
    return Case(zarrdask.concat(sources, axes), np.concatenate(values, axes[0]))


def random_index(rng, shape):
    """Return a basic index of integers and slices with steps."""
    return tuple(
        int(rng.integers(n))
        if n and rng.random() < 0.3
        else slice(*sorted(int(at) for at in rng.integers(0, n + 1, 2)), int(rng.integers(1, 4)))
        for n in shape
    )
