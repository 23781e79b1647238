"""Arrays, and what damages them."""

import numpy as np

import zarrdask
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.storage.zarr.draft_store import layout_of

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")


def make(place, zarr_format=3, **options):
    """Store an array of ten chunks at ``g/a``, of which the last is not stored."""
    options = {"compressors": "gzip"} | options
    root = zarrdask.create_group(place, zarr_format=zarr_format)
    z = root.create_array("g/a", shape=40, dtype="i4", chunks=4, **options)
    z[:36] = np.arange(1, 37)
    return z


def key_of(z, *index):
    return layout_of(z.store).real(chunks_of(z).key(index))


def kinds(report):
    return [problem.kind for problem in report.problems]


def told(report):
    return [(problem.kind, problem.path, problem.key) for problem in report.problems]


def flip(data):
    """Change a byte of the checksum at the end of a gzip member."""
    return data[:-6] + bytes([data[-6] ^ 255]) + data[-5:]


def change(store, key, action):
    """Change a value in a dict."""
    store[key] = action(store[key])
