"""``dask.array.from_zarr`` and ``to_zarr``, with zarr-python and the codec pipeline of zarrdask."""

import zarr

from benchmarks.contestants.dask_zarr import lazy, save

zarr.config.set({"codec_pipeline.path": "zarrdask.compat.zarr_pipeline.Pipeline"})

__all__ = ["lazy", "save"]
