"""zarr-python with the codec pipeline of zarrs."""

import zarr

from benchmarks.contestants.zarr import eager, save

zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

__all__ = ["eager", "save"]
