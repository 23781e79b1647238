"""A region of a stored array, decoded by xarray's functions: one array-like for Dask.

Reading and decoding are one task, and a slice of the result is a slice of the read: Dask moves
slices into what a task reads, but not past functions that are tasks of their own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from zarrdask.execution.handle import Source
from zarrdask.indexing.selection import basic

Functions = tuple[Callable[[np.ndarray], np.ndarray], ...]


def decode(values: np.ndarray, functions: Functions) -> np.ndarray:
    """Apply elementwise functions, one after another."""
    for function in functions:
        values = function(values)
    return values


class DecodedSource:
    """A region of a stored array after elementwise functions, which have a result of some dtype."""

    __slots__ = ("__weakref__", "dtype", "functions", "source")

    def __init__(self, source: Source, functions: Functions, dtype: np.dtype[Any]) -> None:
        self.source = source
        self.functions = functions
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the region."""
        return self.source.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.source.ndim

    def __getitem__(self, index: Any) -> Any:
        selection = basic(index, self.shape)
        values = decode(self.source[selection.slices], self.functions)
        return values if selection.plain else values[selection.finish]

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        from dask.base import normalize_token

        return "zarrdask.xarray", normalize_token((self.source, self.functions, self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return DecodedSource, (self.source, self.functions, self.dtype)
