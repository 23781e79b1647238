"""``dask.array.from_zarr`` and ``to_zarr`` while they call zarrdask."""

from benchmarks.contestants import dask_zarr
from zarrdask.compat.dask import installed

# Only during the call: other contestants may run in the same process.
lazy = installed()(dask_zarr.lazy)
save = installed()(dask_zarr.save)
