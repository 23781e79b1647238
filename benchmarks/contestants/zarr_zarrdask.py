"""zarr-python with the codec pipeline of zarrdask."""

from benchmarks.contestants import zarr
from benchmarks.contestants.pipelines import ZARRDASK, with_pipeline

eager = with_pipeline(ZARRDASK, zarr.eager)
save = with_pipeline(ZARRDASK, zarr.save)
