"""What the cluster needs to carry arrays of some data types from worker to worker."""

import pickle
from functools import cache
from typing import Any

import numpy as np


def prepare(dtype: np.dtype[Any]) -> None:
    """Make this process send arrays of a dtype so that they arrive as such.

    distributed sends a number's or a time's typestr. Of float8_e5m2 that is "<f1", which no
    NumPy knows; of a multiple of the generic unit of time it lacks the factor.
    """
    if dtype.kind not in "OV" and not _tells(dtype.str, dtype):
        _register()


def _tells(text: Any, dtype: np.dtype[Any]) -> bool:
    try:
        return bool(np.dtype(text) == dtype)
    except TypeError:
        return False


@cache
def _register() -> None:
    from distributed.protocol.numpy import serialize_numpy_ndarray
    from distributed.protocol.serialize import dask_serialize

    def serialize(x: np.ndarray, context: Any = None) -> Any:
        header, frames = serialize_numpy_ndarray(x, context)
        custom, text = header.get("dtype", (1, None))
        if not custom and not _tells(text, x.dtype):
            header["dtype"] = 1, pickle.dumps(x.dtype)
        return header, frames

    dask_serialize.register(np.ndarray, serialize)
