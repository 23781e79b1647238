"""Dask: arrays from and to stored arrays, plans of reads and writes, their execution, rewrites.

Only this room and the edges import Dask. It imports all rooms below. The edges take `from_zarr`
and `to_zarr` (`graph`), the plans of reads, writes and rewrites (`plan`, `rewrite`) and `run`
(`execution.executor`).
"""
