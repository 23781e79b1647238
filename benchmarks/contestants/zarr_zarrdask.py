"""zarr-python with the codec pipeline of zarrdask."""

import zarr

from benchmarks.contestants.zarr import eager, save

zarr.config.set({"codec_pipeline.path": "zarrdask.compat.zarr_pipeline.Pipeline"})

__all__ = ["eager", "save"]
