"""zarr-python with the codec pipeline of zarrs."""

from benchmarks.contestants import zarr
from benchmarks.contestants.pipelines import ZARRS, with_pipeline

eager = with_pipeline(ZARRS, zarr.eager)
save = with_pipeline(ZARRS, zarr.save)
