"""zarr-python with its `FusedCodecPipeline`, which does not use an event loop to decode."""

from benchmarks.contestants import zarr
from benchmarks.contestants.pipelines import FUSED, with_pipeline

eager = with_pipeline(FUSED, zarr.eager)
save = with_pipeline(FUSED, zarr.save)
