"""Array expressions: those of Dask itself, and those of the package dask-array."""

from typing import Any

import dask.array as da
from dask.array.core import Array

#: Whether Dask arrays are array expressions in this process. Fixed when dask.array is imported. Not
#: all releases of Dask set a flag of their own for it.
EXPRESSIONS: bool = da.Array is not Array


def is_expression(x: Any) -> bool:
    """Whether an array is one of the package dask-array."""
    return type(x).__module__.partition(".")[0] == "dask_array" and hasattr(x, "expr")
