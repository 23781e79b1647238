"""Reads of stored arrays as expressions of dask-array, which are fused with what needs them.

The package fuses an expression with those that depend on it if it says so, and returns the task of
a block; its own reads do neither. This is not a public interface: tested with dask-array 0.7. If a
release has no such classes, reads stay tasks of their own: see `expression_array.fused_read`.
"""

from functools import cached_property
from typing import Any

import numpy as np
from dask.array.core import getter_nofancy

from zarrdask.formats.grids.axis import edges_of
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.parallel.execution.dask_private import Task
from zarrdask.runtime.packages import load_module

FromArray: Any = load_module("dask_array.io._from_array").FromArray
SliceSlicesIntegers: Any = load_module("dask_array.slicing").SliceSlicesIntegers


class Read(FromArray):  # type: ignore[misc]
    """A read of a region of an array-like, a block for each chunk, without a lock."""

    _is_blockwise_fusable = True

    def _task(self, key: Any, block: Index) -> Task:
        """Return the task of a block."""
        region = self.operand("_region") or (slice(None),) * len(block)
        starts = [pick.indices(n)[0] for pick, n in zip(region, self.array.shape, strict=True)]
        part = tuple(
            slice(start + int(edges[i]), start + int(edges[i + 1]), None)
            for start, edges, i in zip(starts, self._edges, block, strict=True)
        )
        return Task(key, getter_nofancy, self.array, part, self.asarray_arg)

    @cached_property
    def _edges(self) -> list[np.ndarray]:
        """Where blocks begin and end along each axis."""
        return [edges_of(lengths) for lengths in self.chunks]

    def _with_chunks(self, chunks: Any) -> "Read":
        """Return this read with other blocks."""
        return Read(*super()._with_chunks(chunks).operands)

    def _accept_slice(self, slice_expr: Any) -> Any:
        """Return the expression that a slice of this one becomes."""
        expression = super()._accept_slice(slice_expr)
        if type(expression) is FromArray:
            return Read(*expression.operands)
        if type(expression) is SliceSlicesIntegers and type(expression.array) is FromArray:
            return SliceSlicesIntegers(Read(*expression.array.operands), *expression.operands[1:])
        return expression


def read_of(expression: Any) -> Any:
    """Return an expression of `from_array` as one that is fused, if each task holds its array."""
    is_read = type(expression) is FromArray and expression.inline_array
    return Read(*expression.operands) if is_read else expression
