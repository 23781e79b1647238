"""``dask.array.from_zarr`` and ``to_zarr`` while they call zarrdask."""

from benchmarks.contestants.dask_zarr import lazy, save
from zarrdask.compat.dask import install

install()

__all__ = ["lazy", "save"]
