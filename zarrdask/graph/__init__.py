"""Dask graphs of stored arrays: the only code that imports Dask."""
