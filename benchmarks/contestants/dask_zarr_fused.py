"""``dask.array.from_zarr`` and ``to_zarr``, with zarr-python and its `FusedCodecPipeline`."""

from benchmarks.contestants import dask_zarr
from benchmarks.contestants.pipelines import FUSED, with_pipeline

append = with_pipeline(FUSED, dask_zarr.append)
lazy = with_pipeline(FUSED, dask_zarr.lazy)
rechunk = with_pipeline(FUSED, dask_zarr.rechunk)
replace = with_pipeline(FUSED, dask_zarr.replace)
save = with_pipeline(FUSED, dask_zarr.save)
