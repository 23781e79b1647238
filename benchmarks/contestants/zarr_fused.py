"""zarr-python with its `FusedCodecPipeline`, which does not use an event loop to decode."""

import zarr

from benchmarks.contestants.zarr import eager, save

zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.FusedCodecPipeline"})

__all__ = ["eager", "save"]
