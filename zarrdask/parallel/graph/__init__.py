"""Dask graphs of stored arrays: the only code that imports Dask."""

# Dask before any of its modules: see `zarrdask.runtime.packages`.
import dask  # noqa: F401
