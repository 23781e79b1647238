"""cubed, with threads: its plan of a rechunk goes by way of other chunks on the disk."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import cubed
import numpy as np
import zarr

from benchmarks.rows import Layout, Shape

# A fifth of what is allowed has to hold a chunk; below, and for the tiny job, it refuses.
_LEAST = 2**27
#: What it may take where nobody tells.
_MEMORY = 2**30


@contextmanager
def _spec(folder: str, memory: int) -> Iterator[cubed.Spec]:
    options = {"executor_name": "threads", "executor_options": {"max_workers": 2}}
    with tempfile.TemporaryDirectory(dir=folder) as work:
        yield cubed.Spec(work, allowed_mem=max(memory, _LEAST), reserved_mem=0, **options)


def read(path: str) -> np.ndarray:
    with _spec(os.path.dirname(path), _MEMORY) as spec:
        return cubed.from_zarr(path, spec=spec).compute()  # type: ignore[no-any-return]


def round_trip(source: str, target: str, layout: Layout) -> None:
    _store(source, target, layout, None, _MEMORY)


def rechunk(source: str, target: str, layout: Layout, onto: Layout, memory: int) -> None:
    _store(source, target, onto, onto.chunks, memory)


def _store(source: str, target: str, onto: Layout, chunks: Shape | None, memory: int) -> None:
    with _spec(os.path.dirname(target), memory) as spec:
        x = cubed.from_zarr(source, spec=spec)
        x = x if chunks is None else x.rechunk(chunks)
        z = zarr.create_array(target, shape=x.shape, dtype=x.dtype, **onto.options())
        cubed.store([x], [z])
