"""``dask.array.from_zarr`` and ``to_zarr``, with zarr-python and its `FusedCodecPipeline`."""

import zarr

from benchmarks.contestants.dask_zarr import append, lazy, rechunk, replace, save

zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.FusedCodecPipeline"})

__all__ = ["append", "lazy", "rechunk", "replace", "save"]
