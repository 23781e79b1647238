"""Serialisation between the workers of a cluster, for data types that distributed changes."""

import pickle
from functools import cache
from typing import Any

import numpy as np


def prepare(dtype: np.dtype[Any]) -> None:
    """Make this process send arrays of a dtype so that they arrive with that dtype.

    distributed sends the typestr of numbers and times. The typestr of float8_e5m2 is "<f1", which
    NumPy does not know; times with a multiple of the generic unit lose the factor in theirs.
    """
    if dtype.kind not in "OV" and not _identifies(dtype.str, dtype):
        _register()


def _identifies(text: Any, dtype: np.dtype[Any]) -> bool:
    """Whether NumPy parses a typestr as this dtype."""
    try:
        return bool(np.dtype(text) == dtype)
    except TypeError:
        return False


@cache
def _register() -> None:
    import distributed  # noqa: F401
    from distributed.protocol.numpy import serialize_numpy_ndarray
    from distributed.protocol.serialize import dask_serialize

    def serialize(x: np.ndarray, context: Any = None) -> Any:
        header, frames = serialize_numpy_ndarray(x, context)
        custom, text = header.get("dtype", (1, None))
        if not custom and not _identifies(text, x.dtype):
            header["dtype"] = 1, pickle.dumps(x.dtype)
        return header, frames

    dask_serialize.register(np.ndarray, serialize)
