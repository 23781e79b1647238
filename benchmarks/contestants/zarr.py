"""zarr-python as it comes."""

from typing import Any

import numpy as np
import zarr

from benchmarks.rows import Layout


def eager(path: str) -> Any:
    return zarr.open_array(path, mode="r")


def save(a: np.ndarray, path: str, layout: Layout) -> None:
    z = zarr.create_array(path, shape=a.shape, dtype=a.dtype, **layout.options())
    z[...] = a
