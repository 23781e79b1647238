"""``dask.array.from_zarr`` and ``to_zarr``, with zarr-python and the codec pipeline of zarrdask."""

from benchmarks.contestants import dask_zarr
from benchmarks.contestants.pipelines import ZARRDASK, with_pipeline

lazy = with_pipeline(ZARRDASK, dask_zarr.lazy)
save = with_pipeline(ZARRDASK, dask_zarr.save)
