"""The chunk manager ``zarrdask``: makes the Dask arrays of xarray from stored arrays.

xarray imports this module in every process that uses chunked arrays, so it imports nothing but
xarray's own manager: the rest is loaded when an array is made.
"""

from typing import Any

from xarray.namedarray.daskmanager import DaskManager


class ZarrdaskManager(DaskManager):
    """Makes Dask arrays whose tasks each read, decode and unpack one block.

    xarray uses it for ``chunked_array_type="zarrdask"``, and `zarrdask.xarray.open_zarr` by
    default. The arrays are ordinary Dask arrays: all other work on them is done by xarray's own
    manager, ``dask``, which also makes the arrays of variables that are not zarrdask's.
    """

    def is_chunked_array(self, data: Any) -> bool:
        """Return False: the manager ``dask`` recognises the arrays, and only one may do so."""
        return False

    def normalize_chunks(
        self,
        chunks: Any,
        shape: tuple[int, ...] | None = None,
        limit: int | None = None,
        dtype: Any = None,
        previous_chunks: Any = None,
    ) -> Any:
        """Return the blocks for the requested chunks, or for the stored ones."""
        from zarrdask.xarray.variable_blocks import joined_blocks

        blocks = joined_blocks(chunks, shape, limit, dtype, previous_chunks)
        if blocks is None:
            return super().normalize_chunks(chunks, shape, limit, dtype, previous_chunks)
        return blocks

    def from_array(self, data: Any, chunks: Any, **kwargs: Any) -> Any:
        """Return a Dask array of a lazily indexed variable."""
        from zarrdask.xarray.variable_blocks import stored_array
        from zarrdask.xarray.xarray_private import unwrap

        if hasattr(data, "__dask_graph__"):
            return data.rechunk(chunks)
        region = unwrap(data)
        array = None if region is None else stored_array(region, chunks)
        return super().from_array(data, chunks, **kwargs) if array is None else array
