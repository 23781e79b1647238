"""cubed, with threads: its plan goes by way of other chunks on the disk."""

import os
import tempfile

import cubed
import zarr

from benchmarks.rows import Layout

# A fifth of what is allowed has to hold a chunk; below, and for the tiny job, it refuses.
_LEAST = 2**27


def rechunk(source: str, target: str, layout: Layout, onto: Layout, memory: int) -> None:
    options = {"executor_name": "threads", "executor_options": {"max_workers": 2}}
    place = os.path.dirname(target)
    with tempfile.TemporaryDirectory(dir=place) as work:
        spec = cubed.Spec(work, allowed_mem=max(memory, _LEAST), reserved_mem=0, **options)
        x = cubed.from_zarr(source, spec=spec).rechunk(onto.chunks)
        z = zarr.create_array(target, shape=x.shape, dtype=x.dtype, **onto.options())
        cubed.store([x], [z])
