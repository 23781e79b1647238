"""Arrays whose blocks overlap their neighbours, read from the store: one task for each block.

Dask makes such blocks from those without overlaps, of slices and concatenations: about a hundred
tasks for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.array import core
from dask.array.core import getter
from dask.array.overlap import ensure_minimum_chunksize
from dask.base import tokenize
from dask.blockwise import blockwise
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.layers import ArrayBlockwiseDep

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.grids.axis import edges_of
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.selection import is_integer
from zarrdask.formats.metadata.lengths import Names, by_axis
from zarrdask.parallel.execution.dask_private import TaskRef
from zarrdask.parallel.graph.blocks import is_auto, region_blocks
from zarrdask.parallel.graph.overlap.margins import MarginKind, Margins
from zarrdask.parallel.graph.overlap.padded import PaddedRegion
from zarrdask.parallel.graph.stored_array import StoredArray
from zarrdask.parallel.plan.align import Chunks
from zarrdask.runtime.packages import load_module

_KINDS = ("reflect", "nearest", "periodic")


@dataclass(frozen=True)
class AxisOverlap:
    """How far the blocks of an axis overlap their neighbours, and what is beyond the ends."""

    before: int
    after: int
    #: As in `zarrdask.from_zarr`.
    boundary: Any

    @property
    def depth(self) -> int | tuple[int, int]:
        """The depth as Dask takes it."""
        return self.before if self.before == self.after else (self.before, self.after)

    @property
    def has_margins(self) -> bool:
        """Whether the first and the last block also get elements beyond the ends."""
        return not (isinstance(self.boundary, str) and self.boundary == "none")

    def margins(self, dtype: np.dtype[Any]) -> Margins:
        """Return the margins of an axis of an array."""
        if not self.has_margins:
            return Margins()
        if isinstance(self.boundary, str) and self.boundary in _KINDS:
            return Margins(self.before, self.after, cast(MarginKind, self.boundary))
        with np.errstate(invalid="ignore"):
            value = np.full((), self.boundary, dtype)
        if dtype.kind in "biu" and value != self.boundary:
            raise ValueError(f"its value would become {value}")
        return Margins(self.before, self.after, "constant", value)

    def joined(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return blocks that are at least as long as the depth, joined as Dask joins them."""
        depth = max(self.before, self.after)
        if not depth:
            return tuple(lengths)
        try:
            return tuple(ensure_minimum_chunksize(depth, lengths))
        except ValueError:
            raise MetadataError(
                "the depth is larger than the array",
                key="depth",
                found=depth,
                expected=f"at most {sum(lengths)}",
            ) from None

    def overlapping(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the lengths of blocks with their overlaps."""
        first, last = (0, len(lengths) - 1) if not self.has_margins else (-1, -1)
        return tuple(
            length + (number != first) * self.before + (number != last) * self.after
            for number, length in enumerate(lengths)
        )


def axis_overlaps(
    depth: Any, boundary: Any, dtype: np.dtype[Any], ndim: int, names: Names
) -> tuple[AxisOverlap, ...]:
    """Return the overlap along each axis; `depth` and `boundary` as in `zarrdask.from_zarr`."""
    depths = _each_axis(depth, ndim, names, "depth", default=0)
    boundaries = _each_axis(boundary, ndim, names, "boundary", default="none")
    axes = tuple(AxisOverlap(*_pair(d), b) for d, b in zip(depths, boundaries, strict=True))
    for axis in axes:
        _check(axis, dtype)
    return axes


def _each_axis(value: Any, ndim: int, names: Names, key: str, default: Any) -> tuple[Any, ...]:
    """Return the values of an argument for each axis."""
    values = by_axis(value, ndim, names, key)
    if not isinstance(values, tuple):
        values = (values,) * ndim
    if len(values) != ndim:
        raise MetadataError(
            "there must be one value for each axis",
            key=key,
            found=value,
            expected=f"{ndim} of them",
        )
    return tuple(default if each is None else each for each in values)


def _pair(depth: Any) -> tuple[int, int]:
    """Return the depths before and after a block."""
    pair = depth if isinstance(depth, tuple) else (depth, depth)
    if len(pair) != 2 or not all(is_integer(each) and each >= 0 for each in pair):
        raise MetadataError(
            "invalid depth of an axis",
            key="depth",
            found=depth,
            expected="an integer that is not negative, or a pair of them: before and after; "
            "a tuple or a dict has one for each axis",
        )
    return int(pair[0]), int(pair[1])


def _check(axis: AxisOverlap, dtype: np.dtype[Any]) -> None:
    """Check that Dask has such an overlap, too."""
    if axis.has_margins and axis.before != axis.after:
        raise UnsupportedError(
            "depths before and after a block may differ only without a boundary",
            key="depth",
            found=(axis.before, axis.after),
            expected="one number, or boundary='none'",
        )
    try:
        axis.margins(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise MetadataError(
            f"invalid boundary for an array of {dtype}: {error}",
            key="boundary",
            found=axis.boundary,
            expected="'reflect', 'nearest', 'periodic', 'none', or a value of the data type; "
            "a tuple or a dict has one for each axis",
        ) from error


def dimension_names(source: ArrayRegion) -> Names:
    """Return the names of the axes of a region; None if the array has none."""
    names = source.metadata.dimension_names
    return None if names is None else [names[axis] for axis in source.axes]


def in_blocks(x: da.Array, axes: Sequence[AxisOverlap], chunks: Any) -> da.Array:
    """Return an array of `zarrdask.from_zarr` in the default blocks for an overlap.

    It stays as it is if its `chunks` were given.
    """
    stored = _without_constants(x)
    if not is_auto(chunks) or stored is None:
        return x
    source = stored.source
    depths = [0] * len(source.region)
    for number, overlap in zip(source.axes, axes, strict=True):
        depths[number] = max(overlap.before, overlap.after) * source.region[number].step
    blocks = region_blocks(source, chunks, tuple(depths))
    return x if blocks == x.chunks else stored.in_blocks(blocks)


def _without_constants(x: da.Array) -> StoredArray | None:
    """Return an array that reads all of its blocks; None for others."""
    return x if isinstance(x, StoredArray) and x.is_stored is None else None


def overlapped(
    x: da.Array, axes: Sequence[AxisOverlap], *, allow_rechunk: bool = True, name: str | None = None
) -> da.Array:
    """Return an array of `zarrdask.from_zarr` with blocks that overlap."""
    if not any(axis.before or axis.after for axis in axes):
        return x
    if not allow_rechunk:
        for axis, lengths in zip(axes, x.chunks, strict=True):
            if min(lengths, default=0) < max(axis.before, axis.after):
                raise MetadataError(
                    "a block is shorter than the depth",
                    key="depth",
                    found=axis.depth,
                    expected=f"at most {min(lengths, default=0)}, or allow_rechunk=True",
                )
    chunks: Chunks = tuple(a.joined(lengths) for a, lengths in zip(axes, x.chunks, strict=True))
    stored = _without_constants(x)
    if stored is None:
        depth = {number: axis.depth for number, axis in enumerate(axes)}
        boundary = {number: axis.boundary for number, axis in enumerate(axes)}
        is_own = isinstance(x, da.Array)  # else an array of the package dask-array
        overlap = da.overlap.overlap if is_own else load_module("dask_array").overlap
        return overlap(x.rechunk(chunks), depth, boundary)
    source = PaddedRegion(stored.source, tuple(axis.margins(x.dtype) for axis in axes))
    parts = _OverlappingSlices(chunks, axes)
    name = name or f"{source.stored.task_name('read')}-{tokenize(source, parts)}"
    graph = HighLevelGraph(*_layers(name, source, parts))
    return core.Array(graph, name, parts.chunks, meta=x._meta)


def _layers(
    name: str, source: PaddedRegion, parts: "_OverlappingSlices"
) -> tuple[dict[str, Any], dict[str, set[str]]]:
    """Return the symbolic layer that reads blocks, one for a large source, and dependencies."""
    where, layers, needs = f"{name}-source", dict[str, Any](), set[str]()
    argument: Any = source
    if not source.stored.is_small:
        argument, needs = TaskRef(where), {where}
        layers[where] = MaterializedLayer({where: source})
    axes = tuple(range(source.ndim))
    layers[name] = blockwise(
        getter, name, axes, argument, None, parts, axes, numblocks={}, _data_producer=True
    )
    return layers, {**{key: set() for key in layers}, name: needs}


class _OverlappingSlices(ArrayBlockwiseDep):  # type: ignore[misc]
    """The slice of the padded array for each block."""

    def __init__(self, lengths: Chunks, axes: Sequence[AxisOverlap]) -> None:
        pairs = [*zip(axes, lengths, strict=True)]
        super().__init__(tuple(axis.overlapping(each) for axis, each in pairs))
        self._lengths = lengths
        self._axes = tuple(axes)
        self._starts = [_starts(axis, each) for axis, each in pairs]

    def __getitem__(self, index: Index) -> tuple[slice, ...]:
        return tuple(
            slice(int(starts[i]), int(starts[i]) + lengths[i], None)
            for starts, lengths, i in zip(self._starts, self.chunks, index, strict=True)
        )

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        depths = [axis.depth for axis in self._axes]
        return type(self).__name__, [np.array(axis).tobytes() for axis in self._lengths], depths

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._lengths, self._axes)


def _starts(axis: AxisOverlap, lengths: Sequence[int]) -> np.ndarray:
    """Return where blocks begin in the padded axis."""
    starts = edges_of(lengths)[:-1]
    return starts if axis.has_margins else np.maximum(starts - axis.before, 0)
