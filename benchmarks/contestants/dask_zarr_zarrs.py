"""``dask.array.from_zarr`` and ``to_zarr``, with zarr-python and the codec pipeline of zarrs."""

from benchmarks.contestants import dask_zarr
from benchmarks.contestants.pipelines import ZARRS, with_pipeline

lazy = with_pipeline(ZARRS, dask_zarr.lazy)
save = with_pipeline(ZARRS, dask_zarr.save)
