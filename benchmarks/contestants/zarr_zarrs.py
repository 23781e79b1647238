"""zarr-python with the codec pipeline of zarrs."""

import numpy as np
import zarr

from benchmarks.contestants.zarr import eager
from benchmarks.rows import Layout

zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


def save(a: np.ndarray, path: str, layout: Layout) -> None:
    z = zarr.create_array(path, shape=a.shape, dtype=a.dtype, **layout.options())
    z[...] = a


__all__ = ["eager", "save"]
