"""Fuse many small tasks of a Dask graph into fewer: one finder, and one evaluator."""
