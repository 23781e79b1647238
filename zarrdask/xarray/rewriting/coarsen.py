"""Variables and coordinates at a lower resolution, by windows of their elements."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from dask import array as da
from xarray import Variable

from zarrdask.errors import MetadataError
from zarrdask.formats.dtypes.ml import kind_of
from zarrdask.tools.conventions.spatial import spacing
from zarrdask.tools.pyramids.kernels import Missing, Reduction
from zarrdask.tools.pyramids.levels import Borders

#: The attributes of CF for values that are names of categories.
_FLAGS = frozenset({"flag_values", "flag_masks", "flag_meanings"})
#: The keys of an encoding that hold for the old values of a coordinate only.
_OF_VALUES = frozenset(
    {"dtype", "scale_factor", "add_offset", "original_shape", "preferred_chunks"}
)


def usual_method(variable: Variable) -> str:
    """Return how the cells of a variable become one if the user does not say it."""
    if _FLAGS & variable.attrs.keys() or variable.dtype.kind == "b":
        return "mode"
    kinds = Reduction.METHODS["mean"]
    return "mean" if kinds and kind_of(variable.dtype) in kinds else "nearest"


def coarsen(
    variable: Variable,
    factors: Mapping[Hashable, int],
    method: str,
    borders: Borders,
    *,
    skipna: bool,
) -> Variable:
    """Return a variable whose cells are windows of the cells of another one, with a Dask array."""
    Reduction.check(method, variable.dtype)
    windows = tuple(factors.get(dim, 1) for dim in variable.dims)
    masks = skipna and variable.dtype.kind in "fc"
    missing = Missing((), has_nan=True, result=np.nan) if masks else None
    reduction = Reduction(method, windows, borders, missing)
    x = (variable if variable.chunks else variable.chunk()).data
    if borders == "trim":
        lengths = zip(x.shape, windows, strict=True)
        x = x[tuple(slice(length // factor * factor) for length, factor in lengths)]
    pairs = zip(x.chunks, windows, strict=True)
    x = x.rechunk(tuple(_whole_windows(lengths, factor) for lengths, factor in pairs))
    chunks = tuple(
        tuple(-(-length // factor) for length in lengths)
        for lengths, factor in zip(x.chunks, windows, strict=True)
    )
    data = da.map_blocks(_reduce, x, reduction, dtype=x.dtype, chunks=chunks, meta=x._meta)
    attributes = without_spatial(variable.attrs)
    return Variable(variable.dims, data, attributes, variable.encoding, fastpath=True)


def without_spatial(attributes: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return attributes without those that hold for the position of the finest cells only."""
    return {k: v for k, v in attributes.items() if not str(k).startswith("spatial:")}


def _reduce(block: np.ndarray, reduction: Reduction) -> np.ndarray:
    pairs = zip(block.shape, reduction.factors, strict=True)
    out = np.empty([-(-length // factor) for length, factor in pairs], block.dtype)
    reduction.reduce(block, out)
    return out


def _whole_windows(lengths: tuple[int, ...], factor: int) -> tuple[int, ...]:
    """Return the lengths of blocks whose boundaries are moved to the boundaries of windows."""
    edges = np.cumsum(lengths)
    moved = np.unique(np.append(edges[:-1] // factor * factor, edges[-1]))
    return tuple(int(length) for length in np.diff(moved, prepend=0) if length) or (0,)


def coarsen_coordinate(variable: Variable, factor: int, length: int) -> Variable:
    """Return the centres of the first windows of a coordinate along one dimension.

    If the distances are equal, they stay so: the centre of a window that has fewer cells than the
    others is the value of a whole one.
    """
    values = _centres(np.asarray(variable.values), factor, length)
    return Variable(variable.dims, values, variable.attrs, _encoding(variable))


def _encoding(variable: Variable) -> dict[str, Any]:
    return {k: v for k, v in variable.encoding.items() if k not in _OF_VALUES}


def _centres(values: np.ndarray, factor: int, length: int) -> np.ndarray:
    if values.dtype.kind in "mM":
        ticks = _centres(values.astype("i8") - values[:1].astype("i8"), factor, length)
        moments: np.ndarray = values[:1] + ticks.round().astype("i8")
        return moments
    if values.dtype.kind not in "iuf":
        first = np.arange(length) * factor
        middles: np.ndarray = values[first + (np.minimum(factor, len(values) - first) - 1) // 2]
        return middles
    numbers = values.astype("f8")
    dtype = values.dtype if values.dtype.kind == "f" else np.dtype("f8")
    try:
        step, edge = spacing("coordinate", numbers)
        return (edge + step * factor * (np.arange(length) + 0.5)).astype(dtype)
    except MetadataError:  # unequal distances: the mean of each window
        starts = np.arange(length) * factor
        counts = np.minimum(factor, len(values) - starts)
        sums = np.add.reduceat(numbers[: starts[-1] + counts[-1]], starts) if length else starts
        return (sums / counts).astype(dtype)


def coarsen_bounds(variable: Variable, factor: int, length: int) -> Variable:
    """Return the bounds of the first windows, from the bounds of the cells of the first axis."""
    values = np.asarray(variable.values)
    first = np.arange(length) * factor
    last = np.minimum(first + factor, len(values)) - 1
    bounds = np.stack([values[first, 0], values[last, -1]], axis=-1)
    return Variable(variable.dims, bounds, variable.attrs, _encoding(variable))
