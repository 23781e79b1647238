"""Running tasks on any Dask scheduler."""
