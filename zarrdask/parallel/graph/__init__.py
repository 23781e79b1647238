"""Dask graphs that read and write stored arrays."""

# Dask before any of its modules: see `zarrdask.runtime.packages`.
import dask  # noqa: F401
