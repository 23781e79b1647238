"""zarr-python with another codec pipeline, which each array keeps that is opened with it."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import zarr

P = ParamSpec("P")
R = TypeVar("R")

FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"
ZARRS = "zarrs.ZarrsCodecPipeline"
ZARRDASK = "zarrdask.compat.zarr_pipeline.Pipeline"


def with_pipeline(path: str, verb: Callable[P, R]) -> Callable[P, R]:
    """Return a function during which arrays are opened with a codec pipeline.

    The setting is not left behind: other contestants may run in the same process.
    """

    @wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with zarr.config.set({"codec_pipeline.path": path}):
            return verb(*args, **kwargs)

    return run
