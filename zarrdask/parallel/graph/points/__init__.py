"""Points and cubes of stored arrays as Dask arrays: reads of their own, chunk by chunk."""
